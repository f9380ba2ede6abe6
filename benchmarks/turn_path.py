"""The path of a turn: our calls and files in the client's process, from one reply of the worker to the next.

Counted are the `call` events of `sys.setprofile` in files of our packages, in all threads, the journal's included: each
resumption of a coroutine or generator counts again. `--list` prints the calls of a turn.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from benchmarks import echo
from benchmarks.measure import Figure, figure, main
from eval_client.execute import RunRequest, execute
from eval_client.plan import Plan
from eval_client.store.run_folders import open_store
from proctor import event_loop

PACKAGES = ("proctor", "agent_server", "task_server", "eval_client", "environments")
ROOT = Path(__file__).resolve().parents[1]
TURNS = 12
BEGIN = "proctor/environment.py Transcript.observe"
"""The call that begins a turn."""
PLAN = {
    "agents": [{"name": "a", "builtin": "reference"}],
    "tasks": [{"name": "t", "environment": echo.NAME, "parameters": {"turns": TURNS, "count": 1}}],
}


def measure(quick: bool) -> Iterator[Figure]:
    """The calls and files of one turn."""
    calls = path()
    yield figure("calls", len(calls), "calls/turn", at_most=90)
    yield figure("files", len({call.split()[0] for call in calls}), "files/turn", at_most=16)


def path() -> list[str]:
    """The calls of a turn, each as `FILE FUNCTION`: the shortest, beside which the client does nothing else."""
    with tempfile.TemporaryDirectory(prefix="proctor-bench-") as folder:
        environment = {**os.environ, "PYTHONPATH": echo.install(Path(folder))}
        command = [sys.executable, "-m", "benchmarks.turn_path", "--play", folder]
        calls = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    turns = [turn.splitlines() for turn in calls.split(f"{BEGIN}\n")[3:-1]]
    return [BEGIN, *min(turns, key=len)]


def play(folder: Path) -> list[str]:
    """Play the run in this process; every call in our packages."""
    ours = tuple(f"{ROOT}/{package}/" for package in PACKAGES)
    calls: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ours):
            calls.append(f"{code.co_filename.removeprefix(f'{ROOT}/')} {code.co_qualname}")

    store = open_store(None, folder / "run")
    request = RunRequest(Plan.model_validate(PLAN), "bench", store, folder / "run", resume=False)
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        event_loop.run(execute(request, lambda _: contextlib.nullcontext()))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls


if __name__ == "__main__":
    if sys.argv[1:2] == ["--play"]:
        print("\n".join(play(Path(sys.argv[2]))))
    elif sys.argv[1:] == ["--list"]:
        print("\n".join(path()))
    else:
        main(measure, __doc__)
