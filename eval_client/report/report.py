"""A run's results as values: scores with their standard errors, coverage, validity, faults, costs."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from pydantic import Field

from eval_client.core.spend import Price, Tokens, helper, money_of
from eval_client.core.statistics.clustered import clustered_mean
from eval_client.core.statistics.samples import Interval
from eval_client.core.statistics.single import mean_interval, metric_interval, shares, steps
from eval_client.plan.entries import AgentEntry
from eval_client.plan.plan import Plan
from eval_client.plan.published import other_sampling
from eval_client.store.records import HelperCost, Manifest, PairTotals, ReplicaCost, TaskRecord
from eval_client.store.results import SampleMeans
from eval_client.store.store import Store
from eval_client.store.tables import trial_table
from eval_client.store.values import Unreadable
from proctor import registry
from proctor.llm.dialects.messages import MAX_TOKENS
from proctor.tables.table import Figure, Part
from proctor.types import FinishReason, Summary, TaskProtocol, Value

VALIDITY = tuple(reason.value for reason in FinishReason if not reason.is_fault)
"""AgentBench's validity classes: the finish reasons of scored trials."""
NO_MEANS = SampleMeans([], [], [])
ALPHA = 0.05
ERROR_PARTS: tuple[Part, ...] = ("standard_error", "interval_low", "interval_high")
"""What the figures of scores have in tables beside the value."""
MANY = 100
"""From so many effective samples on tables show a standard error, below them the interval."""
FEW = 10
"""With fewer effective samples a note says that intervals are rough."""


class HelperReport(Value):
    """Calls, tokens and money of one model on the environment's side (judge, host, user)."""

    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    estimated_tokens: int = 0
    """Those of both that no endpoint reported."""
    money: float | None


class UnfinishedCost(Value):
    """What the answers in trials without a final row have cost."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None
    """None in a store of schema 2, as are the reasoning tokens."""
    reasoning_tokens: int | None
    estimated_tokens: int = 0
    money: float | None


class RepeatedShare(Value):
    """Shares of samples passed at least once (pass@k) and every time (pass^k) in k trials, with intervals."""

    k: int
    pass_at: float
    pass_at_interval: Interval | None
    pass_hat: float
    pass_hat_interval: Interval | None
    samples: int
    """Samples with at least k scored epochs; the others are left out."""


class PairReport(Value):
    """The results of one agent on one task."""

    agent: str
    task: str
    environment: str
    protocol: TaskProtocol
    """How the task takes answers. Scores of unlike protocols are of unlike tasks."""
    planned: int
    scored: int
    primary: str
    value: float | None
    """The primary metric over the scored trials; None where there are none."""
    standard_error: float | None
    """Of the value; None where it is not known, and where nothing varies."""
    interval: Interval | None = None
    """Of the value, of level 0.95; None where fewer than two clusters are scored."""
    effective_samples: float = 0.0
    """The effective number of clusters behind the interval."""
    passed: float = 0.0
    """Samples that are passed, with a score of 1; of one with several epochs the share of them."""
    repeats: tuple[RepeatedShare, ...] = ()
    """For k = 1, 2, 4, ... and the epochs; empty where samples have one epoch."""
    mean_score: float | None = None
    """The mean of the scores, where each sample counts once, as `proctor status` shows it; None without a score."""
    metrics: dict[str, float]
    notes: tuple[str, ...]
    comparable: str | None
    """Why the score is not comparable with published ones; None where it is."""
    validity: dict[str, float]
    """finish reason -> share of the scored trials; sums to 1."""
    faults: dict[str, int]
    """cause -> number of unscored trials"""
    declined: int = 0
    """Trials whose input was refused, where the plan leaves them unscored."""
    cut_answers: int | None = None
    """Answers that the endpoint cut at `max_tokens`; None where trials of an earlier version don't tell."""
    turns: int
    prompt_tokens: int
    """Of the finished trials, as are the other counts and the money."""
    completion_tokens: int
    told_usage: bool = True
    """Whether it is known what the agent's answers cost: not of commands, nor where an endpoint reports no usage."""
    unfinished: UnfinishedCost | None = None
    """What is paid beside: for trials that are not over, or were given back; None where nothing is."""
    cached_tokens: int | None
    """The prompt tokens that the endpoint had in its cache; None in a store of schema 2."""
    reasoning_tokens: int | None
    """The tokens that the model thought in; None in a store of schema 2."""
    cache_write_tokens: int = 0
    """The prompt tokens that the endpoint put into its cache."""
    estimated_tokens: int = 0
    """The tokens of prompts and completions that no endpoint reported: characters / 3.5."""
    money: float | None
    seconds: float
    helpers: tuple[HelperReport, ...]
    """Costs of models on the environment's side, over finished and unfinished trials."""

    @property
    def figure(self) -> Figure:
        """The value with its error, and with its interval instead below MANY effective samples or without variance."""
        many = self.effective_samples >= MANY and self.standard_error is not None
        error, interval = (self.standard_error, None) if many or self.interval is None else (None, self.interval)
        return Figure(self.value, standard_error=error, interval=interval)

    @property
    def cost(self) -> float | None:
        """Money, or tokens where it has no price, of the finished trials; None where nothing was paid or told."""
        return self.money or float(self.prompt_tokens + self.completion_tokens) or None

    @property
    def estimates(self) -> dict[str, tuple[int, int]]:
        """Agent or model of the task -> its tokens that are estimated, and all of its tokens."""
        paid: list[tuple[str, HelperReport | UnfinishedCost | PairReport]] = [(self.agent, self)]
        paid += [(each.model, each) for each in self.helpers]
        if self.unfinished is not None:
            paid.append((f"{self.agent}, unfinished", self.unfinished))
        return {
            name: (cost.estimated_tokens, cost.prompt_tokens + cost.completion_tokens)
            for name, cost in paid
            if cost.estimated_tokens
        }

    @property
    def coverage(self) -> float:
        """The share of planned trials that are scored; 0 where none are planned."""
        return self.scored / self.planned if self.planned else 0.0


