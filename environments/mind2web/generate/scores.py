"""Scores of an invented ranker for generated pages: how like the task each candidate is, with noise."""

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from environments.mind2web.contest import TOP_K
from environments.mind2web.generate.sites.element import Node
from environments.mind2web.ranking import bm25

RECALL = 0.8
"""Part of the steps with a right element among the best ten, as near as the noise of the scores can bring it."""


class Likeness(NamedTuple):
    """The candidates of a step as a ranker without noise sees them."""

    key: str
    candidates: tuple[str, ...]
    positives: frozenset[str]
    likeness: tuple[float, ...]
    noise: tuple[float, ...]


def likeness(
    key: str, query: str, positives: Sequence[Node], negatives: Sequence[Node], dice: random.Random
) -> Likeness:
    """How like a query the words of each candidate are, from 0 to 1, and the noise to be added."""
    nodes = (*positives, *negatives)
    alike = bm25.bm25([_words(node) for node in nodes], query)
    best = max(alike, default=0.0) or 1.0
    return Likeness(
        key,
        tuple(node.id for node in nodes),
        frozenset(node.id for node in positives),
        tuple(value / best for value in alike),
        tuple(dice.gauss(0, 1) for _ in nodes),
    )


def lines(scored: Sequence[Likeness]) -> Iterator[dict[str, JsonValue]]:
    """With as much noise as brings the recall of the best ten down to what is wanted, and no more."""
    low, high = 0.0, 2.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if _recall(scored, middle) > RECALL else (low, middle)
    for step in scored:
        scores = _noisy(step, low)
        order = sorted(scores, key=lambda name: -scores[name])
        yield {"key": step.key, "scores": dict(scores), "ranks": {name: rank for rank, name in enumerate(order)}}


def _words(node: Node) -> str:
    texts = [child[1] for each in node.walk() for child in each.children if not isinstance(child, Node)]
    return " ".join((*node.element.attributes.values(), *texts[: bm25.TEXTS]))


def _noisy(step: Likeness, level: float) -> dict[str, float]:
    values = zip(step.candidates, step.likeness, step.noise, strict=True)
    return {name: round(like + level * noise, 4) for name, like, noise in values}


def _recall(scored: Sequence[Likeness], level: float) -> float:
    hits = 0
    for step in scored:
        scores = _noisy(step, level)
        hits += bool(step.positives & set(sorted(scores, key=lambda name: -scores[name])[:TOP_K]))
    return hits / len(scored) if scored else 0.0
