"""What `proctor compare` finds, as values; `proctor compare --json` prints them."""

from pydantic import Field

from eval_client.core.statistics.paired import Test
from eval_client.core.statistics.samples import Interval
from proctor.tables.table import MISSING
from proctor.types import Value

Both = tuple[float, float]
"""A's figure and B's."""


class ComparedAgent(Value):
    """One side of a comparison."""

    run: str
    agent: str
    version: str
    """Proctor's version, of the run's start."""


class MissingTrials(Value):
    """Planned trials without a score."""

    a: int
    b: int
    p: float
    """Exact McNemar's p that both sides miss samples by the same chance."""


class PrimaryDifference(Value):
    """The environment's primary metric on both sides."""

    name: str
    a: float
    b: float
    difference: float | None = None
    """None where the metric is not the mean score and the environment, as the run had it, is not installed here; then
    `a` and `b` are the figures of the reports, over all scored trials."""
    standard_error: float | None = None
    is_mean_score: bool
    """Whether it is the mean score, so that the test is of it too."""


class RepeatedPasses(Value):
    """Shares of samples passed at least once (pass@k) and every time (pass^k) in k trials, for A and for B."""

    k: int
    pass_at: Both
    pass_hat: Both
    left_out: tuple[int, int]
    """Matched samples with fewer than k scored epochs."""


class SamplesNeeded(Value):
    """How many samples like these find a difference of the measured size with the given power."""

    as_played: int
    twice_the_epochs: int | None
    """Unknown where a side has one epoch only, or samples share clusters."""


class TaskComparison(Value):
    """A - B on one task. Figures are over matched samples unless they say otherwise."""

    task: str
    """A's name of the task."""
    task_b: str
    environment: str
    unlike: tuple[str, ...]
    """What differs between the two sides: this row is not of the agents alone."""
    samples: int
    """Matched: scored at least once on both sides."""
    planned: int
    """Planned on both sides."""
    planned_on_one_side: int
    clusters: int
    effective_clusters: float
    """Their number where all have as many samples, else less."""
    epochs: tuple[int, int]
    """The most planned epochs of a sample."""
    mean: Both
    mean_interval: tuple[Interval | None, Interval | None]
    mean_bounds: tuple[Interval, Interval]
    """The means over all planned samples, if all missing scores were 0, and if they were 1."""
    difference: float
    standard_error: float | None
    interval: Interval | None
    pairing_gain: float | None
    """How many times smaller the error is than one that ignores the pairing."""
    test: Test
    p: float
    p_holm: float
    t_p: float | None
    """By the paired t test with clusters."""
    differing: int
    """Clusters whose differences don't cancel out."""
    wins: int
    ties: int
    losses: int
    detectable: float | None
    """The difference that would have been found with the given power, at alpha / number of tests; None where so few
    clusters can't show any, or no differences vary."""
    needed: SamplesNeeded | None
    """None where the difference is 0 or there are fewer than two clusters."""
    bootstrap: Interval | None
    """By whole clusters drawn with replacement; None where it was not asked for."""
    bounds: Interval
    """The least and the greatest difference over all planned samples that the missing scores allow."""
    holds: bool
    """Whether the difference has the same sign whatever the missing scores are."""
    missing: MissingTrials
    primary: PrimaryDifference | None
    """None where the run has no metrics of the environment for these trials yet."""
    passes: tuple[RepeatedPasses, ...]
    """Empty where each sample has one epoch."""
    warnings: tuple[str, ...] = ()
    """Why the figures deserve less trust than they seem to."""

    @property
    def name(self) -> str:
        """The task, or both where they differ."""
        return self.task if self.task == self.task_b else f"{self.task} / {self.task_b}"


class Comparison(Value):
    """Agent A less agent B, task by task."""

    a: ComparedAgent
    b: ComparedAgent
    alike: tuple[str, ...]
    """What differs between the two sides besides the agents; empty where they are alike."""
    across: tuple[str, ...]
    """The kinds of differences that were waved through."""
    alpha: float
    power: float
    tests: int
    """How many tests Holm's correction is over."""
    tasks: tuple[TaskComparison, ...]
    gates: tuple[str, ...] = ()
    """Why a gate of `--fail-if-worse` or `--fail-unless-as-good` fails; empty where none does."""


class Comparisons(Value):
    """All pairs of a run's agents."""

    comparisons: tuple[Comparison, ...] = Field(min_length=1)
    letters: dict[str, dict[str, str]]
    """task -> agent -> letters: agents share one if, and only if, no test tells them apart. Empty with `--against`."""


def range_text(ends: Interval | None) -> str:
    """Both ends of an interval of differences; a dash for none."""
    return MISSING if ends is None else f"{ends[0]:+.3f} .. {ends[1]:+.3f}"


def level_text(alpha: float) -> str:
    """What an interval of this level is called: 95 % interval."""
    return f"{100 * (1 - alpha):g} % interval"
