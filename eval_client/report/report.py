"""What a run found out, as values: scores with their errors, coverage, validity, faults, costs."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from eval_client.core.spend import Price, helper, price_of
from eval_client.core.statistics.clustered import clustered_mean
from eval_client.plan import AgentEntry, Plan
from eval_client.store.records import HelperCost, Manifest, PairTotals
from eval_client.store.store import Store
from proctor.types import FinishReason, Summary, Value

VALIDITY = tuple(reason.value for reason in FinishReason if not reason.is_fault)
"""AgentBench's classes, over the scored trials."""


class HelperReport(Value):
    """What a judge, a host or a user of a task took."""

    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    money: float | None


class PairReport(Value):
    """One agent on one task."""

    agent: str
    task: str
    environment: str
    planned: int
    scored: int
    primary: str
    value: float | None
    """Over the scored trials only; None where there are none."""
    standard_error: float | None
    metrics: dict[str, float]
    notes: tuple[str, ...]
    comparable: str | None
    """Why the score may not be compared with published ones."""
    validity: dict[str, float]
    """finish reason -> share of the scored trials; sums to 1."""
    faults: dict[str, int]
    """cause -> unscored trials"""
    turns: int
    prompt_tokens: int
    completion_tokens: int
    money: float | None
    seconds: float
    helpers: tuple[HelperReport, ...]
    """What models on the environment's side took, finished trials or not."""

    @property
    def coverage(self) -> float:
        """Scored of planned."""
        return self.scored / self.planned if self.planned else 0.0


class RunReport(Value):
    """A whole run; pairs by task, the best first."""

    run: str
    state: str
    version: str
    pairs: tuple[PairReport, ...]


def report(store: Store) -> RunReport:
    """The report of a run, finished or not."""
    manifest = store.manifest()
    summaries = store.summaries()
    plan = Plan.model_validate(manifest.plan)
    agents = {agent.name: agent for agent in plan.agents}
    prices, costs = plan.all_prices(), store.helper_costs()
    pairs = [
        _pair(
            store,
            standing,
            manifest,
            kept=summaries.get((standing.agent, standing.task)),
            agent=agents.get(standing.agent),
            prices=prices,
            costs=costs,
        )
        for standing in store.standing()
    ]
    order = list(manifest.tasks)
    pairs.sort(key=lambda pair: (order.index(pair.task), pair.value is None, -(pair.value or 0.0)))
    return RunReport(run=store.run, state=store.state(), version=manifest.version, pairs=tuple(pairs))


def _pair(
    store: Store,
    standing: PairTotals,
    manifest: Manifest,
    *,
    kept: tuple[int, Summary] | None,
    agent: AgentEntry | None,
    prices: Mapping[str, Price],
    costs: Sequence[HelperCost],
) -> PairReport:
    pair = (standing.agent, standing.task)
    task = manifest.tasks[standing.task]
    summary = kept[1] if kept is not None and kept[0] == standing.scored else _mean_score(store, standing)
    scored = standing.scored
    return PairReport(
        agent=standing.agent,
        task=standing.task,
        environment=task.environment,
        planned=standing.planned,
        scored=scored,
        primary=summary.primary,
        value=summary.metrics.get(summary.primary) if scored else None,
        standard_error=summary.standard_error if scored else None,
        metrics=summary.metrics,
        notes=summary.notes,
        comparable=task.comparable or (_other_sampling(agent, task.published_sampling) if agent is not None else None),
        validity={reason: standing.reasons.get(reason, 0) / scored for reason in VALIDITY} if scored else {},
        faults=store.causes(standing.agent, standing.task) if standing.unscored else {},
        turns=standing.turns,
        prompt_tokens=standing.prompt_tokens,
        completion_tokens=standing.completion_tokens,
        money=_money(standing.agent, standing, prices),
        seconds=standing.seconds,
        helpers=tuple(_helper(cost, prices) for cost in costs if (cost.agent, cost.task) == pair),
    )


def _helper(cost: HelperCost, prices: Mapping[str, Price]) -> HelperReport:
    return HelperReport(
        model=cost.model,
        calls=cost.calls,
        prompt_tokens=cost.prompt_tokens,
        completion_tokens=cost.completion_tokens,
        money=_money(helper(cost.model), cost, prices),
    )


def _other_sampling(agent: AgentEntry, published: Mapping[str, JsonValue]) -> str | None:
    """Why an agent's scores stand beside no published ones: a field of its requests differs. None where none does."""
    given = {"max_tokens": agent.sampling.get("max_completion_tokens"), **agent.sampling}
    others = [name for name, value in published.items() if given.get(name) != value]
    if agent.builtin is not None or not others:
        return None
    wanted = ", ".join(f"{name}: {published[name]}" for name in others)
    return f"the published agents had {wanted}; set it in the `sampling` of {agent.name}"


def _mean_score(store: Store, standing: PairTotals) -> Summary:
    """What can be said before the environment's own metrics are in: at the end of each run or resume."""
    mean, error = clustered_mean(store.sample_totals(standing.agent, standing.task))
    note = "The environment's own metrics are not in yet: this is the plain mean of scores."
    notes = (note,) if standing.scored else ()
    metrics = {"mean_score": mean} if standing.scored else {}
    return Summary(primary="mean_score", metrics=metrics, standard_error=error, notes=notes)


def _money(name: str, paid: PairTotals | HelperCost, prices: Mapping[str, Price]) -> float | None:
    price = price_of(name, prices)
    return None if price is None else price.of(paid.prompt_tokens, paid.completion_tokens)
