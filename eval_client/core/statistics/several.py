"""Pure: several tests at once, and the letters that show what they found."""

from collections.abc import Collection, Sequence
from string import ascii_lowercase


def holm(ps: Sequence[float]) -> list[float]:
    """The p-values adjusted for their number, in the same order (Holm 1979).

    The k-th smallest of n is multiplied by n - k + 1; none is below a smaller one's, nor above 1. Rejecting those below
    alpha rejects any true hypothesis with a probability of at most alpha.
    """
    adjusted = [0.0] * len(ps)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, ps[index] * (len(ps) - rank)))
        adjusted[index] = highest
    return adjusted


def letters(agents: Sequence[str], apart: Collection[frozenset[str]]) -> dict[str, str]:
    """agent -> its letters: two agents share one if, and only if, they are not told apart by a test.

    `apart` has the pairs that are. Insert and absorb (Piepho 2004, Journal of Computational and Graphical Statistics
    13, 456); the first agents get the first letters. After `z` come `aa`, `ab`, ... in brackets.
    """
    groups = [frozenset(agents)]
    for pair in apart:
        split = [group - {agent} for group in groups if pair <= group for agent in pair]
        kept = [group for group in groups if not pair <= group]
        groups = kept + [group for group in split if not any(group <= other for other in kept)]
    order = sorted(groups, key=lambda group: [agent not in group for agent in agents])
    return {agent: "".join(_letter(index) for index, group in enumerate(order) if agent in group) for agent in agents}


def _letter(index: int) -> str:
    if index < len(ascii_lowercase):
        return ascii_lowercase[index]
    first, second = divmod(index - len(ascii_lowercase), len(ascii_lowercase))
    return f"({ascii_lowercase[first % len(ascii_lowercase)]}{ascii_lowercase[second]})"


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
