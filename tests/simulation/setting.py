"""What a seed stands for: a plan, servers for it, and what befalls them when."""

import random
from collections.abc import Sequence
from typing import NamedTuple

from eval_client.core.spend import RunLimits
from eval_client.plan.entries import AgentEntry, Endpoint, Limits, RemoteTask, TrialLimits
from eval_client.plan.plan import Plan
from proctor.config.task import TaskDefinition
from tests.simulation.game import COMPLETION_TOKENS, DRIFT, LONG, POISON, PROMPT_TOKENS
from tests.simulation.network import Weather


class Fault(NamedTuple):
    """Something that befalls a part from a moment on; some pass after a while."""

    at: float
    kind: str
    for_s: float
    part: int
    """Which of the parts of its kind: a number to be taken modulo how many there are."""


class Setting(NamedTuple):
    """A history before it happens."""

    plan: Plan
    definitions: tuple[TaskDefinition, ...]
    workers: int
    capacity: int
    lone: bool
    """One worker without a controller."""
    from_the_start: bool
    """Faults begin before anything is played, not only when a client is at work."""
    locks: bool
    """A second client is held off by the run's lock, not only by the fence."""
    weather: Weather
    slow_step: float
    """Chance of a step that takes very long."""
    longest_thought_s: float
    """Of a model before an answer."""
    faults: tuple[Fault, ...]
    quiet_at: float


KINDS = (
    *("kill client", "kill client", "stop client", "interrupt client", "second client"),
    *("kill worker", "kill worker", "stop worker", "terminate worker"),
    *("kill controller", "kill controller", "stop controller"),
    *("cut worker and controller", "cut worker to controller", "cut controller to worker"),
    *("cut client and worker", "cut worker to client", "cut client and controller"),
    *("trouble with the disk", "unheard commits"),
    *("throttling endpoint", "failing endpoint", "babbling endpoint", "silent endpoint"),
    "wall clock jumps",
)


def draw(rng: random.Random, kinds: Sequence[str]) -> Setting:
    """A history; each takes only a few kinds of faults, so that each kind is met in quiet and in company."""
    lone = rng.random() < 0.15
    faults, quiet_at = _faults(rng, kinds)
    definitions = tuple(_task(rng, f"t{n}") for n in range(rng.choice([1, 1, 2])))
    slow_s = rng.choice((1.0, 5.0, 40.0))
    weather = Weather(
        latency_s=rng.choice([0.01, 0.1]),
        slow=rng.choice([0.0, 0.0, 0.02]),
        slow_s=slow_s,
        lost=rng.choice([0.0, 0.0, 0.02, 0.06]),
        doubled=rng.choice([0.0, 0.0, 0.1]),
    )
    capacity = rng.randint(1, 3)
    return Setting(
        plan=_plan(rng, definitions, "http://w0" if lone else "http://controller"),
        definitions=tuple(task.model_copy(update={"capacity": capacity}) for task in definitions),
        workers=1 if lone else rng.choice([1, 2, 2, 3]),
        capacity=capacity,
        lone=lone,
        from_the_start=rng.random() < 0.25,
        locks=rng.random() < 0.5,
        weather=weather,
        slow_step=rng.choice((0.0, 0.0, 0.0, 0.02)),
        longest_thought_s=rng.choice((0.5, 2.0, 2.0, 20.0)),
        faults=faults,
        quiet_at=quiet_at,
    )


def _faults(rng: random.Random, allowed: Sequence[str]) -> tuple[tuple[Fault, ...], float]:
    span_s = rng.choice((3.0, 6.0, 12.0))
    kinds = rng.sample(allowed, min(len(allowed), rng.randint(1, 4)))
    faults = [
        Fault(
            at=rng.uniform(0.0, span_s),
            kind=rng.choice(kinds),
            for_s=rng.choice((0.3, 2.0, 8.0, 14.0)) * rng.uniform(0.5, 1.5),
            part=rng.randrange(12),
        )
        for _ in range(rng.randint(1, 5))
    ]
    return tuple(sorted(faults)), span_s + rng.choice((0.0, 5.0))


def _task(rng: random.Random, name: str) -> TaskDefinition:
    samples = ["a", "b"][: rng.randint(1, 2)]
    samples += [sample for sample in (POISON, LONG, DRIFT, DRIFT) if rng.random() < 0.15][:2]
    samples = list(dict.fromkeys(samples))
    turns = rng.randint(1, 3)
    return TaskDefinition(
        name=name, environment="chain", parameters={"name": name, "turns": turns, "listed": list(samples)}
    )


def _plan(rng: random.Random, tasks: tuple[TaskDefinition, ...], controller: str) -> Plan:
    agents = ["x", "y"][: rng.choice([1, 1, 2])]
    shared = rng.random() < 0.5
    names = [f"e{0 if shared else n}" for n in range(len(agents))]
    limit = rng.choice([None, None, None, 2])
    run_tokens = rng.choice([None, None, None, 3 * (PROMPT_TOKENS + COMPLETION_TOKENS)])
    return Plan(
        name="simulated",
        seed=rng.randrange(1000),
        epochs=rng.choice((1, 1, 2)),
        controller=controller,
        route=rng.choice(["auto", "auto", "relayed"]),
        endpoints=tuple(
            Endpoint(
                name=name,
                base_url=f"http://{name}/v1",
                concurrency=rng.randint(1, 4),
                deadline_s=rng.choice((25.0, 60.0)),
                max_tries=rng.randint(2, 5),
                max_retry_s=60.0,
                patience_s=3600.0,
                shared=False,
            )
            for name in dict.fromkeys(names)
        ),
        agents=tuple(
            AgentEntry(
                name=agent,
                endpoint=name,
                concurrency=rng.randint(1, 4),
                metadata=True,
                sampling={"max_tokens": COMPLETION_TOKENS},
            )
            for agent, name in zip(agents, names, strict=True)
        ),
        tasks=tuple(RemoteTask(name=task.name) for task in tasks),
        limits=Limits(
            trial=TrialLimits(turns=limit),
            run=RunLimits(tokens=run_tokens),
            attempts=rng.randint(1, 4),
            patience_s=rng.choice([5.0, 20.0, 60.0]),
        ),
    )
