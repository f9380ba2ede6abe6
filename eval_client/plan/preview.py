"""How many trials and model calls a plan would run, computed without running it."""

from collections.abc import Mapping
from typing import NamedTuple

from eval_client.core.selection import NO_FILTERS, Catalogue, ChosenSamples, Filters, catalogue_of
from eval_client.core.statistics.power import detectable_at_worst
from eval_client.plan.estimate import TrialUsage, Typical, estimate, typical_usage
from eval_client.plan.filters import choose_samples
from eval_client.plan.plan import Plan
from proctor.environment import protocol_of

ALPHA, POWER = 0.05, 0.8


class Volume(NamedTuple):
    """Samples and turns that a pair of agent and task plays at most."""

    agent: str
    task: str
    samples: int | None
    """None where only the controller knows the number."""
    turns: int | None
    """Turns of a trial; None where they are unbounded."""


class PlannedTask(NamedTuple):
    """A task of the plan whose data this machine can read."""

    catalogue: Catalogue
    chosen: ChosenSamples
    turns: int | None
    """The maximum number of turns of a trial; None where they are unbounded."""
    usage: TrialUsage | None
    """What a trial typically needs; None where that was not measured."""


def planned_tasks(plan: Plan, limit: int | None, filters: Filters = NO_FILTERS) -> dict[str, PlannedTask]:
    """The tasks that the plan defines, by name; `limit` bounds the samples per task.

    Raises FileError, SelectionError.
    """
    environments = {definition.name: definition.build() for definition in plan.definitions()}
    catalogues = {name: catalogue_of(environment) for name, environment in environments.items()}
    chosen = choose_samples(plan, catalogues, filters, limit)
    planned = {}
    for definition in plan.definitions():
        name, environment = definition.name, environments[definition.name]
        usage = typical_usage(definition.environment, protocol_of(environment))
        turns = _most_turns(plan.limits.trial.turns, environment.max_turns)
        planned[name] = PlannedTask(catalogues[name], chosen[name], turns, usage and usage.at_most(turns))
    return planned


def volumes(plan: Plan, planned: Mapping[str, PlannedTask]) -> list[Volume]:
    """The volume of every pair, in the plan's order."""
    sizes = {name: (len(task.chosen.samples), task.turns) for name, task in planned.items()}
    return [Volume(agent, task, *sizes.get(task, (None, plan.limits.trial.turns))) for agent, task in plan.pairs()]


def preview(plan: Plan, limit: int | None, filters: Filters = NO_FILTERS) -> str:
    """One line per pair, then total trials and model calls; numbers that only a controller knows are left out.

    Raises FileError, SelectionError.
    """
    planned = planned_tasks(plan, limit, filters)
    lines = list(filters.left_out)
    lines += [f"{name}: {task.chosen.text}" for name, task in planned.items() if task.chosen.text]
    trials = calls = 0
    unbounded = False
    for agent, task, samples, turns in volumes(plan, planned):
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
    lines += _detectable(planned)
    lines += estimate(plan, {name: Typical(len(of.chosen.samples), of.usage) for name, of in planned.items()})
    return "\n".join([*lines, f"total: {trials} trials, at most {calls} model calls{more}"])


def _detectable(planned: Mapping[str, PlannedTask]) -> list[str]:
    """A line per task: the smallest difference of two agents that its samples can show at worst."""
    lines = []
    alpha = ALPHA / max(1, len(planned))
    tests = "one test" if len(planned) == 1 else f"{len(planned)} tests"
    for name, task in planned.items():
        worlds = len({task.catalogue.cluster_of[sample] for sample in task.chosen.samples})
        apart, alike = (detectable_at_worst(worlds, each, alpha, POWER) for each in (0.0, 0.5))
        if apart is None or alike is None:
            lines.append(f"{name}: {worlds} independent samples can't tell two agents apart (alpha {ALPHA}, {tests})")
        else:
            told_apart = f"two agents are told apart from a difference of {apart:.2f} on"
            correlated = f"{alike:.2f} where their scores correlate by 0.5"
            basis = f"{worlds} independent samples, power {POWER}, alpha {ALPHA}, {tests}"
            lines.append(f"{name}: {told_apart}, or {correlated} ({basis})")
    return lines


def _most_turns(of_plan: int | None, of_environment: int | None) -> int | None:
    known = [turns for turns in (of_plan, of_environment) if turns is not None]
    return min(known) if known else None
