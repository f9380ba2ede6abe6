"""Pure: which trials of a run `proctor retry` plays again."""

from collections.abc import Iterable, Sequence

from eval_client.core.selection import SelectionError, matches
from proctor.types import Value


class FinishedRow(Value):
    """A trial with its outcome."""

    id: int
    agent: str
    task: str
    sample: str
    reason: str | None
    """None while the trial is not over."""
    cause: str | None


class Again(Value):
    """What is asked for; a trial must meet each of the criteria that are given."""

    trials: tuple[str, ...] = ()
    """Numbers, or AGENT@TASK/SAMPLE."""
    causes: tuple[str, ...] = ()
    """Parts of the causes of unscored trials; case does not count."""
    samples: tuple[str, ...] = ()
    """Patterns of SAMPLE or TASK/SAMPLE."""


def chosen_again(rows: Sequence[FinishedRow], asked: Again) -> list[FinishedRow]:
    """The trials to be played again, in the run's order. Raises SelectionError where one asked for is not there."""
    for name in asked.trials:
        if not any(_is(row, name) for row in rows):
            known = f"{_names(rows)}, or numbers from 0 to {len(rows) - 1}"
            raise SelectionError(f"--trial {name}: no such trial; they are {known}")
    for pattern in asked.samples:
        if not any(matches((pattern,), row.sample, row.task) for row in rows):
            raise SelectionError(f"--sample {pattern}: matches nothing; there are {_some(row.sample for row in rows)}")
    for text in asked.causes:
        if not any(_failed_by(row, text) for row in rows):
            causes = _some(row.cause for row in rows if row.cause is not None)
            raise SelectionError(f"--cause {text}: no trial is unscored for that; causes are: {causes}")
    found = [
        row
        for row in rows
        if (not asked.trials or any(_is(row, name) for name in asked.trials))
        and (not asked.samples or matches(asked.samples, row.sample, row.task))
        and (not asked.causes or any(_failed_by(row, text) for text in asked.causes))
    ]
    if not found:
        raise SelectionError("no trial meets all of --trial, --cause and --sample; give fewer of them")
    return found


def _is(row: FinishedRow, name: str) -> bool:
    return name in (str(row.id), f"{row.agent}@{row.task}/{row.sample}")


def _failed_by(row: FinishedRow, text: str) -> bool:
    return row.cause is not None and text.casefold() in row.cause.casefold()


def _names(rows: Sequence[FinishedRow]) -> str:
    return _some(f"{row.agent}@{row.task}/{row.sample}" for row in rows)


def _some(names: Iterable[str]) -> str:
    each = list(dict.fromkeys(names))
    return ", ".join(each[:3]) + (", ..." if len(each) > 3 else "") if each else "none"
