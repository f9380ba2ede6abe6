"""Scores of an invented ranker for generated pages: each candidate's similarity to the task, with noise."""

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from environments.mind2web import bm25
from environments.mind2web.contest import TOP_K
from tools.datagen.mind2web.element import Node

RECALL = 0.8
"""Wanted fraction of steps with a right element among the ten best; the noise is tuned towards it."""


class Likeness(NamedTuple):
    """Similarity and unit noise of each candidate of a step."""

    key: str
    candidates: tuple[str, ...]
    positives: frozenset[str]
    likeness: tuple[float, ...]
    noise: tuple[float, ...]


def likeness(
    key: str, query: str, positives: Sequence[Node], negatives: Sequence[Node], dice: random.Random
) -> Likeness:
    """Word similarity of each candidate to a query, from 0 to 1, and its noise (normal, standard deviation 1)."""
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


def score_lines(scored: Sequence[Likeness]) -> Iterator[dict[str, JsonValue]]:
    """Lines of the score file, with the noise level at which the recall of the ten best falls to RECALL."""
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
