"""Every form that published records take (specification section 2), errata over them, and messages for broken ones."""

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from environments.operating_system.dataset import AnswerMatch, DataError, Dataset, SampleRecord, ShellScript, load
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


@pytest.mark.parametrize("init", ["echo", {"code": "echo"}, ["echo"], [{"language": "bash", "code": "echo"}]])
def test_init_is_a_list_of_scripts_in_every_form(tmp_path: Path, init: JsonValue) -> None:
    assert only(tmp_path, create={"init": init}).init == (ShellScript(code="echo"),)


def test_create_local_is_ignored_and_image_is_read(tmp_path: Path) -> None:
    assert only(tmp_path, create={"local": "packages"}).image is None
    assert only(tmp_path, create={"image": "other"}).image == "other"


def test_an_example_counts_inside_and_outside_the_evaluation(tmp_path: Path) -> None:
    assert only(tmp_path, example="ls").example == ShellScript(code="ls")
    assert only(tmp_path, evaluation={"match": "x", "example": {"code": "ls"}}).example == ShellScript(code="ls")


def test_match_wins_over_check(tmp_path: Path) -> None:
    record = only(tmp_path, evaluation={"match": "x", "check": "exit 1"})
    assert (record.kind, record.checks) == ("match", ())


def test_a_check_is_one_script_or_a_list_with_null_for_the_example(tmp_path: Path) -> None:
    assert only(tmp_path, evaluation={"check": "exit 0"}).checks == (ShellScript(code="exit 0"),)
    both = only(tmp_path, evaluation={"check": [None, "exit 0"], "example": "ls"})
    assert (both.checks, both.kind) == ((None, ShellScript(code="exit 0")), "check")


def test_a_script_file_is_read_unchanged_from_the_folder_of_its_split(tmp_path: Path) -> None:
    text = "#!/bin/bash\n\texit 0"
    (tmp_path / "scripts/dev/check").mkdir(parents=True)
    (tmp_path / "scripts/dev/check/0.sh").write_text(text)
    record = only(tmp_path / "data", evaluation={"check": {"file": "check/0.sh"}})
    assert record.checks == (ShellScript(code=text, name="0"),)


def test_ids_stay_the_same_however_a_file_is_reached(tmp_path: Path) -> None:
    one = write(tmp_path / "data/7", GOOD, GOOD, name="stock.json")
    write(tmp_path / "data", GOOD, name="train_first60.json")
    ids = ["7-stock-00000", "7-stock-00001"]
    assert list(load(one).records) == ids
    assert list(load(tmp_path / "data").records) == [*ids, "train-train_first60-00000"]
    assert list(load(one, split="std").records) == ["std-stock-00000", "std-stock-00001"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"description": None}, "description: missing"),
        ({"evaluation": None}, "evaluation: missing"),
        ({"evaluation": {}}, "neither match nor check; add one"),
        ({"evaluation": {"check": []}}, "neither match nor check"),
        ({"evaluation": {"check": [None]}}, "add `example`"),
        ({"evaluation": {"check": [5]}}, "give `code` or `file`"),
        ({"evaluation": {"check": {"language": "perl", "code": ""}}}, "'perl'; use one of bash, python"),
        ({"evaluation": {"check": {"file": "no.py"}}}, "no.py can't be read"),
        ({"evaluation": {"check": {"file": "../../dev.json"}}}, "leaves the script folder"),
        ({"evaluation": {"match": {"answer": "a", "regex": "b"}}}, "one of `answer` and `regex`"),
        ({"evaluation": {"match": {"regex": "("}}}, "correct the regular expression"),
        ({"evaluation": {"match": {"answer": "a", "strip": "no"}}}, "write true or false"),
        ({"labels": "file"}, "labels: not a list"),
        ({"start": "a\0b"}, "start: neither"),
    ],
)
def test_a_broken_record_is_named_with_file_position_field_and_fix(
    tmp_path: Path, fields: dict[str, JsonValue], said: str
) -> None:
    file = write(tmp_path, GOOD, {**GOOD, **fields})
    with pytest.raises(DataError) as raised:
        load(file)
    assert str(raised.value).startswith(f"{file}: record 1: dev-dev-00001: ")
    assert said in str(raised.value)


TWO = [GOOD, {**GOOD, "description": "Who?\u2028"}]
FORMS = {
    "dev.json": json.dumps(TWO),
    "dev.jsonl": "\r\n".join(json.dumps(record, ensure_ascii=False) for record in TWO) + "\n\n",
}


@pytest.mark.parametrize("name", FORMS)
def test_a_file_is_a_list_or_json_lines(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FORMS[name], encoding="utf-8")
    for data in (tmp_path, tmp_path / name):
        described = {sample: record.description for sample, record in load(data).records.items()}
        assert described == {"dev-dev-00000": "Why?", "dev-dev-00001": "Who?\u2028"}


def test_a_single_object_is_a_list_of_one(tmp_path: Path) -> None:
    (tmp_path / "dev.json").write_text(json.dumps(GOOD, indent=1))
    assert list(load(tmp_path / "dev.json").records) == ["dev-dev-00000"]


def test_a_broken_line_is_named_with_its_number(tmp_path: Path) -> None:
    (tmp_path / "dev.jsonl").write_text(f"{json.dumps(GOOD)}\n\n{{")
    with pytest.raises(DataError, match=r"dev\.jsonl:3: not readable as JSON"):
        load(tmp_path / "dev.jsonl")


@pytest.mark.parametrize("content", ["{", "{}", "[]", "", "[1]", "5", "[" * 100_000])
def test_a_file_without_records_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "dev.json").write_text(content)
    with pytest.raises(DataError, match=r"dev\.json"):
        load(tmp_path / "dev.json")


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="give the path of the data"):
        load(tmp_path / "nowhere")


def test_two_files_may_not_give_the_same_ids(tmp_path: Path) -> None:
    write(tmp_path / "a", GOOD)
    write(tmp_path / "b", GOOD)
    with pytest.raises(DataError, match="id dev-dev-00000 appears twice"):
        load(tmp_path)


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
