"""Pure: the Pareto front of costs and scores."""

from collections.abc import Sequence


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """The places of points (cost, score) that none beats: cheaper and as good, or better and as cheap.

    Equal points are all on the front. The cheapest comes first.
    """
    order = sorted(range(len(points)), key=lambda place: (points[place][0], -points[place][1]))
    front: list[int] = []
    for place in order:
        if not front or points[place][1] > points[front[-1]][1] or points[place] == points[front[-1]]:
            front.append(place)
    return front
