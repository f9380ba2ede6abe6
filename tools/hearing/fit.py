"""What learning weights of clues has in common: the matrix of clues, and the weights of the least loss."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy


def clue_matrix(met: Mapping[str, int], rare: int, rows: Sequence[Collection[str]]) -> tuple[Mapping[str, int], Any]:
    """The columns of the clues that were `met` at least `rare` times, and a sparse matrix: 1 for each in a row."""
    from scipy.sparse import csr_matrix

    columns = {clue: column for column, clue in enumerate(sorted(clue for clue, times in met.items() if times >= rare))}
    found = [[columns[clue] for clue in row if clue in columns] for row in rows]
    ends = numpy.cumsum([0, *map(len, found)])
    flat = [column for row in found for column in row]
    return columns, csr_matrix((numpy.ones(len(flat)), flat, ends), shape=(len(rows), len(columns)))


def least(loss: Callable[[Any], tuple[float, Any]], columns: Mapping[str, int]) -> dict[str, int]:
    """The weights, in hundredths, of the least loss; `loss` gives it with its slope. Weights near 0 are left out."""
    from scipy.optimize import minimize

    best = minimize(loss, numpy.zeros(len(columns)), jac=True, method="L-BFGS-B", options={"maxiter": 100}).x
    weights = {clue: round(100 * best[column]) for clue, column in columns.items()}
    return {clue: weight for clue, weight in weights.items() if abs(weight) > 2}


def logistic(rows: Sequence[Collection[str]], true: Sequence[bool], *, rare: int, pull: float) -> dict[str, int]:
    """The weights, in hundredths, by logistic regression: of the clues met `rare` times, drawn to 0 by `pull`."""
    columns, matrix = clue_matrix(Counter(clue for row in rows for clue in row), rare, rows)
    wanted = numpy.array(true, dtype=float)

    def loss(weights: Any) -> tuple[float, Any]:
        scores = matrix @ weights
        likely = 1 / (1 + numpy.exp(-scores))
        slope = matrix.T @ (likely - wanted) + pull * weights
        return float(numpy.logaddexp(0, scores).sum() - wanted @ scores + pull / 2 * weights @ weights), slope

    return least(loss, columns)