class RunReport(Value):
    """The results of a run; pairs in the order of the plan's tasks, within a task the highest value first."""

    run: str
    state: str
    version: str
    pairs: tuple[PairReport, ...]
    left_out: tuple[str, ...] = ()
    """What of the plan was left out on the command line, a line for each kind; it counts as not planned."""
    price_list: str | None = None
    """Where prices are from, if some are from a list."""
    replicas: tuple[ReplicaCost, ...] = Field(default=(), exclude_if=lambda costs: not costs)
    """What each server answered, of endpoints that have several."""

    @property
    def estimates(self) -> tuple[str, ...]:
        """Whose tokens are estimated, how many of how many, and on which tasks: a line for each agent or model."""
        parts: dict[str, list[tuple[int, int]]] = {}
        tasks: dict[str, list[str]] = {}
        for pair in self.pairs:
            for name, part in pair.estimates.items():
                parts.setdefault(name, []).append(part)
                tasks.setdefault(name, []).append(pair.task)
        return tuple(
            f"{sum(some for some, _ in of):,} of {sum(whole for _, whole in of):,} tokens of {name} on "
            f"{', '.join(dict.fromkeys(tasks[name]))} are estimated: no endpoint reported them"
            for name, of in parts.items()
        )


class PrimaryMetric(NamedTuple):
    """The metric that a report ranks agents by."""

    name: str
    value: float


def primary_metrics(store: Store, totals: Sequence[PairTotals]) -> dict[tuple[str, str], PrimaryMetric]:
    """(agent, task) -> the environment's primary metric, for the pairs that have it for all their scored trials."""
    return {
        pair: PrimaryMetric(summary.primary, summary.metrics[summary.primary])
        for pair, summary in _current_summaries(store, totals).items()
        if summary.primary in summary.metrics
    }


def _current_summaries(store: Store, totals: Sequence[PairTotals]) -> dict[tuple[str, str], Summary]:
    """(agent, task) -> what the environment made of all scored trials, for the pairs where none was scored since."""
    scored = {_key(pair): pair.scored for pair in totals}
    return {pair: summary for pair, (count, summary) in store.summaries().items() if count == scored.get(pair)}


def report(store: Store) -> RunReport:
    """The report of a run, finished or not. Raises StoreError, DatabaseError."""
    manifest = store.manifest()
    plan = manifest.read_plan()
    agents = {agent.name: agent for agent in plan.agents}
    prices, costs, retried = plan.all_prices(), store.helper_costs(), store.retried()
    unfinished = store.spent_on_open()
    all_totals = store.pair_totals()
    current = _current_summaries(store, all_totals)
    means = store.sample_means({totals.task: totals.agent for totals in all_totals})
    cut = {agent.name for agent in plan.agents if plan.endpoint_of(agent).dialect == "messages"}
    cut -= {agent.name for agent in plan.agents if "max_tokens" in agent.sampling}
    causes = store.causes()
    pairs = [
        _pair(
            totals,
            manifest,
            faults=causes.get(_key(totals), {}) if totals.unscored else {},
            summary=current.get(_key(totals)),
            means=means.get(_key(totals), NO_MEANS),
            agent=agents.get(totals.agent),
            prices=prices,
            costs=costs,
            retried=retried.get(_key(totals), 0),
            cut=totals.agent in cut,
            reached=_reached(plan, totals.agent),
            unfinished=unfinished.get(_key(totals)),
        )
        for totals in all_totals
    ]
    order = list(manifest.tasks)
    pairs.sort(key=lambda pair: (order.index(pair.task), pair.value is None, -(pair.value or 0.0)))
    return RunReport(
        run=store.run,
        state=store.state(),
        version=manifest.version,
        pairs=tuple(pairs),
        left_out=(*manifest.filters.left_out, *manifest.model_notes, *manifest.alone),
        price_list=plan.price_note(),
        replicas=tuple(store.replica_costs()) if any(one.has_replicas for one in plan.endpoints) else (),
    )


