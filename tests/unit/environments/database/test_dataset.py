"""Database samples: ids, cells as text, corrections, tables made fit for MySQL, and messages for broken data."""

import json
from pathlib import Path
from typing import Any

import pytest

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


def test_blank_lines_are_no_records_but_count_as_lines(tmp_path: Path) -> None:
    path = tmp_path / "my.jsonl"
    path.write_text("\n" + json.dumps(record()) + "\n\n{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"my\.jsonl:4: not JSON"):
        dataset.load(path)


def test_line_separators_within_a_record_do_not_split_it(tmp_path: Path) -> None:
    path = tmp_path / "my.jsonl"
    path.write_text(json.dumps(record(description="a\u2028b\x85c"), ensure_ascii=False), encoding="utf-8")
    assert [entry.description for entry in dataset.load(path)] == ["a\u2028b\x85c"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": []}, r"my\.jsonl:2: label: "),
        ({"type": ["other", "counting"]}, r"my\.jsonl:2: type: "),
        ({"table": {"table_name": "t"}}, r"my\.jsonl:2: table\.table_info: "),
        ({"type": ["INSERT"]}, r"my\.jsonl:2: answer_md5: INSERT needs the hash"),
        ({"type": ["UPDATE"], "answer_md5": "0" * 32}, r"my\.jsonl:2: answer_md5: UPDATE needs the hash"),
    ],
)
def test_broken_records_are_named_by_file_line_and_field(tmp_path: Path, changes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataset.load(write(tmp_path / "my.jsonl", record(), record(**changes)))


def test_a_missing_file_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    for data in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(ValueError, match="no such file or no"):
            dataset.load(data)


def test_the_shipped_samples_hold_every_type_and_no_change_that_changes_nothing() -> None:
    entries = dataset.load(SHIPPED_SAMPLES)
    assert {entry.kind for entry in entries} == {*dataset.SELECT_KINDS, "INSERT", "UPDATE"}
    assert len(entries) >= 16
    assert not [entry.id for entry in entries if entry.table_hash == of_rows(entry.table.rows)]


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
