"""Forks the first processes of an engine's sandboxes, so that Python starts once and not for each.

It is started as COMMAND with a socket of packets to the worker and the limits of the sandboxes, as `disk_mb=2048`. A
request is one byte with one descriptor: the socket of the new sandbox. It ends when the worker closes its socket, or
dies; each sandbox ends by its own.
"""

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable

from proctor.namespaces import init
from proctor.namespaces.root import read_etc

COMMAND = (
    *("-I", "-S", "-c"),
    "import sys; sys.path.append(sys.argv[1]); from proctor.namespaces.server import main; main()",
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
)
"""Python's arguments, before the socket's descriptor and the limits: it reads no variables, no `site`, and no package
but this one."""


def main() -> None:
    """Serve until the worker has ended."""
    pairs = (each.split("=") for each in sys.argv[3:])
    options = {name: int(value) for name, value in pairs}
    requests = socket.socket(fileno=int(sys.argv[2]))
    etc = read_etc()
    signal.signal(signal.SIGCHLD, _reap)
    while (control := _receive(requests)) is not None:
        with control:
            _fork(requests, control, lambda: init.main(control, options, etc))


def _reap(*_: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _receive(requests: socket.socket) -> socket.socket | None:
    try:
        _, streams, _, _ = socket.recv_fds(requests, 1, 1)
    except OSError:
        return None
    return socket.socket(fileno=streams[0]) if streams else None


def _fork(requests: socket.socket, control: socket.socket, first: Callable[[], None]) -> None:
    try:
        child = os.fork()
    except OSError as error:
        with contextlib.suppress(OSError):  # the worker no longer waits for it
            control.sendall(init.line({"failed": f"{error.strerror}: fork"}))
        return
    if child == 0:
        try:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            first()
        finally:
            os._exit(0)
