"""The path of a turn, and of a fault: our calls and files in the client's process.

A turn goes from one reply of the worker to the next; a fault from a task server's error to the trial's durable row.

Counted are the `call` events of `sys.setprofile` in files of our packages, in all threads, the journal's included, but
no resumptions of coroutines and generators: how often those wait differs from turn to turn. `--list` prints the calls
of a turn, `--list fault` of a fault.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType

from benchmarks import echo
from benchmarks.measure import Figure, figure, main
from eval_client.plan.plan import Plan
from eval_client.run.context import RunContext
from eval_client.run.execute import execute
from eval_client.run.request import RunRequest
from eval_client.store.runs import open_store
from proctor import event_loop

PACKAGES = ("proctor", "agent_server", "task_server", "eval_client", "environments")
ROOT = Path(__file__).resolve().parents[1]
TURNS = 12
FAULTS = 3
BEGIN = "proctor/session/transcript.py Transcript.observe"
"""The call that begins a turn."""
FAULT = "task_server/http/transport.py _refusal"
SETTLED, DURABLE = (f"eval_client/store/journal.py {name}" for name in ("Journal.finish", "resolve"))
"""The call that begins a fault's way, that which queues its row, and that which tells that it is durable."""
PLAN = {
    "agents": [{"name": "a", "builtin": "reference"}],
    "tasks": [{"name": "t", "environment": echo.NAME, "parameters": {"turns": TURNS, "count": 1}}],
    "limits": {"attempts": 1},
}


def measure(quick: bool) -> Iterator[Figure]:
    """The calls and files of one turn and of one fault."""
    turn, fault = path(), fault_path()
    yield figure("calls of a turn", len(turn), "calls", at_most=90)
    yield figure("files of a turn", len(files(turn)), "files", at_most=16)
    yield figure("calls of a fault", len(fault), "calls")
    yield figure("files of a fault", len(files(fault)), "files", at_most=20)


def files(calls: Sequence[str]) -> set[str]:
    """The files that some calls are in."""
    return {call.split()[0] for call in calls}


Player = Callable[[list[str], dict[str, str]], str]
"""Gives what a program of Python prints, by its arguments and environment."""


def _start(arguments: list[str], environment: dict[str, str]) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def path(player: Player = _start) -> list[str]:
    """The calls of a turn, each as `FILE FUNCTION`: the shortest, beside which the client does nothing else."""
    turns = [turn.splitlines() for turn in _played("turns", player).split(f"{BEGIN}\n")[3:-1]]
    return [BEGIN, *min(turns, key=len)]


def fault_path(player: Player = _start) -> list[str]:
    """The calls from a task server's error to the trial's durable row: the shortest of several, as with a turn."""
    return min((_one_fault_path(player) for _ in range(FAULTS)), key=len)


def _one_fault_path(player: Player) -> list[str]:
    calls = _played("fault", player).splitlines()
    settled = calls.index(SETTLED)
    begin = max(number for number, call in enumerate(calls[:settled]) if call == FAULT)
    return calls[begin : calls.index(DURABLE, settled) + 1]


def _played(what: str, player: Player) -> str:
    """All calls of a run in a process of its own, one a line."""
    with tempfile.TemporaryDirectory(prefix="proctor-bench-") as folder:
        environment = {**os.environ, "PYTHONPATH": echo.install(Path(folder))}
        return player(["-m", "benchmarks.turn_path", "--play", what, folder], environment)


@contextlib.contextmanager
def watch_only(_: RunContext) -> Iterator[None]:
    """Let the run play on."""
    yield


@contextlib.contextmanager
def lose_session(context: RunContext) -> Iterator[None]:
    """End the trial's session at its worker after two turns: the next turn is answered by an error."""

    loop, endings = asyncio.get_running_loop(), list[asyncio.Task[None]]()

    def lose() -> None:
        if context.journal.turns < 2:
            loop.call_later(0.001, lose)
        else:
            [(url, (session,))] = context.player.sessions().items()
            endings.append(loop.create_task(context.client.end(session, url)))

    loop.call_soon(lose)
    yield


STARTS = 8
"""No instruction of a coroutine or generator that waits stands so far in front."""


def play(folder: Path, watch: Callable[[RunContext], AbstractContextManager[None]]) -> list[str]:
    """Play the run in this process; every call in our packages."""
    ours = tuple(f"{ROOT}/{package}/" for package in PACKAGES)
    calls: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        starts = frame.f_lasti <= STARTS
        if event == "call" and starts and code.co_filename.startswith(ours):
            calls.append(f"{code.co_filename.removeprefix(f'{ROOT}/')} {code.co_qualname}")

    store = open_store(None, folder / "run")
    request = RunRequest(Plan.model_validate(PLAN), "bench", store, folder / "run", resume=False)
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        event_loop.run(execute(request, watch))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls


if __name__ == "__main__":
    if sys.argv[1:2] == ["--play"]:
        print("\n".join(play(Path(sys.argv[3]), lose_session if sys.argv[2] == "fault" else watch_only)))
    elif sys.argv[1:2] == ["--list"]:
        print("\n".join(fault_path() if sys.argv[2:] == ["fault"] else path()))
    else:
        main(measure, __doc__)
