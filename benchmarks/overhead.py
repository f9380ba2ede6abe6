"""What Proctor adds to a turn: an echo environment, an endpoint of known latency, everything a process of its own."""

import math
import os
import shutil
from collections.abc import Iterator

from benchmarks import floor
from benchmarks.client import Load, Took, took_by
from benchmarks.measure import Figure, figure, forget_peak, main, peak_mb
from benchmarks.world import QUICK_SAMPLES, SAMPLES, World, world
from eval_client.plan.plan import Plan
from proctor.types import Value

CPU_BUDGET_MS = 1.0
FLOOR_BUDGET = 3.5
"""Client and worker, as a multiple of the floor."""
CALLED_BUDGET = 0.58
"""A turn of a world in the client's process, as a multiple of one at a worker: 1.3 times what a client can reach."""
SHARE_WISHED = 0.95
SHARE_BUDGET = 0.85
"""Of the ideal where the floor is at most QUICK_FLOOR_MS, elsewhere of the turns that all cores allow."""
QUICK_FLOOR_MS = 0.07


class Case(Value):
    """One load."""

    in_flight: int
    turns: int = 8
    latency_ms: int = 0
    relayed: bool = False
    functions: int = 0
    """Functions that the task offers; 0: it is played in text."""
    history_kb: int = 0
    """What the first observation begins with."""
    in_process: bool = False
    """Whether the client plays the task itself."""

    def name(self) -> str:
        """As it stands in the results."""
        route = "in process" if self.in_process else "relayed" if self.relayed else "direct"
        protocol = f", {self.functions} functions" if self.functions else ""
        return f"{route}, {self.turns} turns, {self.latency_ms} ms, {self.in_flight} in flight{protocol}"

    def task(self) -> str:
        """The name of its task."""
        kind = f"-{self.functions}" if self.functions else f"-{self.history_kb}k" if self.history_kb else ""
        return f"echo-{self.turns}{kind}"

    def trials(self, turns: int) -> int:
        """As many as make so many turns, every slot used equally often."""
        return self.in_flight * math.ceil(turns / (self.in_flight * self.turns))

    def ideal_s(self, trials: int) -> float:
        """How long it would take if nothing but the endpoint took time."""
        return trials / self.in_flight * self.turns * self.latency_ms / 1000


BUDGETED = Case(in_flight=128)
IN_PROCESS = Case(in_flight=128, in_process=True)
AT_200 = Case(in_flight=200, latency_ms=50)


CASES = (
    BUDGETED,
    IN_PROCESS,
    AT_200,
    Case(in_flight=1),
    Case(in_flight=512),
    Case(in_flight=128, relayed=True),
    Case(in_flight=128, turns=2),
)


def measure(quick: bool) -> Iterator[Figure]:
    """Every case in one set of servers, and the floor between them."""
    with world(QUICK_SAMPLES if quick else SAMPLES) as servers:
        play(servers, Case(in_flight=10), 200)  # first calls warm the servers up
        floor_ms = posted_ms = 0.0
        for case in CASES[:3] if quick else CASES:
            took = play(servers, case, _turns(case, quick))
            yield from _figures(servers, case, took)
            if case == BUDGETED:
                for each in floor.measure(quick):
                    floor_ms = each.value if each.name == floor.BOTH else floor_ms
                    yield each
                posted_ms = 1000 * (took.cpu_s["client"] + took.cpu_s["worker"]) / took.turns
                beside = posted_ms / floor_ms
                yield figure(f"{case.name()}: client + worker beside the floor", beside, "times", at_most=FLOOR_BUDGET)
            if case == IN_PROCESS:
                beside = 1000 * took.cpu_s["client"] / took.turns / posted_ms
                yield figure(f"{case.name()}: client beside client + worker", beside, "times", at_most=CALLED_BUDGET)
            if case == AT_200:
                share = _share_allowed(case, took, floor_ms)
                yield figure(f"{case.name()}: share of what the machine allows", share, "", at_least=SHARE_BUDGET)


def _share_allowed(case: Case, took: Took, floor_ms: float) -> float:
    """Of the ideal, where the floor is low; else of the rate at which no core would ever wait."""
    if floor_ms <= QUICK_FLOOR_MS:
        return case.ideal_s(took.scored) / took.wall_s
    return sum(took.cpu_s.values()) / took.wall_s / (os.cpu_count() or 1)


def _turns(case: Case, quick: bool) -> int:
    """Some seconds of work, and at least two trials for each slot; one in a quick run."""
    if quick:
        return case.in_flight * case.turns
    some = min(8_000, case.in_flight * 80) if case.latency_ms else 8_000 if case == BUDGETED else 2_000
    return max(some, 2 * case.in_flight * case.turns)


def _figures(servers: World, case: Case, took: Took) -> Iterator[Figure]:
    name, per_turn = case.name(), {part: 1000 * used / took.turns for part, used in took.cpu_s.items()}
    yield figure(f"{name}: turns/s", took.turns / took.wall_s, "1/s")
    ours = per_turn["client"] + per_turn["worker"]
    yield figure(f"{name}: client + worker", ours, "ms CPU/turn", at_most=CPU_BUDGET_MS if case == BUDGETED else None)
    for part, used in per_turn.items():
        yield figure(f"{name}: {part}", used, "ms CPU/turn")
    if case.latency_ms:
        share = case.ideal_s(took.scored) / took.wall_s
        yield figure(f"{name}: share of the ideal", share, "", at_least=SHARE_WISHED if case == AT_200 else None)
    yield figure(f"{name}: cores busy", sum(took.cpu_s.values()) / took.wall_s, "cores")
    yield figure(f"{name}: client's core busy", took.cpu_s["client"] / took.wall_s, "cores")
    yield figure(f"{name}: client peak", took.peak_mb, "MB")
    for part in ("controller", "worker"):
        yield figure(f"{name}: {part} peak", peak_mb(servers.pids()[part]), "MB")


def play(servers: World, case: Case, turns: int) -> Took:
    """Play a case to its end; what it took."""
    plan = Plan.model_validate(
        {
            "controller": "local" if case.in_process else servers.controller.url,
            "route": "relayed" if case.relayed else "auto",
            "endpoints": [
                {
                    "name": "e",
                    "base_url": f"{servers.endpoint.url}/{case.latency_ms}{'/calls' if case.functions else ''}/v1",
                    "concurrency": case.in_flight,
                }
            ],
            "agents": [{"name": "a", "endpoint": "e", "model": "echo", "concurrency": case.in_flight}],
            "tasks": [servers.tasks[case.task()] if case.in_process else {"name": case.task()}],
            "tls": {"ca": servers.ca},
        }
    )
    folder = servers.folder / "run"
    load = Load(plan=plan, trials=case.trials(turns), folder=folder, servers=servers.pids(), in_process=case.in_process)
    for pid in servers.pids().values():
        forget_peak(pid)
    try:
        took = took_by(load, servers.environment)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if took.turns != load.trials * case.turns:
        raise SystemExit(f"{case.name()}: {took.turns} turns instead of {load.trials * case.turns}: {took.causes}")
    return took


if __name__ == "__main__":
    main(measure, __doc__)
