"""Corrections of database samples, and tables made fit for MySQL."""

import json
from pathlib import Path

import pytest

from environments.database import errata
from environments.database.dataset import Table, TableEntry
from environments.database.errata import Correction

TABLE = Table(name="t", columns=("a", "b"), rows=(("1", "2"), ("3", "4"), ("5", "6")))
ENTRY = TableEntry(
    id="my-00000",
    kind="other",
    description="",
    add_description="",
    table=TABLE,
    label=("1",),
    table_hash=None,
    query=None,
    record="0123456789abcdef",
)


def test_repair_names_columns_and_evens_rows_out() -> None:
    broken = Table(name="t", columns=("", "Name", "name", "x ", ""), rows=(("1",), ("1", "2", "3", "4", "5", "6")))
    repaired = errata.repaired(broken)
    assert repaired.columns == ("column_1", "Name", "name_2", "x", "column_5")
    assert repaired.rows == (("1", None, None, None, None), ("1", "2", "3", "4", "5"))


def test_repair_finds_a_suffix_that_is_free() -> None:
    columns = ("a", "a_2", "a", "column_5", "")
    repaired = errata.repaired(Table(name="t", columns=columns, rows=()))
    assert repaired.columns == ("a", "a_2", "a_3", "column_5", "column_5_2")


def test_a_sound_table_is_left_alone() -> None:
    assert errata.repaired(TABLE) == TABLE


def test_a_correction_drops_rows_and_adds_answers() -> None:
    correction = Correction(reason="proof", record=ENTRY.record, drop_last_rows=2, accept=(("7",),))
    (entry,) = errata.correct([ENTRY], {ENTRY.id: correction})
    assert (entry.table.rows, entry.accept, entry.label) == ((("1", "2"),), (("7",),), ("1",))


def test_a_correction_of_another_record_of_the_same_id_changes_nothing() -> None:
    correction = Correction(reason="proof", record="f" * 16, drop_last_rows=2)
    assert errata.correct([ENTRY], {ENTRY.id: correction}) == (ENTRY,)


def test_a_correction_of_an_unknown_sample_is_an_error_unless_it_names_its_record() -> None:
    with pytest.raises(ValueError, match="overlay: other-00000: no such sample"):
        errata.correct([ENTRY], {"other-00000": Correction(reason="proof")})
    assert errata.correct([ENTRY], {"other-00000": Correction(reason="proof", record="f" * 16)}) == (ENTRY,)


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "the file: "), ('{"x": {"reason": ""}}', r"x\.reason: "), ('{"x": {"reason": "r", "oops": 1}}', r"x\.oops")],
)
def test_a_broken_overlay_is_named_by_file_and_field(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "overlay.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=rf"overlay\.json: {message}"):
        errata.load(path)
    with pytest.raises(ValueError, match="can't be read"):
        errata.load(tmp_path / "none.json")


def test_every_shipped_correction_names_its_record_and_its_proof() -> None:
    corrections = errata.load(errata.SHIPPED)
    assert json.loads(errata.SHIPPED.read_text()).keys() == corrections.keys()
    assert all(correction.record and len(correction.reason) > 20 for correction in corrections.values())
