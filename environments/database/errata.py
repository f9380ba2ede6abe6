"""The errata profile: tables that MySQL can create, and corrections that the record itself proves."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field, TypeAdapter, ValidationError

from environments.database.dataset import Table, TableEntry
from proctor.config.wording import first_problem
from proctor.types import Value

SHIPPED = Path(__file__).with_name("errata.json")


class Correction(Value):
    """The correction of one sample."""

    reason: str = Field(min_length=1)
    """What is wrong and why, in a sentence."""
    record: str | None = None
    """`TableEntry.record` of the sample; where it differs, the data is another file of the same name: no correction."""
    drop_last_rows: int = Field(default=0, ge=0)
    accept: tuple[tuple[str, ...], ...] = ()
    """Further right answers, each a list like a label."""


def load(path: Path) -> Mapping[str, Correction]:
    """Corrections by sample id, from a JSON file. Raises ValueError naming file, field and fix."""
    try:
        return TypeAdapter(dict[str, Correction]).validate_json(path.read_bytes())
    except OSError as error:
        raise ValueError(f"{path}: can't be read: {error}; correct the field `overlay`") from error
    except ValidationError as error:
        raise ValueError(f"{path}: {first_problem(error)}; see docs/reference/environments/db.md") from error


def correct(entries: Sequence[TableEntry], corrections: Mapping[str, Correction]) -> tuple[TableEntry, ...]:
    """The samples with all corrections that apply, and every table repaired.

    Raises ValueError where a correction without `record` names no sample.
    """
    known = {entry.id for entry in entries}
    for sample, correction in corrections.items():
        if correction.record is None and sample not in known:
            raise ValueError(f"overlay: {sample}: no such sample in the data; remove the entry or correct its id")
    return tuple(_corrected(entry, corrections.get(entry.id)) for entry in entries)


def _corrected(entry: TableEntry, correction: Correction | None) -> TableEntry:
    table = repaired(entry.table)
    if correction is None or correction.record not in (None, entry.record):
        return entry.model_copy(update={"table": table})
    rows = table.rows[: len(table.rows) - correction.drop_last_rows]
    return entry.model_copy(
        update={"table": table.model_copy(update={"rows": rows}), "accept": correction.accept},
    )


def repaired(table: Table) -> Table:
    """The table in a form that MySQL accepts: every column named, no name twice, every row as long as the header.

    A nameless column becomes `column_<position from 1>`, a repeated one gets a suffix from `_2`; rows are padded with
    NULL or cut.
    """
    columns: list[str] = []
    for position, name in enumerate(table.columns, 1):
        columns.append(_free(name.rstrip() or f"column_{position}", columns))
    width = len(columns)
    rows = tuple((*row[:width], *[None] * (width - len(row))) for row in table.rows)
    return table.model_copy(update={"columns": tuple(columns), "rows": rows})


def _free(name: str, taken: Sequence[str]) -> str:
    """The name, or the name with the first free suffix; MySQL compares column names without case."""
    lower = {other.casefold() for other in taken}
    candidate, count = name, 1
    while candidate.casefold() in lower:
        count += 1
        candidate = f"{name}_{count}"
    return candidate
