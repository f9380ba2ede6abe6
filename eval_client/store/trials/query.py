"""Which trials of a run a page shows: the parameters of an address, and the cursor of the next page. Pure."""

import math
from collections.abc import Mapping

from proctor.types import FinishReason, Value

SORTS = (
    *("id", "agent", "task", "sample", "epoch", "score", "reason", "turns", "prompt_tokens", "completion_tokens"),
    *("seconds", "attempts", "ended_at"),
)
"""The columns by which trials are sorted."""
TEXTS = ("agent", "task", "sample", "reason", "ended_at")
"""Those of them that hold texts."""
MAX_SIZE, SIZE = 500, 100
"""Rows of a page: at most, and unless told otherwise."""
MAX_TEXT = 255
MAX_TRIAL = 2**31 - 1
PAGED = ("after", "size")
NONE = "none"
"""Selects trials without a finish reason, or without a score."""


class QueryError(ValueError):
    """A parameter of an address is invalid; the message names it and the fix."""


class TrialQuery(Value):
    """Selects trials of a run: every condition holds. Empty texts select all."""

    agent: str = ""
    task: str = ""
    sample: str = ""
    """A part of the sample's name, in capital or small letters."""
    reason: str = ""
    """A finish reason, or `none`."""
    score: str = ""
    """`0.5`, a range such as `0..0.5`, `..0.5` or `0.5..`, or `none`."""
    cause: str = ""
    """A part of a fault's cause."""
    text: str = ""
    """A part of an observation or an answer, in capital or small letters; such a search goes in the order of trials."""
    sort: str = "id"
    """One of SORTS, with `-` before it in descending order. Trials without a value come last."""
    after: str = ""
    """The cursor that the page before ended with: the id of its last trial."""
    size: int = SIZE

    def carried(self) -> dict[str, str]:
        """What the address of a trial takes along: the filter with its order, without the page."""
        return {name: str(value) for name, value in self.model_dump(exclude_defaults=True).items() if name not in PAGED}


def trial_query(given: Mapping[str, str]) -> TrialQuery:
    """The query in the parameters of an address; other parameters are ignored. Raises QueryError."""
    texts = {name: given[name].strip() for name in TrialQuery.model_fields if given.get(name, "").strip()}
    for name, text in texts.items():
        if len(text) > MAX_TEXT or "\0" in text:
            raise QueryError(f"{name}: at most {MAX_TEXT} characters, without NUL")
    size = texts.pop("size", str(SIZE))
    if not (size.isascii() and size.isdigit() and 1 <= int(size) <= MAX_SIZE):
        raise QueryError(f"size: {size!r} is no number from 1 to {MAX_SIZE}")
    query = TrialQuery(size=int(size), **texts)
    if query.sort.removeprefix("-") not in SORTS:
        raise QueryError(f"sort: {query.sort!r} is none of {', '.join(SORTS)}; a minus before it reverses the order")
    if query.reason not in ("", NONE, *FinishReason):
        raise QueryError(f"reason: {query.reason!r} is none of {', '.join(FinishReason)}, {NONE}")
    score_range(query.score)
    if query.after and not (query.after.isascii() and query.after.isdigit() and int(query.after) <= MAX_TRIAL):
        raise QueryError("after: this is no cursor that a page gave; leave it out")
    return query.model_copy(update={"sort": "id"}) if query.text else query


def score_range(text: str) -> tuple[float, float]:
    """The lowest and the highest score of a filter. Raises QueryError."""
    low, dots, high = text.partition("..")
    try:
        bounds = float(low or "-inf"), float((high or "inf") if dots else (low or "inf"))
    except ValueError:
        bounds = (math.nan, math.nan)
    if text not in ("", NONE) and any(map(math.isnan, bounds)):
        raise QueryError(f"score: {text!r} is no score; write 1, or a range such as 0..0.5, or {NONE}")
    return bounds
