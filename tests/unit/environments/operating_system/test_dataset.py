"""Every form that published records take (specification section 2), errata over them, and messages for broken ones."""

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from environments.operating_system.dataset import (
    AnswerMatch,
    DataError,
    Dataset,
    Raw,
    SampleRecord,
    Scripts,
    ShellScript,
    load,
    record,
)
from environments.operating_system.overlay import Errata

GOOD: dict[str, JsonValue] = {"description": "Why?", "evaluation": {"match": "because"}}


def write(folder: Path, *records: JsonValue, name: str = "dev.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(records))
    return folder / name


def only(folder: Path, **fields: JsonValue) -> SampleRecord:
    return load(write(folder, {**GOOD, **fields})).records["dev-dev-00000"]


def test_the_least_record_has_defaults(tmp_path: Path) -> None:
    assert only(tmp_path) == SampleRecord(id="dev-dev-00000", description="Why?", match=AnswerMatch(answer="because"))


def test_a_create_that_is_no_object_is_ignored_with_one_warning(tmp_path: Path) -> None:
    dataset = load(write(tmp_path, {**GOOD, "create": [None, {"file": "x"}]}, GOOD))
    assert dataset.warnings == ("dev-dev-00000: create: not an object, so it is ignored",)
    assert dataset.records["dev-dev-00000"].init == ()


def field(name: str, fields: Raw) -> object:
    """What a field of the record is that these fields make, for tables."""
    return getattr(record("x", {**GOOD, **fields}, Scripts(Path()), []), name)


def test_a_script_file_is_read_unchanged_from_the_folder_of_its_split(tmp_path: Path) -> None:
    text = "#!/bin/bash\n\texit 0"
    (tmp_path / "scripts/dev/check").mkdir(parents=True)
    (tmp_path / "scripts/dev/check/0.sh").write_text(text)
    found = only(tmp_path / "data", evaluation={"check": {"file": "check/0.sh"}})
    assert found.checks == (ShellScript(code=text, name="0"),)


def test_ids_stay_the_same_however_a_file_is_reached(tmp_path: Path) -> None:
    one = write(tmp_path / "data/7", GOOD, GOOD, name="stock.json")
    write(tmp_path / "data", GOOD, name="train_first60.json")
    ids = ["7-stock-00000", "7-stock-00001"]
    assert list(load(one).records) == ids
    assert list(load(tmp_path / "data").records) == [*ids, "train-train_first60-00000"]
    assert list(load(one, split="std").records) == ["std-stock-00000", "std-stock-00001"]


TWO = [GOOD, {**GOOD, "description": "Who?\u2028"}]
FORMS = {
    "dev.json": json.dumps(TWO),
    "dev.jsonl": "\r\n".join(json.dumps(each, ensure_ascii=False) for each in TWO) + "\n\n",
}


@pytest.mark.parametrize("name", FORMS)
def test_a_file_is_a_list_or_json_lines(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FORMS[name], encoding="utf-8")
    for data in (tmp_path, tmp_path / name):
        described = {sample: each.description for sample, each in load(data).records.items()}
        assert described == {"dev-dev-00000": "Why?", "dev-dev-00001": "Who?\u2028"}


def test_a_single_object_is_a_list_of_one(tmp_path: Path) -> None:
    (tmp_path / "dev.json").write_text(json.dumps(GOOD, indent=1))
    assert list(load(tmp_path / "dev.json").records) == ["dev-dev-00000"]


ID = "dev-dev-00000"


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    (tmp_path / "dev.json").write_text(json.dumps([{"description": "Why?", "evaluation": {"match": "1"}}]))
    return load(tmp_path / "dev.json")


def errata(dataset: Dataset, tmp_path: Path, entries: JsonValue) -> Errata:
    (tmp_path / "fix.json").write_text(json.dumps(entries))
    return Errata(dataset, tmp_path / "fix.json")


def test_a_corrected_check_shares_the_play(dataset: Dataset, tmp_path: Path) -> None:
    published = dataset.records[ID]
    fixed = errata(dataset, tmp_path, {ID: {"reason": "it is 2", "evaluation": {"match": "2"}}})
    corrected = fixed.corrected(published)
    assert corrected.match is not None
    assert (corrected.match.answer, corrected.description, fixed.same_play(published)) == ("2", "Why?", True)


def test_a_corrected_description_needs_a_play_of_its_own(dataset: Dataset, tmp_path: Path) -> None:
    fixed = errata(dataset, tmp_path, {ID: {"reason": "unclear", "description": "Why not?"}})
    assert not fixed.same_play(dataset.records[ID])
    assert fixed.corrected(dataset.records[ID]).description == "Why not?"


def test_a_sample_without_entry_stays_as_published(dataset: Dataset, tmp_path: Path) -> None:
    assert errata(dataset, tmp_path, {}).corrected(dataset.records[ID]) is dataset.records[ID]


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([], "not an object"),
        ({ID: {"evaluation": {"match": "2"}}}, "reason: missing"),
        ({ID: {"reason": "x", "match": "2"}}, "match: unknown field; use create"),
        ({ID: {"reason": "x", "evaluation": {}}}, "neither match nor check"),
        ({"dev-dev-00009": {"reason": "x", "evaluation": {"match": "2"}}}, "no such sample"),
    ],
)
def test_a_broken_overlay_is_told(dataset: Dataset, tmp_path: Path, entries: JsonValue, said: str) -> None:
    with pytest.raises(DataError, match=said):
        errata(dataset, tmp_path, entries)
