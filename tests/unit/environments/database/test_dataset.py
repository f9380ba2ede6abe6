"""Database samples: ids, cells as text, corrections, tables made fit for MySQL, and messages for broken data."""

import json
from pathlib import Path
from typing import Any

from environments.database import dataset, errata
from environments.database.environment import SHIPPED_SAMPLES
from environments.database.table_hash import of_rows


def record(**changes: Any) -> dict[str, Any]:
    info = {"columns": [{"name": "a", "type": "TEXT"}, {"name": "", "type": "TEXT"}], "rows": [[1, None], ["x", 2.5]]}
    return {
        "description": "What?",
        "add_description": "A table.",
        "type": ["other"],
        "label": ["1"],
        "table": {"table_name": "t #1", "table_info": info},
        "unused": {"anything": True},
    } | changes


def write(path: Path, *records: object) -> Path:
    path.write_text("\n".join(json.dumps(each) for each in records) + "\n", encoding="utf-8")
    return path


def test_cells_become_text_and_null_stays(tmp_path: Path) -> None:
    (entry,) = dataset.load(write(tmp_path / "my.jsonl", record()))
    assert (entry.id, entry.category, entry.table.columns) == ("my-00000", "SELECT", ("a", ""))
    assert entry.table.rows == (("1", None), ("x", "2.5"))


def test_a_folder_gives_its_files_in_order_and_each_record_its_index(tmp_path: Path) -> None:
    write(tmp_path / "b.jsonl", record())
    write(tmp_path / "a.jsonl", record(), record())
    assert [entry.id for entry in dataset.load(tmp_path)] == ["a-00000", "a-00001", "b-00000"]


def test_line_separators_within_a_record_do_not_split_it(tmp_path: Path) -> None:
    path = tmp_path / "my.jsonl"
    path.write_text(json.dumps(record(description="a\u2028b\x85c"), ensure_ascii=False), encoding="utf-8")
    assert [entry.description for entry in dataset.load(path)] == ["a\u2028b\x85c"]


def test_the_shipped_samples_hold_every_type_and_no_change_that_changes_nothing() -> None:
    entries = dataset.load(SHIPPED_SAMPLES)
    assert {entry.kind for entry in entries} == {*dataset.SELECT_KINDS, "INSERT", "UPDATE"}
    assert len(entries) >= 16
    assert not [entry.id for entry in entries if entry.table_hash == of_rows(entry.table.rows)]


def test_every_shipped_correction_names_its_record_and_its_proof() -> None:
    corrections = errata.load(errata.SHIPPED)
    assert json.loads(errata.SHIPPED.read_text()).keys() == corrections.keys()
    assert all(correction.record and len(correction.reason) > 20 for correction in corrections.values())
