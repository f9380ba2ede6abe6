"""Pure: the spending of a run, and whether it is within its limits."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Literal, NamedTuple

from pydantic import Field

from proctor.tables.table import money_text
from proctor.types import NO_USAGE, Usage, Value

SpendLimit = Literal["tokens", "money"]
OUT_OF: dict[SpendLimit, str] = {"tokens": "out_of_tokens", "money": "out_of_money"}
"""limit -> the state of a run that it stopped"""
HELPER = "environment:"
"""Prefix for the names of environment models (judges, hosts, users) in tables that list agents too."""


class Need(NamedTuple):
    """What something is estimated to cost."""

    tokens: float = 0.0
    money: float = 0.0

    def plus(self, other: "Need") -> "Need":
        """The sum."""
        return Need(self.tokens + other.tokens, self.money + other.money)

    def minus(self, other: "Need") -> "Need":
        """The difference, at least 0."""
        return Need(max(0.0, self.tokens - other.tokens), max(0.0, self.money - other.money))


NOTHING = Need()


class Price(Value):
    """Money per million tokens, in any one currency."""

    input: float = Field(ge=0)
    """Of prompt tokens."""
    output: float = Field(ge=0)
    """Of completion tokens."""
    cached_input: float | None = Field(default=None, ge=0, exclude_if=lambda price: price is None)
    """Of the prompt tokens that the endpoint had in its cache, as it reports them; like `input` if absent."""
    cache_write: float | None = Field(default=None, ge=0, exclude_if=lambda price: price is None)
    """Of the prompt tokens that the endpoint put into its cache, as it reports them; if absent, 1.25 times `input`
    where there is a `cached_input`, else like `input`."""

    def of(self, tokens: Usage) -> float:
        """The cost of these tokens: what the endpoint told, and for the share of which it told none this price."""
        cached, write = self.cached_input, self.cache_write
        if write is None:
            write = self.input if cached is None else 1.25 * self.input
        kinds = tokens.cached_tokens * (self.input if cached is None else cached) + tokens.cache_write_tokens * write
        rest = tokens.prompt_tokens - tokens.cached_tokens - tokens.cache_write_tokens
        priced = (rest * self.input + kinds + tokens.completion_tokens * self.output) / 1e6
        share = 1.0 - tokens.billed_tokens / tokens.total if tokens.billed_tokens else 1.0
        return tokens.billed_money + priced * share


class RunLimits(Value):
    """Limits on the whole run, helper models included, by the usage that endpoints report.

    A call is reserved before it is made, and waits while it does not fit and others are under way; where none is, the
    run stops, and can be resumed with a higher limit. So it overshoots by what estimates were too low, at most a call
    of each agent, and by what helper models cost above their mean. Agents of `kind: command` are not reserved.
    """

    tokens: int | None = Field(default=None, ge=1)
    """Prompt and completion tokens."""
    money: float | None = Field(default=None, gt=0)
    """In the currency of the prices; needs a price for every model."""

    def divided(self, of: int) -> "RunLimits":
        """What a part of a plan in `of` parts may spend."""
        tokens = self.tokens and max(1, self.tokens // of)
        return RunLimits(tokens=tokens, money=self.money and self.money / of)


def helper(model: str) -> str:
    """The name of an environment model beside those of agents, which have no colon."""
    return HELPER + model


def price_of(name: str, prices: Mapping[str, Price]) -> Price | None:
    """The price of an agent or of an environment model, None if there is none.

    For an environment model, the longest name in `prices` that its name begins with counts: endpoints report more exact
    model names than plans have.
    """
    if name in prices or not name.startswith(HELPER):
        return prices.get(name)
    beginnings = [known for known in prices if known.startswith(HELPER) and name.startswith(known)]
    return prices[max(beginnings, key=len)] if beginnings else None


def money_of(name: str, tokens: Usage, prices: Mapping[str, Price]) -> float | None:
    """What the tokens of an agent or of an environment model cost; None where there is no price."""
    price = price_of(name, prices)
    return price.of(tokens) if price is not None else tokens.billed_money if tokens.billed_tokens else None


@dataclass
class Spend:
    """Tokens by agent and environment model, and money as far as prices are known."""

    limits: RunLimits
    prices: Mapping[str, Price]
    money: float = 0.0
    elsewhere: Mapping[str, Usage] = field(default_factory=dict)
    """agent -> tokens paid by the other parts of the plan."""
    by_agent: dict[str, Usage] = field(default_factory=dict)
    unmetered: set[str] = field(default_factory=set)
    """Agents and environment models with an answer whose tokens are unknown; run limits can't count those."""
    guessed: set[str] = field(default_factory=set)
    """Agents and environment models with calls whose tokens are estimated; run limits count those estimates."""
    unpriced: set[str] = field(default_factory=set)
    """Environment models that were paid for and have no price."""
    reserved: Need = NOTHING
    """By calls and turns in flight."""
    turns: Counter[str] = field(default_factory=Counter)
    """task -> turns that were answered"""
    by_helpers: dict[str, Need] = field(default_factory=dict)
    """task -> what its environment models have cost"""
    lacking: Need | None = None
    """What the call needed that did not fit, where one stopped the run."""

    @property
    def tokens(self) -> Usage:
        """Those of all agents and environment models."""
        return Usage(*map(sum, zip(NO_USAGE, *self.by_agent.values(), strict=True)))

    def add(self, agent: str, tokens: Usage) -> None:
        """Add a paid answer of an agent."""
        self.by_agent[agent] = self.by_agent.get(agent, NO_USAGE).plus(tokens)
        if tokens.estimated_tokens:
            self.guessed.add(agent)
        if self.prices or tokens.billed_tokens:
            self.money += self._price(agent, tokens)

    def add_helper(self, model: str, tokens: Usage, task: str) -> None:
        """Add a paid reply of a task's environment model. No tokens mean that its endpoint reports no usage."""
        cost = Need(tokens.total, self._price(helper(model), tokens))
        self.by_helpers[task] = self.by_helpers.get(task, Need()).plus(cost)
        if not tokens.total:
            self.unmetered.add(helper(model))
        if price_of(helper(model), self.prices) is None and tokens.billed_tokens < tokens.total:
            self.unpriced.add(model)
        self.add(helper(model), tokens)

    def _price(self, agent: str, tokens: Usage) -> float:
        return money_of(agent, tokens, self.prices) or 0.0

    @property
    def bounded(self) -> bool:
        """Whether the run has a limit."""
        return self.limits.tokens is not None or self.limits.money is not None

    def call(self, agent: str, prompt: int, completion: int) -> Need:
        """What a call of an agent costs with these tokens; nothing where its endpoint reports no usage."""
        if agent in self.unmetered:
            return Need()
        tokens = Usage(prompt, completion)
        return Need(tokens.total, self._price(agent, tokens))

    def helpers_per_turn(self, task: str) -> Need:
        """The mean that environment models cost in a turn of a task."""
        spent, turns = self.by_helpers.get(task, Need()), max(1, self.turns[task])
        return Need(spent.tokens / turns, spent.money / turns)

    def fits(self, need: Need) -> bool:
        """Whether this may be spent beside what is spent and reserved."""
        return self._short_limit(need.plus(self.reserved)) is None

    def short_of(self, need: Need) -> str:
        """A message on what does not fit, and how to go on; from now on nothing more may be spent."""
        self.lacking = need
        return self.exhausted() or ""

    def _short_limit(self, need: Need) -> SpendLimit | None:
        return next((limit for limit, left in self._left().items() if getattr(need, limit) > left), None)

    def _left(self) -> Mapping[SpendLimit, float]:
        """What may still be spent, by the limits that there are."""
        tokens, money = self.limits.tokens, self.limits.money
        left: dict[SpendLimit, float] = {} if tokens is None else {"tokens": tokens - self._all_tokens()}
        return left if money is None else {**left, "money": money - self._all_money()}

    def unknown(self) -> str | None:
        """A message on agents and models of unknown cost, with the limits that miss it; None if there are none."""
        return "; ".join(filter(None, (self._unmetered(), self._guessed(), self._unpriced()))) or None

    def _unpriced(self) -> str | None:
        if not self.unpriced or self.limits.money is None:
            return None
        models = ", ".join(sorted(self.unpriced))
        return f"the plan's `prices` lack {models}, which tasks pay for, so limits.run.money can't limit it"

    def _limits(self) -> list[str]:
        return [f"limits.run.{name}" for name in ("tokens", "money") if getattr(self.limits, name) is not None]

    def _guessed(self) -> str | None:
        if not self.guessed:
            return None
        limits = self._limits()
        holds = f", and {' and '.join(limits)} hold{'s' * (len(limits) == 1)} with the estimate" if limits else ""
        return f"tokens of {', '.join(sorted(self.guessed))} are estimated where its endpoint reports none{holds}"

    def _unmetered(self) -> str | None:
        if not self.unmetered:
            return None
        limits = self._limits()
        void = f", so {' and '.join(limits)} can't limit it" if limits else ""
        return f"tokens of {', '.join(sorted(self.unmetered))} are not known: the endpoint reports no usage{void}"

    def limit_reached(self) -> SpendLimit | None:
        """The limit of the run that is reached, or in which the next call did not fit; None while more may be spent."""
        reached = next((limit for limit, left in self._left().items() if left <= 0), None)
        return reached or (None if self.lacking is None else self._short_limit(self.lacking))

    def exhausted(self) -> str | None:
        """A message on the limit of the run that is reached, and how to go on; None while more may be spent."""
        limit = self.limit_reached()
        return None if limit is None else self.told(limit)

    def told(self, limit: SpendLimit) -> str:
        """What is spent of a limit, what the next call would have needed, and how to go on."""
        need, left = self.lacking or NOTHING, self._left()[limit]
        if limit == "tokens":
            next_call = f"{ceil(need.tokens)}"
            spent, rest = f"{self._all_tokens()} of {self.limits.tokens} spent", f"{left} left"
        else:
            next_call = money_text(need.money)
            limit_text = money_text(self.limits.money or 0.0)
            spent, rest = f"{money_text(self._all_money())} of {limit_text} spent", f"{money_text(left)} left"
        lacks = f", {rest}, the next call needs about {next_call}" if left > 0 and self.lacking is not None else ""
        return f"limits.run.{limit}: {spent}{lacks}; resume with --set limits.run.{limit}=MORE"

    def _all_tokens(self) -> int:
        return sum(paid.total for paid in (*self.by_agent.values(), *self.elsewhere.values()))

    def _all_money(self) -> float:
        return self.money + sum(self._price(agent, paid) for agent, paid in self.elsewhere.items())