def _key(totals: PairTotals) -> tuple[str, str]:
    return totals.agent, totals.task


def _refusals(totals: PairTotals) -> str | None:
    refused = totals.reasons.get(FinishReason.REFUSED, 0)
    inputs = "1 input was" if refused == 1 else f"{refused} inputs were"
    return f"{inputs} declined by the endpoint" if refused else None


def _validity(totals: PairTotals) -> dict[str, float]:
    scored = {**totals.reasons, FinishReason.REFUSED: totals.reasons.get(FinishReason.REFUSED, 0) - totals.declined}
    return {reason: scored.get(reason, 0) / totals.scored for reason in VALIDITY}


def _pair(
    totals: PairTotals,
    manifest: Manifest,
    *,
    faults: dict[str, int],
    summary: Summary | None,
    means: SampleMeans,
    agent: AgentEntry | None,
    prices: Mapping[str, Price],
    costs: Sequence[HelperCost],
    retried: int,
    cut: bool,
    reached: Sequence[str],
    unfinished: Tokens | None,
) -> PairReport:
    pair = _key(totals)
    if totals.task not in manifest.tasks:
        raise Unreadable(trial_table.c.task, "the run's manifest has no such task")
    task = manifest.tasks[totals.task]
    scored = totals.scored
    summary = summary or _mean_score(means)
    measured = _measured(summary, totals, task.environment, means)
    return PairReport(
        agent=totals.agent,
        task=totals.task,
        environment=task.environment,
        protocol=task.protocol,
        planned=totals.planned,
        scored=scored,
        primary=summary.primary,
        value=measured.value,
        standard_error=measured.standard_error,
        interval=measured.interval,
        effective_samples=measured.effective_samples,
        passed=_passed(means),
        repeats=_repeats(means),
        mean_score=totals.mean,
        metrics=summary.metrics if measured.value is None else {**summary.metrics, summary.primary: measured.value},
        notes=(
            *_choices(task, totals.agent, retried, cut),
            *reached,
            *summary.notes,
            *_few(totals, measured.effective_samples),
        ),
        comparable=task.comparable
        or next(iter(manifest.alone), None)
        or (other_sampling(agent, task.published_sampling) if agent is not None else None)
        or _refusals(totals),
        validity=_validity(totals) if scored else {},
        faults=faults,
        declined=totals.declined,
        cut_answers=totals.cut_answers,
        turns=totals.turns,
        prompt_tokens=totals.prompt_tokens,
        completion_tokens=totals.completion_tokens,
        told_usage=bool(totals.tokens().total or not totals.turns or (agent is not None and agent.policy)),
        unfinished=None if unfinished is None else _unfinished(totals, unfinished, prices),
        cached_tokens=totals.cached_tokens,
        reasoning_tokens=totals.reasoning_tokens,
        cache_write_tokens=totals.cache_write_tokens,
        estimated_tokens=totals.estimated_tokens,
        money=money_of(totals.agent, totals.tokens(), prices),
        seconds=totals.seconds,
        helpers=tuple(_helper(cost, prices) for cost in costs if (cost.agent, cost.task) == pair),
    )


class _Measured(NamedTuple):
    """The primary metric over the scored trials, as PairReport has it."""

    value: float | None
    standard_error: float | None
    interval: Interval | None
    effective_samples: float


def _measured(summary: Summary, totals: PairTotals, environment: str, means: SampleMeans) -> _Measured:
    """Where the metric is the mean score it is that over samples, which earlier versions took over trials.

    Metrics of another scale may be 0 or 1 by chance as the mean score is.
    """
    value, mean = summary.metrics.get(summary.primary), clustered_mean(means.means, means.clusters)
    if value is None or totals.mean is None or totals.trial_mean is None:
        return _Measured(None, None, None, 0.0)
    alike = any(math.isclose(value, each, abs_tol=1e-9) for each in (totals.mean, totals.trial_mean))
    scale = _scale(environment, summary.primary) if not alike or value in (0, 1) else None
    if alike and scale in (None, (0, 1)):
        even = math.isclose(totals.mean, totals.trial_mean, abs_tol=1e-9)
        error = summary.standard_error if even else mean.standard_error
        interval = mean_interval(means.means, means.clusters, ALPHA)
        return _Measured(value if even else totals.mean, error or None, interval, mean.effective_clusters)
    interval = metric_interval(value, summary.standard_error, mean.effective_clusters, scale, ALPHA)
    return _Measured(value, summary.standard_error or None, interval, mean.effective_clusters)


