"""A process that appends to a stream until its input has a line; prints the first offset of each append."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from penstock.streams.log import Log
from penstock.streams.pool import open_storage
from penstock.streams.storage import Producer
from tests.streams.kit import events

if __name__ == "__main__":
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
    log, number = Log(open_storage(Path(sys.argv[1]))), 0
    while not stop.is_set():
        print(log.append(events(3, number), producer=Producer("z", number)).first, flush=True)
        number += 1
    log.close()
