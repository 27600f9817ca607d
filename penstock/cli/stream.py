"""`penstock stream …`: everything about streams that is no document."""

from __future__ import annotations

from penstock.cli import stream_files, stream_produce, stream_server

HELP = "Look into streams, send events, and look after their files."

COMMANDS = (*stream_server.COMMANDS, *stream_produce.COMMANDS, *stream_files.COMMANDS)
