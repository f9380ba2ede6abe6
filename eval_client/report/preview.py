"""How many trials and model calls a plan would run, computed without running it."""

from typing import NamedTuple

from eval_client.core.statistics.power import detectable_at_worst
from eval_client.plan import Plan

ALPHA, POWER = 0.05, 0.8


class Volume(NamedTuple):
    """Samples and turns that a pair of agent and task plays at most."""

    agent: str
    task: str
    samples: int | None
    """None where only the controller knows the number."""
    turns: int | None
    """Turns of a trial; None where they are unbounded."""


def volumes(plan: Plan, limit: int | None) -> list[Volume]:
    """The volume of every pair, in the plan's order; `limit` bounds the samples per task. Raises FileError."""
    sizes: dict[str, tuple[int, int | None]] = {}
    for definition in plan.definitions():
        environment = definition.build()
        turns = _most_turns(plan.limits.trial.turns, environment.max_turns)
        sizes[definition.name] = len(environment.samples()[:limit]), turns
    return [Volume(agent, task, *sizes.get(task, (None, plan.limits.trial.turns))) for agent, task in plan.pairs()]


def preview(plan: Plan, limit: int | None) -> str:
    """One line per pair, then total trials and model calls; numbers that only a controller knows are left out."""
    lines = []
    trials = calls = 0
    unbounded = False
    for agent, task, samples, turns in volumes(plan, limit):
        if samples is None:
            lines.append(f"{agent} x {task}: samples known to the controller only")
            unbounded = True
            continue
        trials += samples * plan.epochs
        calls += samples * plan.epochs * (turns or 0)
        unbounded = unbounded or turns is None
        each = "turns unbounded (set limits.trial.turns)" if turns is None else f"at most {turns} turns each"
        lines.append(f"{agent} x {task}: {samples} samples x {plan.epochs} epochs, {each}")
    more = " and more whose number is not known here" if unbounded else ""
    lines += _detectable(plan, limit)
    return "\n".join([*lines, f"total: {trials} trials, at most {calls} model calls{more}"])


def _detectable(plan: Plan, limit: int | None) -> list[str]:
    """A line per task: the smallest difference of two agents that its samples can show at worst."""
    lines = []
    for definition in plan.definitions():
        environment = definition.build()
        worlds = len({environment.cluster(sample) for sample in environment.samples()[:limit]})
        if worlds > 1:
            apart, alike = (min(detectable_at_worst(worlds, each, ALPHA, POWER), 1.0) for each in (0.0, 0.5))
            told_apart = f"two agents are told apart from a difference of {apart:.2f} on"
            correlated = f"{alike:.2f} where their scores correlate by 0.5"
            basis = f"{worlds} independent samples, power {POWER}, alpha {ALPHA}"
            lines.append(f"{definition.name}: {told_apart}, or {correlated} ({basis})")
    return lines


def _most_turns(of_plan: int | None, of_environment: int | None) -> int | None:
    known = [turns for turns in (of_plan, of_environment) if turns is not None]
    return min(known) if known else None
