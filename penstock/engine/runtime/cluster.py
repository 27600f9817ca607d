"""Setup of a session with executors on other machines: properties, files and code from the driver."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from penstock.connectors.file.paths import is_local, local_path
from penstock.settings import Settings
from penstock.spark.executors import require_able
from penstock.spark.file_server import PORT, FileServer
from penstock.spark.shipped_code import ship
from penstock.streams.home import StreamHome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOST, BIND = "spark.driver.host", "spark.driver.bindAddress"

TEMPORARY = ("penstock-read-", "penstock-replay-", "penstock-warm-up-", "penstock-bench-")
"""Name prefixes of temporary directories that tasks read from and write to."""

SOMEWHERE = ("192.0.2.1", 9)
"""An address that no machine has: the route to it shows which of its own addresses a machine uses."""


def cluster_properties(settings: Settings) -> dict[str, str]:
    """The properties that executors need; starts the server that sends them files of this process."""
    chosen = settings.spark
    host = chosen.get(HOST) or os.environ.get("SPARK_LOCAL_IP") or own_address(chosen["spark.master"])
    host = host.strip("[]")  # of IPv6
    streams = StreamHome.of(settings)
    places = [streams.root, streams.memory, settings.home / "flows", settings.home / "runs"]
    if is_local(settings.checkpoint_url):
        places.append(Path(local_path(settings.checkpoint_url)))
    server = FileServer(
        chosen.get(BIND, host).strip("[]"),
        int(chosen.get(PORT, 0)),
        [*(f"{place}/" for place in places), *(f"{tempfile.gettempdir()}/{name}" for name in TEMPORARY)],
    )
    return {HOST: f"[{host}]" if ":" in host else host, **server.properties()}


def welcome(spark: SparkSession) -> None:
    """Send Penstock's code to the executors, and check that they can run it."""
    ship(spark, Path(tempfile.mkdtemp(prefix="penstock-code-")))
    require_able(spark)


def own_address(master: str) -> str:
    """The address at which a cluster reaches this machine."""
    url = urlsplit(master.removeprefix("k8s://"))
    target = (url.hostname, url.port or SOMEWHERE[1]) if url.hostname else SOMEWHERE
    family = socket.getaddrinfo(*target, type=socket.SOCK_DGRAM)[0][0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(target)  # sends nothing
        return str(probe.getsockname()[0])
