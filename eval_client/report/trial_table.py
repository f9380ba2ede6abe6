"""The columns of a table of trials, the same for pages and terminals."""

from typing import NamedTuple

from eval_client.plan.plan import Plan
from eval_client.store.trials.rows import QueryError, TrialQuery


class TrialColumn(NamedTuple):
    """A column of trials."""

    name: str
    """The field of a TrialRow."""
    title: str
    form: str = ""
    """The format of its numbers; empty for texts."""
    usual: bool = True
    """Whether it is shown unless columns are chosen."""


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


def shown_columns(query: TrialQuery, plan: Plan) -> list[TrialColumn]:
    """The columns that a query chooses; else the usual ones without what is the same in all rows.

    Raises QueryError.
    """
    alike = {"agent": query.agent or not plan.agents[1:], "task": query.task or not plan.tasks[1:]}
    alike |= {"epoch": plan.epochs == 1}
    return [column for column in chosen_columns(query.columns) if query.columns or not alike.get(column.name)]
