"""Pure: the running mean of scores in the order in which trials ended."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from eval_client.report.plots.scale import Scale, horizontal_axis, linear, vertical_axis
from eval_client.report.plots.svg import Frame, Plot, area, drawing, label_width, line, mark, path, shortened, words
from proctor.tables.table import Figure, ResultTable, TableColumn, TableRow

MOST_POINTS = 24
STYLES = 6
HEIGHT = 228.0
LABEL_ROW = 14.0
NOTES = (
    "Order of ending, not of difficulty: quick trials end first. Band: ± one standard error, with clusters as units. "
    "A vertical stroke on a curve marks where the run was resumed."
)


class EndedTrial(NamedTuple):
    """A scored trial."""

    sample: str
    cluster: str
    score: float
    resumes: int = 0
    """How often the run had been resumed before the trial ended."""


class CurvePoint(NamedTuple):
    """The mean over samples after so many scored trials."""

    trials: int
    mean: float
    standard_error: float | None


class Curve(NamedTuple):
    """One agent's running mean on a task."""

    agent: str
    points: tuple[CurvePoint, ...]
    resumes: tuple[CurvePoint, ...]
    """The point before each resume in which trials of this curve ended."""
    href: str = ""


class RunningMean:
    """The mean over samples of the mean over epochs, with its clustered error, kept up trial by trial."""

    def __init__(self) -> None:
        self._samples: dict[str, tuple[int, float]] = {}
        self._clusters: dict[str, tuple[int, float]] = {}
        self._sum = self._squares = self._products = 0.0
        self._sizes = 0
        """Over clusters, of n samples and a sum s: the sums of s * s, of n * s, and of n * n."""

    def add(self, trial: EndedTrial) -> None:
        """Count one more trial."""
        count, mean = self._samples.get(trial.sample, (0, 0.0))
        new = mean + (trial.score - mean) / (count + 1)
        self._samples[trial.sample] = count + 1, new
        size, total = self._clusters.get(trial.cluster, (0, 0.0))
        larger, moved = size + (count == 0), total + new - mean
        self._clusters[trial.cluster] = larger, moved
        self._sum += new - mean
        self._squares += moved * moved - total * total
        self._products += larger * moved - size * total
        self._sizes += larger * larger - size * size

    def point(self, trials: int) -> CurvePoint:
        """The mean so far; there has to be a trial."""
        samples, groups = len(self._samples), len(self._clusters)
        mean = self._sum / samples
        if groups < 2:
            return CurvePoint(trials, mean, None)
        squares = max(0.0, self._squares - 2 * mean * self._products + mean * mean * self._sizes)
        return CurvePoint(trials, mean, math.sqrt(squares * groups / (groups - 1)) / samples)


