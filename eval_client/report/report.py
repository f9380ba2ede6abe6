"""Makes the report of a run from its store, finished or not."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from eval_client.core import Pair
from eval_client.core.spend import helper, money_of
from eval_client.core.statistics.agreement import agreements
from eval_client.core.statistics.samples import Interval
from eval_client.core.statistics.single import clustered_mean, mean_interval, metric_interval, shares, steps
from eval_client.plan.entries import AgentEntry
from eval_client.plan.published import other_sampling
from eval_client.report.pair_report import VALIDITY, HelperReport, PairReport, RepeatedShare, RunReport, UnfinishedCost
from eval_client.store.records import INTERRUPTED, RETRIED, HelperCost, PairTotals, TaskRecord
from eval_client.store.results import SampleMeans
from eval_client.store.store import Store
from eval_client.store.tables import trial_table
from eval_client.store.values import Unreadable
from proctor import registry
from proctor.tables.table import counted
from proctor.types import FinishReason, Summary, Usage

NO_MEANS = SampleMeans([], [], [])
ALPHA = 0.05
FEW = 10
"""With fewer effective samples a note says that intervals are rough."""
COUNTED = PairReport.model_fields.keys() & PairTotals.model_fields.keys()
"""What a report has from a store's totals as it is."""


class PrimaryMetric(NamedTuple):
    """The metric that a report ranks agents by."""

    name: str
    value: float


def primary_metrics(store: Store, totals: Sequence[PairTotals]) -> dict[Pair, PrimaryMetric]:
    """(agent, task) -> the environment's primary metric, for the pairs that have it for all their scored trials."""
    return {
        pair: PrimaryMetric(summary.primary, summary.metrics[summary.primary])
        for pair, summary in _current_summaries(store, totals).items()
        if summary.primary in summary.metrics
    }


def _current_summaries(store: Store, totals: Sequence[PairTotals]) -> dict[Pair, Summary]:
    """(agent, task) -> what the environment made of all scored trials, for the pairs where none was scored since."""
    scored = {(pair.agent, pair.task): pair.scored for pair in totals}
    return {pair: summary for pair, (count, summary) in store.summaries().items() if count == scored.get(pair)}


def report(store: Store) -> RunReport:
    """The report of a run, finished or not. Raises StoreError, DatabaseError."""
    made = _Made(store)
    pairs = [made.pair(totals) for totals in made.totals]
    manifest, plan = made.manifest, made.plan
    planned = (agent for agent, _ in plan.pairs())  # an extension may add an agent that the plan has before others
    tasks, agents = list(manifest.tasks), list(dict.fromkeys((*planned, *(pair.agent for pair in pairs))))
    pairs.sort(key=lambda pair: (tasks.index(pair.task), agents.index(pair.agent)))
    return RunReport(
        run=store.run,
        state=store.state(),
        version=manifest.version,
        pairs=tuple(pairs),
        notes=store.notes(),
        left_out=(*manifest.filters.left_out, *manifest.model_notes, *manifest.alone),
        price_list=plan.price_note(),
        replicas=tuple(store.replica_costs()) if any(one.has_replicas for one in plan.endpoints) else (),
    )


