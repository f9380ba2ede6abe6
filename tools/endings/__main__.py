"""Learns `environments/stss/language/ending.json`: `python -m tools.endings`; with `--try`, only tells how well.

It learns from the development half of the labelled talks, the practice talks, and the talks of `talks.txt` beside this
file. `--try` learns from all but one author's talks and judges that author's, for each author of labelled talks.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from environments.stss.dataset import shipped
from environments.stss.hearing.labelled import FOLDER
from environments.stss.hearing.slots import SpokenLine
from environments.stss.language import ending
from environments.stss.language.dialogue import STATE_ODDS, heard_talk, name_words

WEIGHTS = Path(ending.__file__).with_name("ending.json")
TALKS = Path(__file__).with_name("talks.txt")
COMMON = 8
"""A word may be a clue if it was said so often."""
RARE = 3
"""A clue has a weight if it was met in so many talks."""
PULL = 8.0
"""How strongly weights are drawn to 0."""
SMALL = 8
"""Weights up to this, in thousandths, are left out."""
LEAN = 0.3
"""By how much the odds lean to an agreement, since most talks end in one."""
_TOWN = shipped().town

Said = Sequence[tuple[str, Sequence[str]]]


class LabelledTalk(NamedTuple):
    """The last lines of a talk, by side, whether it ends agreed, and what the state of the talk speaks for."""

    author: str
    said: Said
    prior: float
    agreed: bool


def talks() -> Iterator[LabelledTalk]:
    """All talks that are learned from."""
    for half in ("development", "practice"):
        for line in (FOLDER / f"talks_{half}.jsonl").read_text("utf-8").splitlines():
            told = json.loads(line)
            yield _labelled(told["author"], [SpokenLine(*said) for said in told["talk"]], agreed=told["agreed"])
    one, other = list(_TOWN.places.homes)[:2]
    for talk in TALKS.read_text("utf-8").strip().split("\n\n"):
        texts = talk[2:].split("\n")
        lines = [SpokenLine((one, other)[index % 2], text) for index, text in enumerate(texts)]
        yield _labelled("", lines, agreed=talk[0] == "+")


def _labelled(author: str, lines: Sequence[SpokenLine], *, agreed: bool) -> LabelledTalk:
    state = heard_talk(lines, _TOWN.places)
    said = ending.words(lines, state.standing, name_words(_TOWN.places))
    return LabelledTalk(author, said, STATE_ODDS[state.outcome], agreed)


def known_words(taught: Sequence[LabelledTalk]) -> frozenset[str]:
    """The words that may be clues."""
    count = Counter(word for talk in taught for _, line in talk.said for word in line)
    return frozenset(word for word, times in count.items() if times >= COMMON)


def learn(taught: Sequence[LabelledTalk], known: frozenset[str]) -> dict[str, int]:
    """The weights, in thousandths, under which the right endings are likeliest; both endings count alike."""
    from scipy.optimize import minimize
    from scipy.sparse import csr_matrix

    found = [ending.clues(talk.said, known) for talk in taught]
    met = Counter(clue for each in found for clue in each)
    columns = {clue: column for column, clue in enumerate(sorted(clue for clue, times in met.items() if times >= RARE))}
    cells = [
        (row, columns[clue], share) for row, each in enumerate(found) for clue, share in each.items() if clue in columns
    ]
    rows, at, shares = zip(*cells, strict=True)
    matrix: Any = csr_matrix((shares, (rows, at)), shape=(len(taught), len(columns)))
    agreed = numpy.array([talk.agreed for talk in taught])
    signs = numpy.where(agreed, 1.0, -1.0)
    counts = numpy.where(agreed, 0.5 / agreed.mean(), 0.5 / (1 - agreed.mean()))

    def loss(weights: Any) -> tuple[float, Any]:
        scores = matrix @ weights * signs
        wrong = counts / (1 + numpy.exp(scores))
        slope = PULL * weights - matrix.T @ (wrong * signs)
        return float((counts * numpy.logaddexp(0, -scores)).sum() + PULL / 2 * weights @ weights), slope

    best = minimize(loss, numpy.zeros(len(columns)), jac=True, method="L-BFGS-B").x
    best[columns["always"]] += LEAN
    weights = {clue: round(1000 * best[column]) for clue, column in columns.items()}
    return {clue: weight for clue, weight in weights.items() if abs(weight) > SMALL}


def score(talk: LabelledTalk, known: frozenset[str], weights: dict[str, int]) -> float:
    """The odds that a talk ends agreed, as a natural logarithm."""
    found = ending.clues(talk.said, known)
    return talk.prior + sum(weights.get(clue, 0) * share for clue, share in found.items()) / 1000


def tell(taught: Sequence[LabelledTalk]) -> None:
    """Prints for each author how many talks are taken for what they aren't, when learned from the others'."""
    for author in sorted({talk.author for talk in taught} - {""}):
        rest, own = [talk for talk in taught if talk.author != author], [t for t in taught if t.author == author]
        known = known_words(rest)
        weights = learn(rest, known)
        for agreed in (True, False):
            those = [talk for talk in own if talk.agreed == agreed]
            wrong = sum((score(talk, known, weights) > 0) != agreed for talk in those)
            print(f"{author}: {wrong} of {len(those)} that end {'' if agreed else 'not '}agreed are judged wrong")


def main() -> None:
    """Learns, and writes the weights or tells how well they do."""
    taught = list(talks())
    if "--try" in sys.argv:
        tell(taught)
        return
    known = known_words(taught)
    stored = {"known": sorted(known), "weights": dict(sorted(learn(taught, known).items()))}
    WEIGHTS.write_text(json.dumps(stored, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
