"""The process that has imported commands and forks itself for each. Its first argument is `clients` or `servers`.

The next is the socket to receive requests from; with a third one, the servers that a forked client starts
for its run are asked for there.
"""

import asyncio
import contextlib
import gc
import importlib.metadata
import importlib.util
import json
import os
import runpy
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import BaseModel

from eval_client.cli.main import COMMANDS, SERVERS, main

PLAYING = frozenset({"demo", "extend", "play", "rescore", "resume", "run"})
READING = frozenset({"compare", "doctor", "envs", "export", "ls", "report", "show", "status", "view"})
CLIENTS = PLAYING | READING | {"init", "note", "plan", "rm", "stop"}
IMPORTED_LATE = {
    "clients": (
        "anyio._backends._asyncio",
        "environments.database.environment",
        "eval_client.report.run_tables",
        "proctor.http.bounded_protocol",
        "rich._emoji_codes",
        "sqlalchemy.dialects.sqlite",
        "tests.e2e.forks.forked_servers",
        "uvicorn.lifespan.off",
        "uvloop",
        "wreq",
    ),
    "servers": (
        "agent_server.serve",
        "environments.database.environment",
        "proctor.http.bounded_protocol",
        "task_server.heartbeat",
        "task_server.http.app",
        "task_server.serve",
        "task_server.worker.worker",
        "uvicorn.lifespan.off",
        "uvloop",
    ),
}
"""What the commands import once they are called."""
STARTED = {"PROCTOR_TESTS_START": "1"}
"""For a command that is to be started, not forked: its servers are its children, and its command line is its own."""
READ_AT_START = ("LANG", "LC_", "LD_", "PATH", "PYTHON", *STARTED)
"""How variables begin that a fork cannot be given: they are read before a command is, or by others who look for it."""
MARK = "PROCTOR_FAULTS_FARM"
"""A variable by whose value, of at most 15 characters, a test finds its processes. Of a fork the system shows the
variables of what it was forked from, so the value is its name too, and that of whatever is forked from it in turn."""
MOST_BYTES = 1 << 20
_FOLDERS = os.environ.get("PYTHONPATH", "").split(os.pathsep)


@dataclass(frozen=True)
class Request:
    """A command to fork, or a program of Python: then the arguments begin with -c or -m."""

    arguments: Sequence[str]
    folder: str
    environment: Mapping[str, str]
    apart: bool = False
    """In a session of its own, and nothing is imported from the folder: as a run begins its servers, and as the command
    that is installed does."""

    def send(self, connection: socket.socket, streams: Iterable[int]) -> int:
        """Ask for a process with these as its standard streams; a pipe to read its process id and exit code from."""
        told, telling = os.pipe()
        try:
            socket.send_fds(connection, [json.dumps(asdict(self)).encode()], [*streams, telling])
        finally:
            os.close(telling)
        return told


def read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that a fork cannot be given, folders of modules of its own aside."""
    chosen = {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}
    own = [folder for folder in _own_folders(environment) if not _only_adds(Path(folder))]
    return {**chosen, "PYTHONPATH": os.pathsep.join(own)}


def _own_folders(environment: Mapping[str, str]) -> list[str]:
    """Where it has modules that are not here."""
    folders = environment.get("PYTHONPATH", "").split(os.pathsep)
    return [folder for folder in folders if folder and folder not in _FOLDERS]


def _only_adds(folder: Path) -> bool:
    """Whether nothing in a folder is read at Python's start or hides a module or package of ours."""
    if folder == Path(__file__).parents[3]:
        return True
    names = {path.stem for path in folder.glob("*") if path.suffix == ".py" or (path / "__init__.py").is_file()}
    modules = (importlib.util.find_spec(name) for name in names if name.isidentifier())
    packages = {path.name.partition("-")[0] for path in folder.glob("*.dist-info")}
    ours = {found.name for found in importlib.metadata.distributions()}
    return not names & {"sitecustomize", "usercustomize"} and not packages & ours and not any(modules)


def serve(connection: socket.socket, prepare: Callable[[], None]) -> None:
    """Fork for each request; a process between tells how it ends. Only a forked command returns, ready to begin."""
    while True:
        request, descriptors, _, _ = socket.recv_fds(connection, MOST_BYTES, 4)
        _reap()
        if not request:
            sys.exit()
        prepare()
        if os.fork() == 0:
            connection.close()
            *streams, telling = descriptors
            if (forked := os.fork()) == 0:
                os.close(telling)
                become(Request(**json.loads(request)), streams)
                return
            for stream in streams:
                os.close(stream)
            with contextlib.suppress(BrokenPipeError):
                _tell(telling, forked)
            os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)


def _reap() -> None:
    """So that the time of those that have ended counts as ours."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _tell(telling: int, forked: int) -> None:
    try:
        os.write(telling, f"{forked}\n".encode())
    finally:
        _, status = os.waitpid(forked, 0)
    os.write(telling, str(os.waitstatus_to_exitcode(status)).encode())


def become(request: Request, streams: Sequence[int]) -> None:
    if request.apart:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    if MARK in request.environment:
        Path("/proc/self/comm").write_text(request.environment[MARK])
    sys.argv[1:] = request.arguments
    sys.path[:1] = [*([] if request.apart else [request.folder]), *_own_folders(request.environment)]


def _import(kind: str) -> None:
    for name in set(CLIENTS if kind == "clients" else SERVERS) & set(COMMANDS):  # a package may have the others
        importlib.import_module(f"eval_client.cli.{COMMANDS[name][0]}")
    for module in IMPORTED_LATE[kind]:
        importlib.import_module(module)
    _complete_models(BaseModel)
    assert tempfile.tempdir is None, "a fork's temporary files are where its own variables say"
    assert threading.active_count() == 1, "a fork has only the thread that forked"
    gc.freeze()


def _complete_models(base: type[BaseModel]) -> None:
    """Build the validators that each command would build when it first uses them."""
    for model in base.__subclasses__():
        model.model_rebuild(raise_errors=False)
        _complete_models(model)


def begin() -> None:
    """What `python -m eval_client.cli.main ARGUMENTS` does, or `python ARGUMENTS` where they begin with -c or -m."""
    how, *rest = sys.argv[1:] or [""]
    if how == "-m":
        sys.argv[:] = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif how == "-c":
        sys.argv[:] = [how, *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        main()


if __name__ == "__main__":
    kind, *sockets = sys.argv[1:]
    requests, *of_servers = (socket.socket(fileno=int(number)) for number in sockets)
    loaded: list[str] = []

    def import_once() -> None:
        if not loaded:
            _import(kind)
            loaded.append(kind)

    serve(requests, import_once)
    if of_servers:
        from tests.e2e.forks.forked_servers import forking

        asyncio.create_subprocess_exec = forking(of_servers[0], os.environ)  # type: ignore[assignment]  # it has not all attributes
    begin()