def running_mean(agent: str, trials: Iterable[EndedTrial], *, planned: int, href: str = "") -> Curve:
    """The curve of trials in the order of their ending, at about 24 points and at the last one."""
    every = max(1, -(-planned // MOST_POINTS))
    running = RunningMean()
    points: list[CurvePoint] = []
    resumes: list[CurvePoint] = []
    number, resumed = 0, 0
    for number, trial in enumerate(trials, 1):
        if trial.resumes > resumed and number > 1:
            resumes.append(running.point(number - 1))
        resumed = trial.resumes
        running.add(trial)
        if number % every == 0 or number == 1:
            points.append(running.point(number))
    if number and points[-1].trials != number:
        points.append(running.point(number))
    return Curve(agent, tuple(points), tuple(resumes), href)


def learning_curve(task: str, curves: Sequence[Curve]) -> Plot:
    """One task's agents."""
    drawn = [curve for curve in curves if curve.points]
    label = label_width([curve.agent for curve in drawn], 40, 150)
    height = max(HEIGHT, LABEL_ROW * len(drawn))
    frame = Frame(400 + label + 66, height + 76, 44, 400, 38, 38 + height)
    x = linear([curve.points[-1].trials for curve in drawn], frame.left, frame.right)
    ends = [
        point.mean + sign * (point.standard_error or 0) for each in drawn for point in each.points for sign in (-1, 1)
    ]
    y = linear([min(1.0, max(0.0, end)) for end in ends], frame.bottom, frame.top)
    title = f"{task}: running mean of the scores"
    parts = [horizontal_axis(x, frame, "scored trials, in order of ending"), vertical_axis(y, frame, "mean score")]
    parts += [_band(curve, x, y) for curve in drawn]
    parts += [_curve(curve, place, x, y) for place, curve in enumerate(drawn)]
    parts += _labels(drawn, frame, y, label)
    return Plot("learning", title, drawing(frame, title, "learning", parts), _table(drawn))


def _band(curve: Curve, x: Scale, y: Scale) -> str:
    held = [point for point in curve.points if point.standard_error is not None]
    upper = [(x.at(point.trials), y.at(point.mean + (point.standard_error or 0))) for point in held]
    lower = [(x.at(point.trials), y.at(point.mean - (point.standard_error or 0))) for point in held]
    return area([*upper, *reversed(lower)], "band", 0.1) if len(held) > 1 else ""


def _curve(curve: Curve, place: int, x: Scale, y: Scale) -> str:
    last = curve.points[-1]
    error = "" if last.standard_error is None else f" ±{last.standard_error:.3f}"
    title = f"{curve.agent}: mean score {last.mean:.3f}{error} after {last.trials:,} scored trials"
    points = [(x.at(point.trials), y.at(point.mean)) for point in curve.points]
    if len(points) == 1:
        points = [(points[0][0] - 3, points[0][1]), points[0]]
    marks = [mark(title, path(points, f"curve curve-{place % STYLES}"), href=curve.href)]
    for point in curve.resumes:
        across, up = x.at(point.trials), y.at(point.mean)
        stroke = line(across, max(y.end, up - 9), across, min(y.start, up + 9), "resume")
        title = f"{curve.agent}: the run was resumed after {point.trials:,} scored trials"
        marks.append(mark(title, stroke, href=curve.href))
    return "".join(marks)


def _labels(curves: Sequence[Curve], frame: Frame, y: Scale, room: float) -> list[str]:
    """The agents' names beside the ends of their curves, moved apart, in the order of the means."""
    ordered = sorted(curves, key=lambda curve: -curve.points[-1].mean)
    heights: list[float] = []
    for place, curve in enumerate(ordered):
        lowest = heights[-1] + LABEL_ROW if heights else frame.top + 8
        room_below = frame.bottom - LABEL_ROW * (len(ordered) - 1 - place) + 6
        heights.append(max(lowest, min(room_below, y.at(curve.points[-1].mean) + 4)))
    return [
        words(frame.right + 8, height, f"{shortened(curve.agent, room)} {curve.points[-1].mean:.3f}", kind="label")
        for curve, height in zip(ordered, heights, strict=True)
    ]


def _table(curves: Sequence[Curve]) -> ResultTable:
    """A row for each number of trials at which a curve has a point, and a column for each agent."""
    points = [{point.trials: point for point in (*curve.points, *curve.resumes)} for curve in curves]
    rows = []
    for trials in sorted({trials for of_curve in points for trials in of_curve}):
        found = [of_curve.get(trials) for of_curve in points]
        figures = (point and Figure(point.mean, standard_error=point.standard_error) for point in found)
        resumed = [curve.agent for curve in curves if trials in {point.trials for point in curve.resumes}]
        rows.append(TableRow((trials, *figures, ", ".join(resumed))))
    columns = (
        TableColumn("scored trials"),
        *(TableColumn(curve.agent, parts=("standard_error",)) for curve in curves),
        TableColumn("resumed after these", left=True),
    )
    return ResultTable("", columns, tuple(rows), (NOTES,))
