"""A process that has imported the modules of Spark's Python processes, and forks one on request.

Spark starts several Python processes for each flow. A new interpreter spends about a second of processor time
on imports; a fork of this process spends some milliseconds, and shares its memory. Spark's Python executable
is `penstock.spark.launcher`, which calls this server. If the server cannot be used, the launcher becomes an
ordinary Python, so only speed depends on the server.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import runpy
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from pathlib import Path
from typing import NoReturn

from penstock.spark import launcher

PRELOADED = (
    "pyspark.worker",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.pandas.types",
    "penstock.engine.plan.python_steps",
)
"""Modules that processes of flows import. A module that is missing here only costs time."""

REQUEST_S = 5.0
"""Seconds to wait for the request of a launcher, which sends it immediately after connecting."""

LONGEST_SHEBANG = 120
"""Maximum length of the interpreter's path: Linux truncates the first line of a script after 127 bytes."""

ENVIRONMENT = {
    # A thread does not survive a fork, so libraries must not start any while they are imported.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    # Variables that Spark sets for its Python processes, and that an interpreter reads only at startup.
    "PYTHONHASHSEED": "0",
    "PYTHONUNBUFFERED": "YES",
}


class ForkServer:
    """The server process of this process, and the executable that Spark uses as its Python."""

    def __init__(self, output: int = 2) -> None:
        directory = Path(tempfile.mkdtemp(prefix="penstock-fork-"))  # the server removes it when it ends
        self.address = directory / "socket"
        self.python = self.launcher(directory)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.address))
        listener.listen(128)
        with listener:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(listener.fileno()), str(directory)],
                stdin=subprocess.PIPE,  # closes when this process ends, however it ends
                stdout=output,
                stderr=output,
                pass_fds=[listener.fileno()],
                env={**os.environ, **ENVIRONMENT},
                # Ctrl-C in a terminal must not reach Spark's processes. A process with its own session, such
                # as a worker of `penstock up`, keeps them in it, so that they can be found and killed.
                start_new_session=os.getsid(0) != os.getpid(),
            )

    @staticmethod
    def launcher(directory: Path) -> Path:
        """Write the executable that Spark starts as its Python."""
        path = directory / "python"
        path.write_text(f"#!{sys.executable} -IS\n{Path(launcher.__file__).read_text()}")
        path.chmod(stat.S_IRWXU)
        return path

    @property
    def pid(self) -> int:
        """The id of the server process."""
        return self._process.pid

    def preload(self) -> None:
        """Import the modules that flows need now, instead of when the first process is requested."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.address))
            connection.sendall((0).to_bytes(4, "big"))

    def stop(self) -> None:
        """End the server. Processes that it has forked end with Spark."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


_LOCK = threading.Lock()
_SERVER: list[ForkServer] = []


def fork_server(output: int = 2) -> ForkServer | None:
    """The fork server of this process, started on first use; None if it is not supported here.

    The output of the forked processes goes to the file descriptor `output`.
    """
    if sys.platform != "linux" or len(sys.executable) > LONGEST_SHEBANG or " " in sys.executable:
        return None  # elsewhere, such as on macOS, libraries do not survive a fork
    with _LOCK:
        if not _SERVER:
            _SERVER.append(ForkServer(output))
        server = _SERVER[0]
    # If temporary files may not be executed, nothing would start.
    return server if os.access(server.python, os.X_OK) else None


def serve(listener: socket.socket) -> None:
    """Fork a process for each request of a launcher, until standard input closes."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # processes of flows are not waited for
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is meant for the parent process
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(listener, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if 0 in ready:
            return
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError, EOFError):
            connection.settimeout(REQUEST_S)
            _answer(connection, listener)


def _answer(connection: socket.socket, listener: socket.socket) -> None:
    header, streams, _, _ = socket.recv_fds(connection, 4, 3)
    request = _receive(connection, int.from_bytes(header, "big"))
    _preload()
    if not request:
        return
    pid = os.fork()
    if pid == 0:
        listener.close()
        _become(request, streams, connection)
    for descriptor in streams:
        os.close(descriptor)
    connection.sendall(b"1")


def _receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise EOFError
        received += part
    return received


def _preload() -> None:
    """Import the modules that processes of flows need, once."""
    if PRELOADED[-1] in sys.modules:
        return
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except Exception:  # the process that needs the module reports the error
            traceback.print_exc()
    gc.collect()
    gc.freeze()  # otherwise each collection in a forked process would copy shared memory


def _become(request: bytes, streams: list[int], connection: socket.socket) -> NoReturn:
    """Become the Python process that Spark has requested."""
    code = 1
    try:
        words = [os.fsdecode(word) for word in request.split(b"\0")]
        count = int(words[1])
        directory, (_, module, *arguments), environment = words[0], words[2 : 2 + count], words[2 + count :]
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _take_streams(streams)
        os.chdir(directory)
        os.environ.clear()
        os.environ.update({name: value for name, _, value in (each.partition("=") for each in environment)})
        sys.path[:0] = [path for path in _python_path(directory) if path not in sys.path]
        sys.argv = [module, *arguments]
        connection.setblocking(True)  # it stays open until this process ends: a launcher may wait for the end
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # about a module that was imported before
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except (BrokenPipeError, ConnectionResetError, EOFError):
        code = 0  # Spark has closed the connection: the flow has ended
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code & 0xFF)


def _take_streams(streams: list[int]) -> None:
    """Use the standard streams that Spark provides; a process without its own pipes has no input."""
    if not streams:
        streams = [os.open(os.devnull, os.O_RDONLY)]
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)


def _python_path(directory: str) -> list[str]:
    return [directory, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]


if __name__ == "__main__":
    try:
        with socket.socket(fileno=int(sys.argv[1])) as inherited:
            serve(inherited)
    finally:
        shutil.rmtree(sys.argv[2], ignore_errors=True)
