"""One evaluation client for a benchmark: `python -m benchmarks.client ORDER_JSON` plays a run and says what it took.

A process of its own, so that its CPU and memory are the client's and nothing else's.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.measure import cpu_s, peak_mb
from eval_client.plan.plan import Plan
from eval_client.run.context import RunContext
from eval_client.run.execute import execute
from eval_client.run.request import RunRequest
from eval_client.store.runs import open_store
from proctor import event_loop
from proctor.types import Value


class Load(Value):
    """What to play."""

    plan: Plan
    trials: int
    folder: Path
    servers: dict[str, int]
    """part -> process id"""
    in_process: bool = False
    """Whether the client plays the tasks itself."""
    store: str | None = None
    """URL of a database server; with it, the client says when it is ready, and plays when standard input says so."""
    """Beside the clients that work on the run already; its name is the folder's."""


class Took(Value):
    """What it took, from the first start to the last finish."""

    wall_s: float
    cpu_s: dict[str, float]
    """By part, the client's own under `client`."""
    peak_mb: float
    turns: int
    scored: int
    causes: dict[str, int]


def play(load: Load) -> Took:
    """Play the run; what was used in between."""
    processes = {"client": os.getpid(), **load.servers}
    took: list[Took] = []

    @contextlib.contextmanager
    def watch(context: RunContext) -> Iterator[None]:
        progress = context.progress
        if load.store is not None:
            print("ready", flush=True)
            sys.stdin.readline()  # the event loop stands still; heartbeats have a thread of their own
        before, begun = {part: cpu_s(pid) for part, pid in processes.items()}, time.monotonic()
        yield
        wall_s = time.monotonic() - begun
        used = {part: cpu_s(pid) - before[part] for part, pid in processes.items()}
        scored = sum(progress.scored.values())
        took.append(
            Took(
                wall_s=wall_s,
                cpu_s=used,
                peak_mb=peak_mb(os.getpid()),
                turns=context.journal.turns,
                scored=scored,
                causes=progress.causes,
            )
        )

    store = open_store(load.store, load.folder)
    request = RunRequest(
        load.plan, "bench", store, load.folder, resume=False, limit=load.trials, in_process=load.in_process
    )
    event_loop.run(execute(request, watch))
    return took[0]


def took_by(load: Load, environment: Mapping[str, str]) -> Took:
    """What a client in a process of its own took."""
    command = [sys.executable, "-m", "benchmarks.client", load.model_dump_json()]
    played = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if played.returncode:
        raise SystemExit(played.stderr)
    return Took.model_validate_json(played.stdout)


if __name__ == "__main__":
    print(play(Load.model_validate_json(sys.argv[1])).model_dump_json())
