"""What `proctor compare` finds, as values, which `proctor compare --json` prints, and as tables."""

from collections.abc import Iterator

from pydantic import Field

from eval_client.core.statistics.agreement import JudgeAgreement
from eval_client.core.statistics.paired import Test
from eval_client.core.statistics.samples import Interval
from proctor.tables.table import MISSING, Entry, Figure, ResultTable, TableColumn, TableRow
from proctor.types import Value

Both = tuple[float, float]
"""A's figure and B's."""
UNLIKE = "≠ "
"""Before a task whose two sides are not alike."""
APART = "*"
"""After a difference that a test shows."""


class ComparedAgent(Value):
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
    agreement: tuple[tuple[JudgeAgreement, ...], tuple[JudgeAgreement, ...]] = Field(
        default=((), ()), exclude_if=lambda found: not any(found)
    )
    """Of the judges of A's and of B's scored trials, matched or not; empty where a side has not several."""
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


def comparison_tables(found: Comparison | Comparisons) -> list[ResultTable]:
    """A table for each pair of agents, and after them the letters where all pairs of a run were compared."""
    if isinstance(found, Comparison):
        return [comparison_table(found)]
    return [*map(comparison_table, found.comparisons), *letters_tables(found)]


def comparison_table(found: Comparison) -> ResultTable:
    """One pair of agents, a row for each task and below it, set in, the figures that have no test."""
    a, b = found.a.agent, found.b.agent
    titles = (a, b, "difference", level_text(found.alpha), "p", "p Holm", "detectable", "won / tied / lost", "missing")
    columns = (TableColumn("task", left=True), *map(TableColumn, ("n", *titles)))
    tests = f"Holm over {found.tests} tests" if found.tests > 1 else "one test"
    notes = (
        f"A is {a}, B is {b}; n: samples that both have scored; {APART} told apart by the adjusted p ({tests}, alpha "
        f"{found.alpha:g}); detectable: with power {found.power:g}.",
        "missing: the lowest and the highest difference that the missing scores allow.",
    )
    missing = any(row.missing.a + row.missing.b for row in found.tasks)
    rows = tuple(row for task in found.tasks for row in _rows(task, found.alpha))
    title = f"{a} ({found.a.run}) less {b} ({found.b.run})"
    if found.a.run == found.b.run:
        title = f"{a} less {b}: run {found.a.run}"
    said: dict[str, list[str]] = {}
    for row in found.tasks:
        for warning in row.warnings:
            said.setdefault(warning, []).append(row.name)
    warnings = tuple(f"{', '.join(names)}: {warning}" for warning, names in said.items())
    judged = tuple(
        f"{row.name}: the judges of {side}: {each.line}."
        for row in found.tasks
        for side, of_side in zip("AB", row.agreement, strict=True)
        for each in of_side
    )
    return ResultTable(title, columns, rows, (*warnings, *judged, *(notes if missing else notes[:1])))


def letters_tables(found: Comparisons) -> list[ResultTable]:
    """Which agents are told apart, in one table of agents by tasks; none where not all pairs were compared."""
    if not found.letters:
        return []
    agents = dict.fromkeys(agent for of_task in found.letters.values() for agent in of_task)
    columns = (TableColumn("agent", left=True), *(TableColumn(task, left=True) for task in found.letters))
    rows = tuple(TableRow((agent, *(of_task.get(agent) for of_task in found.letters.values()))) for agent in agents)
    level = f"{found.comparisons[0].alpha:g}"
    note = f"Agents with a common letter can't be told apart on that task at the level {level}, after Holm."
    return [ResultTable("Which agents differ", columns, rows, (note,))]


def _rows(row: TaskComparison, alpha: float) -> Iterator[TableRow]:
    cells: tuple[Entry, ...] = (
        (UNLIKE if row.unlike else "") + row.name,
        row.samples,
        *map(Figure, row.mean),
        Figure(row.difference, "+.3f", mark=APART if row.p_holm < alpha else ""),
        range_text(row.interval),
        _p(row.p),
        _p(row.p_holm),
        Figure(row.detectable),
        f"{row.wins} / {row.ties} / {row.losses}",
        range_text(row.bounds) if row.missing.a + row.missing.b else "none",
    )
    yield TableRow(cells)
    if row.bootstrap is not None:
        yield TableRow(("  bootstrap", *[None] * 4, range_text(row.bootstrap), *[None] * 5))
    primary = row.primary
    if primary is not None and not primary.is_mean_score:
        difference = Figure(primary.difference, "+.3f", standard_error=primary.standard_error)
        yield _untested(primary.name, Figure(primary.a), Figure(primary.b), difference)
    for each in row.passes:
        both = ((f"pass@{each.k}", each.pass_at), (f"pass^{each.k}", each.pass_hat))
        for name, (a, b) in both if each.k > 1 else both[:1]:
            yield _untested(name, Figure(a), Figure(b), Figure(a - b, "+.3f"))


def _untested(name: str, a: Figure, b: Figure, difference: Figure) -> TableRow:
    cells: tuple[Entry, ...] = (f"  {name}", None, a, b, difference, *[None] * 6)
    return TableRow(cells)


def _p(p: float) -> Figure:
    return Figure(None, instead="<0.0001") if p < 0.0001 else Figure(p, ".4f")
