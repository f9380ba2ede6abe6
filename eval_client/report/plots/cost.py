"""Pure: cost against score, with the Pareto front."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from eval_client.core import Pair
from eval_client.core.spend import Price
from eval_client.core.statistics.several import pareto_front
from eval_client.core.statistics.single import clustered_mean
from eval_client.report.pair_report import PairReport
from eval_client.report.plots import svg
from eval_client.report.plots.svg import Address, Frame, Plot, Scale
from eval_client.store.trials.scores import TrialFacts
from proctor.tables.table import Figure, ResultTable, TableColumn, TableRow

FRAME = Frame(536, 306, 52, 508, 40, 268)
LABEL_ROOM = 150.0
NOTES = (
    "Crosses: ± one standard error. The line is the Pareto front: no agent on it is beaten by another that is cheaper "
    "and at least as good."
)


class CostPoint(NamedTuple):
    """What one agent costs and reaches on a task."""

    agent: str
    cost: float
    """Per trial."""
    cost_error: float | None
    score: float
    score_error: float | None
    href: str = ""


def cost_plots(
    pairs: Sequence[PairReport],
    facts: Mapping[Pair, Sequence[TrialFacts]],
    prices: Mapping[str, Price],
    address: Address = svg.nowhere,
) -> list[Plot]:
    """A plot for each task whose trials cost anything: money where all agents have a price, else tokens.

    `pairs` are ordered by task.
    """
    plots = []
    for task, of_task in groupby(pairs, lambda pair: pair.task):
        group, points = list(of_task), list[CostPoint]()
        priced = all(pair.agent in prices for pair in group)
        for pair in group:
            over = (trial.tokens for trial in facts[pair.agent, task] if trial.reason is not None)
            spent = [prices[pair.agent].of(tokens) if priced else float(tokens.total) for tokens in over]
            if pair.value is not None and spent:
                mean, href = clustered_mean(spent), address(pair.agent, task, sort="-completion_tokens")
                errors = mean.standard_error, pair.standard_error
                points.append(CostPoint(pair.agent, mean.mean, errors[0], pair.value, errors[1], href))
        if any(point.cost for point in points):
            plots.append(cost_and_score(task, group[0].primary, "money" if priced else "tokens", points))
    return plots


def cost_and_score(task: str, metric: str, unit: str, points: Sequence[CostPoint]) -> Plot:
    """One task's agents; without points, an empty frame."""
    ends = [max(0.0, point.cost + sign * (point.cost_error or 0)) for point in points for sign in (-1, 0, 1)]
    x = svg.spanning([point.cost for point in points], FRAME.left, FRAME.right)
    if not x.logarithmic:
        x = svg.linear(ends, FRAME.left, FRAME.right)
    scores = [point.score + sign * (point.score_error or 0) for point in points for sign in (-1, 0, 1)]
    y = svg.linear([max(0.0, score) for score in scores], FRAME.bottom, FRAME.top)
    front = [points[place] for place in pareto_front([(point.cost, point.score) for point in points])]
    title = f"{task}: {unit} per trial and {metric}"
    scaled = ", logarithmic" if x.logarithmic else ""
    parts = [
        svg.horizontal_axis(x, FRAME, f"{unit} per trial{scaled}"),
        svg.vertical_axis(y, FRAME, metric),
        svg.path([(x.at(point.cost), y.at(point.score)) for point in front], "front") if len(front) > 1 else "",
        *(_cross(point, x, y, unit, metric, on_front=point in front) for point in points),
        *_labels(points, x, y),
    ]
    return Plot(title, svg.drawing(FRAME, title, "cost", parts), _table(points, front, unit, metric))


def _cross(point: CostPoint, x: Scale, y: Scale, unit: str, metric: str, *, on_front: bool) -> str:
    across, up = x.at(point.cost), y.at(point.score)
    shapes = []
    if (error := point.cost_error) is not None:
        shapes.append(svg.line(x.at(point.cost - error), up, x.at(point.cost + error), up, "cross"))
    if (error := point.score_error) is not None:
        shapes.append(svg.line(across, y.at(point.score - error), across, y.at(point.score + error), "cross"))
    shapes.append(svg.circle(across, up, 4.5, "dot on-front" if on_front else "dot"))
    front = "; on the Pareto front" if on_front else ""
    spent = f"{_with_error(point.cost, point.cost_error)} {unit} per trial"
    title = f"{point.agent}: {metric} {_with_error(point.score, point.score_error)}, {spent}{front}"
    return svg.mark(title, *shapes, href=point.href)


def _with_error(value: float, error: float | None) -> str:
    return f"{value:.4g}" if error is None else f"{value:.4g} ±{error:.2g}"


def _labels(points: Sequence[CostPoint], x: Scale, y: Scale) -> list[str]:
    """The agents' names beside their points; a name that finds no room is left to its point's title."""
    taken: list[tuple[float, float, float]] = []
    labels = []
    for point in sorted(points, key=lambda each: -each.score):
        name = svg.shortened(point.agent, LABEL_ROOM)
        right, left = x.at(point.cost) + 8, x.at(point.cost) - 8 - svg.text_width(name)
        heights = (y.at(point.score) - 7, y.at(point.score) + 15)
        places = [(start, start + svg.text_width(name), height) for start in (right, left) for height in heights]
        free = next((place for place in places if _is_free(place, taken)), None)
        if free is not None:
            taken.append(free)
            at_right = free[0] == right
            labels.append(svg.words(right if at_right else free[1], free[2], name, anchor="" if at_right else "end"))
    return labels


def _is_free(place: tuple[float, float, float], taken: Sequence[tuple[float, float, float]]) -> bool:
    """Whether a label from `start` to `end` at a height is within the frame and covers no other."""
    start, end, height = place
    within = start >= FRAME.left and end <= FRAME.right and height < FRAME.bottom
    return within and all(abs(height - other) > 12 or start > last or end < first for first, last, other in taken)


def _table(points: Sequence[CostPoint], front: Sequence[CostPoint], unit: str, metric: str) -> ResultTable:
    columns = (
        TableColumn("agent", left=True),
        TableColumn(metric, parts=("standard_error",)),
        TableColumn(f"{unit} per trial", parts=("standard_error",)),
        TableColumn("Pareto front", left=True),
    )
    rows = []
    for point in points:
        form = ",.0f" if point.cost >= 100 else ".5f" if point.cost < 1 else ".3f"
        figures = (
            Figure(point.score, standard_error=point.score_error),
            Figure(point.cost, form, standard_error=point.cost_error),
        )
        rows.append(TableRow((point.agent, *figures, "yes" if point in front else "no")))
    return ResultTable("", columns, tuple(rows), (NOTES,))
