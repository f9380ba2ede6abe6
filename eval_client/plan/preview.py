"""How many trials and model calls a plan would run, and what it will probably cost, computed without running it."""

import functools
import math
from collections.abc import Iterable, Mapping
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from eval_client.core.selection import NO_FILTERS, Catalogue, ChosenSamples, Filters, catalogue_of
from eval_client.core.statistics.power import detectable_at_worst
from eval_client.plan.filters import choose_samples
from eval_client.plan.plan import Plan
from proctor.environment import protocol_of
from proctor.tables.table import counted, money_text
from proctor.types import Usage, Value

ALPHA, POWER = 0.05, 0.8
BASIS = (
    "estimate, by the medians of the reference policies on the samples that Proctor ships, four characters to a token; "
    "a model may need several times as much, and its reasoning comes on top:"
)
FILE = Path(__file__).with_name("usage.json")
"""environment -> protocol -> its usage"""


class TrialUsage(Value):
    """Calls and tokens of one trial; a token is four ASCII characters, or one of another kind."""

    calls: int
    prompt_tokens: int
    """Over all calls: each of them sends the whole conversation again."""
    completion_tokens: int

    def at_most(self, calls: int | None) -> "TrialUsage":
        """The usage where a trial may have no more calls: the share of it that they are."""
        if calls is None or calls >= self.calls:
            return self
        share = calls / self.calls
        prompt, completion = round(self.prompt_tokens * share), round(self.completion_tokens * share)
        return TrialUsage(calls=calls, prompt_tokens=prompt, completion_tokens=completion)


class PlannedTask(NamedTuple):
    """A task of the plan whose data this machine can read."""

    catalogue: Catalogue
    chosen: ChosenSamples
    turns: int | None
    """The maximum number of turns of a trial; None where they are unbounded."""
    usage: TrialUsage | None
    """What a trial typically needs; None where that was not measured."""

    @property
    def samples(self) -> int:
        """How many are played."""
        return len(self.chosen.samples)


class PairCost(NamedTuple):
    """What an agent probably needs for a task."""

    calls: int
    tokens: Usage
    money: float | None
    """None where the price is not known."""

    def text(self) -> str:
        """In words."""
        money = "no price is known" if self.money is None else f"money {money_text(self.money)}"
        tokens_in, tokens_out = self.tokens[:2]
        return f"{self.calls:,} calls, {tokens_in:,} tokens in, {tokens_out:,} out, {money}"


def typical_usage(environment: str, protocol: str) -> TrialUsage | None:
    """The typical usage of a trial in an environment that Proctor ships, with its default parameters; else None."""
    return _usages().get(environment, {}).get(protocol)


@functools.cache
def _usages() -> dict[str, dict[str, TrialUsage]]:
    return TypeAdapter(dict[str, dict[str, TrialUsage]]).validate_json(FILE.read_bytes())


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
        known = [turns for turns in (plan.limits.trial.turns, environment.max_turns) if turns is not None]
        turns = min(known, default=None)
        planned[name] = PlannedTask(catalogues[name], chosen[name], turns, usage and usage.at_most(turns))
    return planned


def preview(plan: Plan, limit: int | None, filters: Filters = NO_FILTERS) -> str:
    """One line per pair, then total trials and model calls; numbers that only a controller knows are left out.

    Raises FileError, SelectionError.
    """
    planned = planned_tasks(plan, limit, filters)
    lines = list(filters.left_out)
    lines += [f"{name}: {task.chosen.text}" for name, task in planned.items() if task.chosen.text]
    trials = calls = 0
    unbounded = False
    for agent, name in plan.pairs():
        if (task := planned.get(name)) is None:
            lines.append(f"{agent} x {name}: samples known to the controller only")
            unbounded = True
            continue
        trials += task.samples * plan.epochs
        calls += task.samples * plan.epochs * (task.turns or 0)
        unbounded = unbounded or task.turns is None
        each = (
            f"at most {counted(task.turns, 'turn')} each" if task.turns else "turns unbounded (set limits.trial.turns)"
        )
        lines.append(f"{agent} x {name}: {counted(task.samples, 'sample')} x {counted(plan.epochs, 'epoch')}, {each}")
    more = " and more whose number is not known here" if unbounded else ""
    lines += [*_detectable(planned), *_estimate(plan, planned)]
    return "\n".join([*lines, f"total: {counted(trials, 'trial')}, at most {counted(calls, 'model call')}{more}"])


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


def _estimate(plan: Plan, planned: Mapping[str, PlannedTask]) -> list[str]:
    """A line for each pair whose agent is a model, and a total; none where nothing is known."""
    costs: dict[tuple[str, str], PairCost] = {}
    unknown: list[str] = []
    for name, task in plan.pairs():
        agent, of = plan.agent(name), planned.get(task)
        if not agent.is_model:
            continue
        if of is None or of.usage is None or agent.is_scaffold:
            unknown.append(f"{name} x {task}")
            continue
        trials, usage, price = of.samples * plan.epochs, of.usage, plan.price_of(agent)
        tokens = Usage(usage.prompt_tokens * trials, usage.completion_tokens * trials)
        costs[name, task] = PairCost(usage.calls * trials, tokens, None if price is None else price.of(tokens))
    if not costs:
        return []
    lines = [f"  {agent} x {task}: {cost.text()}" for (agent, task), cost in costs.items()]
    unpriced = dict.fromkeys(agent for (agent, _), cost in costs.items() if cost.money is None)
    notes = [
        f"not estimated: {', '.join(unknown)}" if unknown else None,
        "not estimated: the tasks' own models (judges, hosts, users)" if _have_models(plan) else None,
        f"no price of {', '.join(unpriced)}: add `price`, or `price_list: shipped`" if unpriced else None,
        plan.price_note(),
    ]
    return [BASIS, *lines, f"  total: {_sum(costs.values()).text()}", *(f"  {note}" for note in notes if note)]


def _sum(costs: Iterable[PairCost]) -> PairCost:
    """All costs together; money as far as prices are known."""
    each = list(costs)
    known = [cost.money for cost in each if cost.money is not None]
    tokens = reduce(Usage.plus, (cost.tokens for cost in each))
    return PairCost(sum(cost.calls for cost in each), tokens, math.fsum(known) if known else None)


def _have_models(plan: Plan) -> bool:
    """Whether a task has a model of its own, such as a judge."""
    parameters = [value for task in plan.definitions() for value in task.parameters.values()]
    several = [each for value in parameters if isinstance(value, list) for each in value]
    return any(isinstance(value, dict) and "model" in value for value in (*parameters, *several))
