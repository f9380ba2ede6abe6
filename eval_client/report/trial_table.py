"""The columns of a table of trials, the same for pages and terminals."""

from collections.abc import Sequence
from typing import NamedTuple

from eval_client.store.trials.rows import SORTS, QueryError, TrialRow


class TrialColumn(NamedTuple):
    """A column of trials."""

    name: str
    """The field of a TrialRow."""
    title: str
    form: str = ""
    """The format of its numbers; empty for texts."""
    usual: bool = True
    """Whether it is shown unless columns are chosen."""

    @property
    def sort(self) -> str:
        """What the table is sorted by for this column; empty where it can't be."""
        return self.name if self.name in SORTS else ""


COLUMNS = (
    TrialColumn("id", "#", "d"),
    TrialColumn("score", "score", ".3f"),
    TrialColumn("agent", "agent"),
    TrialColumn("task", "task"),
    TrialColumn("sample", "sample"),
    TrialColumn("epoch", "ep", "d"),
    TrialColumn("asked", "asked"),
    TrialColumn("expected", "expected"),
    TrialColumn("answered", "answered"),
    TrialColumn("reason", "reason"),
    TrialColumn("turns", "turns", ",d"),
    TrialColumn("prompt_tokens", "tok in", ",d"),
    TrialColumn("completion_tokens", "tok out", ",d"),
    TrialColumn("seconds", "s", ".1f"),
    TrialColumn("model_seconds", "model s", ".1f", usual=False),
    TrialColumn("world_seconds", "world s", ".1f", usual=False),
    TrialColumn("attempts", "attempts", "d", usual=False),
    TrialColumn("cut_answers", "cut", "d", usual=False),
    TrialColumn("ended_at", "ended", usual=False),
)
NAMES = ("agent", "task", "epoch", "reason")
"""Columns that tell nothing where all rows have the same."""
USUAL = ",".join(column.name for column in COLUMNS if column.usual)


def chosen_columns(names: str) -> list[TrialColumn]:
    """The columns of these names, with commas between, in the table's order; the usual ones of none.

    Raises QueryError.
    """
    chosen = {name for each in names.split(",") if (name := each.strip())}
    if unknown := sorted(chosen - {column.name for column in COLUMNS}):
        known = ", ".join(column.name for column in COLUMNS)
        raise QueryError(f"columns: {unknown[0]!r} is none of {known}")
    return [column for column in COLUMNS if (column.name in chosen if chosen else column.usual)]


def telling_columns(rows: Sequence[TrialRow]) -> list[TrialColumn]:
    """The usual columns without those of names and reasons that say the same of all rows."""
    alike = {name for name in NAMES if len({getattr(row, name) for row in rows}) < 2}
    return [column for column in COLUMNS if column.usual and column.name not in alike]
