"""The process that an engine's sandboxes are forked from, so that Python starts once, and the first process of each.

The server is started as COMMAND with a socket of packets to the worker and the limits of the sandboxes, as
`disk_mb=2048`. A request is one byte with one descriptor: the socket of the new sandbox. It ends when the worker closes
its socket, or dies; each sandbox ends by its own.

A sandbox's first process builds its root file system, then starts processes on request. It holds a stream socket to the
worker; when the worker shuts that down, or dies, this process ends, and the kernel ends all others with it. A request
is a 4-byte big-endian length, sent with two descriptors (input, output), and (id, argv, env) in the form of `marshal`.
An answer is a line of JSON: {"ready": true} or {"failed": reason} for the sandbox; for a process
{"id", "started": true}, {"id", "failed": reason} or {"id", "exit": status}. The socket is closed when all processes of
the sandbox have ended.
"""

import array  # noqa: F401  this and `warnings`: the library imports them when asked, and nothing can be imported inside
import contextlib
import marshal
import os
import resource
import select
import signal
import socket
import sys
import warnings  # noqa: F401
from collections.abc import Callable, Sequence
from pathlib import Path

from proctor.sandbox.namespaces.root import EtcEntry, build, drop_privileges, read_etc, unshare, write

COMMAND = (
    *("-I", "-S", "-c"),
    "import sys; sys.path.append(sys.argv[1]); from proctor.sandbox.namespaces.init import serve; serve()",
    str(Path(__file__).absolute().parents[3]),
)
"""Python's arguments, before the socket's descriptor and the limits: it reads no variables, no `site`, and no package
but this one."""
_KEPT_CAPABILITIES = frozenset({0, 1, 3, 5, 6, 7})  # CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID


def serve() -> None:
    """Fork first processes until the worker has ended."""
    pairs = (each.split("=") for each in sys.argv[3:])
    options = {name: int(value) for name, value in pairs}
    requests = socket.socket(fileno=int(sys.argv[2]))
    etc = read_etc()
    signal.signal(signal.SIGCHLD, _reap_forked)
    while (control := _requested(requests)) is not None:
        with control:
            _fork(requests, control, lambda: _begin(control, options, etc))


def _reap_forked(*_: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _requested(requests: socket.socket) -> socket.socket | None:
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
            control.sendall(_line({"failed": f"{error.strerror}: fork"}))
        return
    if child == 0:
        try:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            first()
        finally:
            os._exit(0)


def _begin(control: socket.socket, options: dict[str, int], etc: Sequence[EtcEntry]) -> None:
    """Build the root file system in new namespaces and serve; a failure is one line to the worker."""
    try:
        _enter_namespaces()
        if os.fork():
            os.wait()
            return
        build(options["disk_mb"], etc)
        _set_limits(options)
    except OSError as error:
        _send(control, {"failed": f"{error.strerror}: {error.filename or 'namespaces'}"})
        return
    _send(control, {"ready": True})
    _serve(control)


def _enter_namespaces() -> None:
    go_read, go_write = os.pipe()
    parent, uid = os.getpid(), os.geteuid()
    mapper = os.fork()
    if mapper == 0:
        os.close(go_write)
        os.read(go_read, 1)
        os._exit(0 if _map_ids(parent, uid, os.getegid()) else 1)
    unshare()
    os.close(go_write)
    if os.waitpid(mapper, 0)[1] != 0:
        raise OSError(0, "user ids can't be mapped", "uid_map")


def _map_ids(process: int, uid: int, gid: int) -> bool:
    """Run by root, map all ids, so that users can be made inside; else map only our own, to root."""
    of = f"/proc/{process}"
    if uid == 0 and write(f"{of}/uid_map", "0 0 65536") and write(f"{of}/gid_map", "0 0 65536"):
        return True
    return (
        write(f"{of}/setgroups", "deny")
        and write(f"{of}/uid_map", f"0 {uid} 1")
        and write(f"{of}/gid_map", f"0 {gid} 1")
    )


def _set_limits(options: dict[str, int]) -> None:
    """Set the limits that every process inside inherits."""
    _limit(resource.RLIMIT_NPROC, options["processes"])
    _limit(resource.RLIMIT_FSIZE, options["file_mb"] << 20)
    _limit(resource.RLIMIT_AS, options["memory_mb"] << 20)
    _limit(resource.RLIMIT_NOFILE, 1024)
    _limit(resource.RLIMIT_CORE, 0)
    signal.alarm(options["max_age_s"])
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    os.umask(0o022)
    drop_privileges(_KEPT_CAPABILITIES)


def _limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _serve(control: socket.socket) -> None:
    """Start the requested processes and report their ends, until the worker ends."""
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, int] = {}
    while True:
        ready = select.select([control.fileno(), wake_read], [], [])[0]
        if wake_read in ready:
            os.read(wake_read, 4096)
            _reap(control, running)
        if control.fileno() in ready:
            request = _receive(control)
            if request is None:
                return
            number, start = request
            try:
                running[start()] = number
            except OSError as error:
                _send(control, {"id": number, "failed": str(error)})
                continue
            _send(control, {"id": number, "started": True})


def _receive(control: socket.socket) -> tuple[int, Callable[[], int]] | None:
    try:
        header, streams, _, _ = socket.recv_fds(control, 4, 2)
    except OSError:
        return None
    if len(header) < 4 or len(streams) != 2:
        return None
    left, body = int.from_bytes(header, "big"), bytearray()
    while left > len(body):
        chunk = control.recv(left - len(body))
        if not chunk:
            return None
        body += chunk
    number, argv, env = marshal.loads(body)
    return number, lambda: _start(argv, env, streams)


def _start(argv: list[str], env: dict[str, str], streams: list[int]) -> int:
    try:
        pid = os.fork()
        if pid == 0:
            _execute(argv, env, streams)
    finally:
        for stream in streams:
            os.close(stream)
    return pid


def _execute(argv: list[str], env: dict[str, str], streams: list[int]) -> None:
    """In the child: execute the program; on failure print the reason, and exit with status 127 as a shell does."""
    status = 127
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)  # the worker may have been started with these signals ignored
        for target, source in enumerate((streams[0], streams[1], streams[1])):
            os.dup2(source, target)
        os.closerange(3, 1024)
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(status)


def _reap(control: socket.socket, running: dict[int, int]) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid in running:
            code = os.waitstatus_to_exitcode(status)
            _send(control, {"id": running.pop(pid), "exit": code if code >= 0 else 128 - code})


def _send(control: socket.socket, answer: dict[str, int | str]) -> None:
    try:
        control.sendall(_line(answer))
    except OSError:
        os._exit(0)


def _line(answer: dict[str, int | str]) -> bytes:
    """An answer as it is sent."""
    fields = ", ".join(f'"{name}": {_json(value)}' for name, value in answer.items())
    return f"{{{fields}}}\n".encode()


def _json(value: int | str) -> str:
    """As JSON; what that would escape is a question mark in a text."""
    if isinstance(value, str):
        return "".join(['"', *(each if each.isprintable() and each not in '"\\' else "?" for each in value), '"'])
    return str(value).lower()