def _passed(means: SampleMeans) -> float:
    if means.counts:
        return math.fsum(passed / scored for scored, passed in means.counts)
    return float(sum(mean >= 1 for mean in means.means))


def _repeats(means: SampleMeans) -> tuple[RepeatedShare, ...]:
    most = max((scored for scored, _ in means.counts), default=1)
    return tuple(_repeated(means, k) for k in steps(most)) if most > 1 else ()


def _repeated(means: SampleMeans, k: int) -> RepeatedShare:
    at, hat = shares(means.counts, k)
    clusters = [cluster for cluster, (scored, _) in zip(means.clusters, means.counts, strict=True) if scored >= k]
    return RepeatedShare(
        k=k,
        pass_at=fmean(at),
        pass_at_interval=mean_interval(at, clusters, ALPHA),
        pass_hat=fmean(hat),
        pass_hat_interval=mean_interval(hat, clusters, ALPHA),
        samples=len(at),
    )


def _scale(environment: str, metric: str) -> Interval | None:
    """The least and the greatest value of a metric, if its environment is installed here and tells."""
    try:
        return registry.scales(environment).get(metric)
    except (ImportError, registry.UnknownEnvironment):
        return None


def _few(totals: PairTotals, effective: float) -> list[str]:
    """Why an interval is rough."""
    if not totals.scored or effective >= FEW:
        return []
    return [f"Few independent samples ({effective:.3g} effective): intervals are rough."]


def _unfinished(totals: PairTotals, paid: Tokens, prices: Mapping[str, Price]) -> UnfinishedCost:
    return UnfinishedCost(
        prompt_tokens=paid.prompt,
        completion_tokens=paid.completion,
        cached_tokens=None if totals.cached_tokens is None else paid.cached,
        reasoning_tokens=None if totals.reasoning_tokens is None else paid.reasoning,
        estimated_tokens=paid.estimated,
        money=money_of(totals.agent, paid, prices),
    )


def _reached(plan: Plan, name: str) -> list[str]:
    """What the plan says of an agent's endpoint and seeds, and a reader of its scores should know."""
    agent = next((agent for agent in plan.agents if agent.name == name), None)
    if agent is None:
        return []
    endpoint, seed, notes = plan.endpoint_of(agent), agent.sampling.get("seed"), list[str]()
    if not endpoint.tls.verify:
        notes.append(f"The certificate of {endpoint.name} was not verified: anybody on the way could change answers.")
    if plan.varies_seed(agent):
        notes.append(f"The seed of {name}'s sampling is {seed} plus the epoch's number, from 0.")
    elif seed is not None and plan.epochs > 1:
        notes.append(f"The seed of {name}'s sampling is {seed} in every epoch: epochs may only repeat each other.")
    return notes


def _choices(task: TaskRecord, agent: str, retried: int, cut: bool) -> list[str]:
    """What the user chose that shapes the scores; `cut`: left to us is how long an answer of the agent may be."""
    notes = [f"Samples: {task.selection}."] if task.selection else []
    if cut:
        notes.append(
            f"Answers of {agent} end at {MAX_TOKENS:,} tokens: dialect messages needs a limit, the plan has none."
        )
    if retried:
        notes.append(
            f"{retried} trials of {agent} had a score and were played again by `proctor resume --retry`; `proctor "
            "show` lists the earlier results."
        )
    return notes


def _helper(cost: HelperCost, prices: Mapping[str, Price]) -> HelperReport:
    return HelperReport(
        model=cost.model,
        calls=cost.calls,
        prompt_tokens=cost.tokens.prompt,
        completion_tokens=cost.tokens.completion,
        estimated_tokens=cost.tokens.estimated,
        money=money_of(helper(cost.model), cost.tokens, prices),
    )


def _mean_score(found: SampleMeans) -> Summary:
    """The mean score, each sample counting once, until a run or resume ends with the environment's own metrics."""
    mean = clustered_mean(found.means, found.clusters)
    note = "The environment's own metrics are not available yet: this is the plain mean of scores."
    notes = (note,) if found.means else ()
    metrics = {"mean_score": mean.mean} if found.means else {}
    return Summary(primary="mean_score", metrics=metrics, standard_error=mean.standard_error, notes=notes)
