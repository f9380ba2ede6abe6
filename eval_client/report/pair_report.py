"""A run's results as values: scores with their standard errors, coverage, validity, faults, costs."""

from pydantic import Field

from eval_client.core.statistics.agreement import JudgeAgreement
from eval_client.core.statistics.samples import Interval
from eval_client.store.records import ReplicaCost
from proctor.tables.table import Figure, Part
from proctor.types import FinishReason, TaskProtocol, Value

VALIDITY = tuple(reason.value for reason in FinishReason if not reason.is_fault)
"""AgentBench's validity classes: the finish reasons of scored trials."""
ERROR_PARTS: tuple[Part, ...] = ("standard_error", "interval_low", "interval_high")
"""What the figures of scores have in tables beside the value."""
MANY = 100
"""From so many effective samples on tables show a standard error, below them the interval."""


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
    interrupted: int = Field(default=0, exclude_if=lambda attempts: not attempts)
    """Attempts that ended with their client: so many calls at most are asked, and may be paid, twice."""
    helpers: tuple[HelperReport, ...]
    """Costs of models on the environment's side, over finished and unfinished trials."""
    agreement: tuple[JudgeAgreement, ...] = Field(default=(), exclude_if=lambda found: not found)
    """Of the task's judges, over the scored trials; empty where it has one judge or none."""

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
    def unscored(self) -> int:
        """Trials that ended in a fault."""
        return sum(self.faults.values())

    @property
    def ended(self) -> int:
        """Trials that are over."""
        return self.scored + self.unscored

    @property
    def coverage(self) -> float:
        """The share of planned trials that are scored; 0 where none are planned."""
        return self.scored / self.planned if self.planned else 0.0


class RunReport(Value):
    """The results of a run; pairs in the order of the plan's tasks, within each task of its agents."""

    run: str
    state: str
    version: str
    pairs: tuple[PairReport, ...]
    notes: tuple[str, ...] = Field(default=(), exclude_if=lambda notes: not notes)
    """What people noted of the run, each with its time."""
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
