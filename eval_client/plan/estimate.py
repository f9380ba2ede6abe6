"""What a plan will probably cost, computed without running it."""

import functools
import math
from collections.abc import Iterable, Mapping
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from eval_client.core.spend import Tokens
from eval_client.plan.plan import Plan
from proctor.tables.table import money_text
from proctor.types import Value

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
        return TrialUsage(
            calls=calls,
            prompt_tokens=round(self.prompt_tokens * share),
            completion_tokens=round(self.completion_tokens * share),
        )


def typical_usage(environment: str, protocol: str) -> TrialUsage | None:
    """The typical usage of a trial in an environment that Proctor ships, with its default parameters; else None."""
    return _table().get(environment, {}).get(protocol)


@functools.cache
def _table() -> dict[str, dict[str, TrialUsage]]:
    return TypeAdapter(dict[str, dict[str, TrialUsage]]).validate_json(FILE.read_bytes())


class Typical(NamedTuple):
    """How many samples of a task are played, and what a trial of it typically needs."""

    samples: int
    usage: TrialUsage | None
    """None where that was not measured."""


class PairCost(NamedTuple):
    """What an agent probably needs for a task."""

    calls: int
    tokens: Tokens
    money: float | None
    """None where the price is not known."""

    def text(self) -> str:
        """In words."""
        money = "no price is known" if self.money is None else f"money {money_text(self.money)}"
        return f"{self.calls:,} calls, {self.tokens.prompt:,} tokens in, {self.tokens.completion:,} out, {money}"


def estimate(plan: Plan, tasks: Mapping[str, Typical]) -> list[str]:
    """A line for each pair whose agent is a model, and a total; none where nothing is known."""
    costs: dict[tuple[str, str], PairCost] = {}
    unknown: list[str] = []
    for name, task in plan.pairs():
        agent = plan.agent(name)
        if not agent.is_model:
            continue
        typical = tasks.get(task)
        if typical is None or typical.usage is None:
            unknown.append(f"{name} x {task}")
            continue
        trials, usage = typical.samples * plan.epochs, typical.usage
        tokens = Tokens(usage.prompt_tokens * trials, usage.completion_tokens * trials)
        price = plan.price_of(agent)
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
    tokens = reduce(Tokens.plus, (cost.tokens for cost in each))
    return PairCost(sum(cost.calls for cost in each), tokens, math.fsum(known) if known else None)


def _have_models(plan: Plan) -> bool:
    """Whether a task has a model of its own, such as a judge."""
    parameters = (value for task in plan.definitions() for value in task.parameters.values())
    return any(isinstance(value, dict) and "model" in value for value in parameters)