class _Made:
    """What the reports of pairs are made of, each read once for all pairs."""

    def __init__(self, store: Store) -> None:
        self._store, self.manifest = store, store.manifest()
        self.plan = self.manifest.read_plan()
        self._agents = {agent.name: agent for agent in self.plan.agents}
        self._prices, self._costs = self.plan.all_prices(), store.helper_costs()
        self._interrupted = store.attempts_with(INTERRUPTED)
        self._retried = store.attempts_with(RETRIED)
        self._unfinished, self.totals = store.spent_on_open(), store.pair_totals()
        self._summaries = _current_summaries(store, self.totals)
        self._means = store.sample_means()
        self._causes = store.causes()

    def pair(self, totals: PairTotals) -> PairReport:
        """Raises StoreError where the run's manifest does not have the task."""
        key = totals.agent, totals.task
        if totals.task not in self.manifest.tasks:
            raise Unreadable(trial_table.c.task, "the run's manifest has no such task")
        task, agent = self.manifest.tasks[totals.task], self._agents.get(totals.agent)
        means = self._means.get(key, NO_MEANS)
        summary = self._summaries.get(key) or _mean_score(means)
        value, error, interval, effective = _measured(summary, totals, task, means)
        rough = f"Few independent samples ({effective:.3g} effective): intervals are rough."
        few = [rough] if totals.scored and effective < FEW else []
        unfinished = self._unfinished.get(key)
        return PairReport(
            **totals.model_dump(include=COUNTED),
            environment=task.environment,
            protocol=task.protocol,
            primary=summary.primary,
            value=value,
            standard_error=error,
            interval=interval,
            effective_samples=effective,
            passed=_passed(means),
            repeats=_repeats(means),
            mean_score=totals.mean,
            metrics=summary.metrics if value is None else {**summary.metrics, summary.primary: value},
            notes=(*self._notes(task, key), *summary.notes, *few),
            interrupted=self._interrupted.get(key, (0, 0))[0],
            comparable=self._not_comparable(task, agent, totals),
            validity=_validity(totals) if totals.scored else {},
            faults=self._causes.get(key, {}) if totals.unscored else {},
            told_usage=bool(totals.tokens().total or not totals.turns or (agent is not None and agent.policy)),
            unfinished=None if unfinished is None else self._paid(totals, unfinished),
            money=money_of(totals.agent, totals.tokens(), self._prices),
            helpers=tuple(self._helper(cost) for cost in self._costs if (cost.agent, cost.task) == key),
            agreement=agreements(self._store.judgements(self.manifest, *key)),
        )

    def _notes(self, task: TaskRecord, pair: Pair) -> list[str]:
        """What the user chose that shapes the scores, and a reader of them should know."""
        name, (_, retried) = pair[0], self._retried.get(pair, (0, 0))
        notes = [f"Samples: {task.selection}."] if task.selection else []
        agent = self._agents.get(name)
        endpoint = None if agent is None else self.plan.endpoint_of(agent)
        limited = agent is None or "max_tokens" in agent.sampling
        if not limited and endpoint is not None and endpoint.dialect == "messages":
            from proctor.llm.dialects.messages import MAX_TOKENS  # few runs have this dialect: 10 ms

            limit = f"Answers of {name} end at {MAX_TOKENS:,} tokens"
            notes.append(f"{limit}: dialect messages needs a limit, the plan has none.")
        if retried:
            notes.append(
                f"{counted(retried, 'trial')} of {name} had a score and got another by `proctor resume --retry`; "
                "`proctor show` lists the earlier results."
            )
        if pair in self._interrupted:
            notes.append(
                f"{counted(self._interrupted[pair][0], 'attempt')} of {name} ended with the client: a call that was "
                "under way then was asked again, and its first answer, which may be paid for, is not counted."
            )
        if agent is None or endpoint is None:
            return notes
        if not endpoint.tls.verify:
            unsure = "was not verified: anybody on the way could change answers."
            notes.append(f"The certificate of {endpoint.name} {unsure}")
        seed = agent.sampling.get("seed")
        if self.plan.varies_seed(agent):
            notes.append(f"The seed of {name}'s sampling is {seed} plus the epoch's number, from 0.")
        elif seed is not None and self.plan.epochs > 1:
            notes.append(f"The seed of {name}'s sampling is {seed} in every epoch: epochs may only repeat each other.")
        return notes

    def _not_comparable(self, task: TaskRecord, agent: AgentEntry | None, totals: PairTotals) -> str | None:
        """Why the score is not comparable with published ones: the first reason."""
        refused = totals.reasons.get(FinishReason.REFUSED, 0)
        inputs = "1 input was" if refused == 1 else f"{refused} inputs were"
        return (
            task.comparable
            or next(iter(self.manifest.alone), None)
            or (other_sampling(agent, task.published_sampling) if agent is not None else None)
            or (f"{inputs} declined by the endpoint" if refused else None)
        )

    def _paid(self, totals: PairTotals, paid: Usage) -> UnfinishedCost:
        return UnfinishedCost(
            prompt_tokens=paid.prompt_tokens,
            completion_tokens=paid.completion_tokens,
            cached_tokens=None if totals.cached_tokens is None else paid.cached_tokens,
            reasoning_tokens=None if totals.reasoning_tokens is None else paid.reasoning_tokens,
            estimated_tokens=paid.estimated_tokens,
            money=money_of(totals.agent, paid, self._prices),
        )

    def _helper(self, cost: HelperCost) -> HelperReport:
        return HelperReport(
            model=cost.model,
            calls=cost.calls,
            prompt_tokens=cost.tokens.prompt_tokens,
            completion_tokens=cost.tokens.completion_tokens,
            estimated_tokens=cost.tokens.estimated_tokens,
            money=money_of(helper(cost.model), cost.tokens, self._prices),
        )


def _validity(totals: PairTotals) -> dict[str, float]:
    scored = {**totals.reasons, FinishReason.REFUSED: totals.reasons.get(FinishReason.REFUSED, 0) - totals.declined}
    return {reason: scored.get(reason, 0) / totals.scored for reason in VALIDITY}


def _measured(
    summary: Summary, totals: PairTotals, task: TaskRecord, means: SampleMeans
) -> tuple[float | None, float | None, Interval | None, float]:
    """The primary metric over the scored trials: value, standard error, interval, effective samples.

    Where the metric is the mean score it is that over samples, which earlier versions took over trials. Metrics of
    another scale may be 0 or 1 by chance as the mean score is.
    """
    value, mean = summary.metrics.get(summary.primary), clustered_mean(means.means, means.clusters)
    if value is None or totals.mean is None or totals.trial_mean is None:
        return None, None, None, 0.0
    alike = any(math.isclose(value, each, abs_tol=1e-9) for each in (totals.mean, totals.trial_mean))
    scale = declared_scale(task, summary.primary) if not alike or value in (0, 1) else None
    if alike and scale in (None, (0, 1)):
        even = math.isclose(totals.mean, totals.trial_mean, abs_tol=1e-9)
        error = summary.standard_error if even else mean.standard_error
        interval = mean_interval(means.means, means.clusters, ALPHA)
        return value if even else totals.mean, error or None, interval, mean.effective_clusters
    interval = metric_interval(value, summary.standard_error, mean.effective_clusters, scale, ALPHA)
    return value, summary.standard_error or None, interval, mean.effective_clusters


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


def declared_scale(task: TaskRecord, metric: str) -> Interval | None:
    """The least and the greatest value of a metric, if the run or the environment that is installed here tells."""
    try:
        return task.scales.get(metric) or registry.scales(task.environment).get(metric)
    except (ImportError, registry.UnknownEnvironment):
        return None


def _mean_score(found: SampleMeans) -> Summary:
    """The mean score, each sample counting once, until a run or resume ends with the environment's own metrics."""
    mean = clustered_mean(found.means, found.clusters)
    note = "The environment's own metrics are not available yet: this is the plain mean of scores."
    notes = (note,) if found.means else ()
    metrics = {"mean_score": mean.mean} if found.means else {}
    return Summary(primary="mean_score", metrics=metrics, standard_error=mean.standard_error, notes=notes)
