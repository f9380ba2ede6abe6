"""Pure: what a run has paid, and whether it may pay more."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from eval_client.plan import Plan, Price, RunLimits


@dataclass
class Spend:
    """Tokens by agent, and money where a price is known."""

    limits: RunLimits
    prices: Mapping[str, Price]
    prompt_tokens: int = 0
    completion_tokens: int = 0
    money: float = 0.0
    elsewhere: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """agent -> (prompt, completion) tokens paid by the run's other clients."""
    by_agent: dict[str, tuple[int, int]] = field(default_factory=dict)
    unmetered: set[str] = field(default_factory=set)
    """Agents of which an answer came without its cost: no limit can bind what isn't known."""

    @classmethod
    def of(cls, plan: Plan) -> "Spend":
        """Nothing spent yet."""
        return cls(plan.limits.run, {agent.name: agent.price for agent in plan.agents if agent.price is not None})

    def add(self, agent: str, prompt_tokens: int, completion_tokens: int) -> None:
        """An answer was paid for."""
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens
        before = self.by_agent.get(agent, (0, 0))
        self.by_agent[agent] = (before[0] + prompt_tokens, before[1] + completion_tokens)
        self.money += self._price(agent, prompt_tokens, completion_tokens)

    def _price(self, agent: str, prompt_tokens: int, completion_tokens: int) -> float:
        price = self.prices.get(agent)
        return (prompt_tokens * price.input + completion_tokens * price.output) / 1e6 if price is not None else 0.0

    def unknown(self) -> str | None:
        """Whose costs are not known and which limits that makes void; None where all are."""
        if not self.unmetered:
            return None
        limits = [f"limits.run.{name}" for name in ("tokens", "money") if getattr(self.limits, name) is not None]
        void = f", so {' and '.join(limits)} can't hold it" if limits else ""
        return f"tokens of {', '.join(sorted(self.unmetered))} are not known: the endpoint reports no usage{void}"

    def exhausted(self) -> str | None:
        """Which limit of the run is reached, and how to go on; None while more may be spent."""
        tokens = self.prompt_tokens + self.completion_tokens + sum(map(sum, self.elsewhere.values()))
        money = self.money + sum(self._price(agent, *tokens) for agent, tokens in self.elsewhere.items())
        if self.limits.tokens is not None and tokens >= self.limits.tokens:
            return (
                f"limits.run.tokens: {tokens} of {self.limits.tokens} spent; resume with --set limits.run.tokens=MORE"
            )
        if self.limits.money is not None and money >= self.limits.money:
            spent = f"{money:.2f} of {self.limits.money:.2f} spent"
            return f"limits.run.money: {spent}; resume with --set limits.run.money=MORE"
        return None
