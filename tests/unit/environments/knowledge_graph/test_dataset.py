import json
from pathlib import Path

import pytest

from environments.knowledge_graph import dataset

RECORD = {
    "qid": "q-1",
    "source": "own",
    "question": "who?",
    "entities": {"Ada, of Amberley": "m.1"},
    "s_expression": "(JOIN a m.1)",
    "actions": ["get_relations(m.1)"],
    "answer": [{"answer_type": "Entity", "answer_argument": "m.2", "entity_name": "Bell"}],
}


def load(folder: Path, *records: object) -> list[dataset.QuestionEntry]:
    path = folder / "data.json"
    path.write_text(json.dumps(records))
    return list(dataset.load(path).values())


def test_a_record_is_read_with_its_gold(tmp_path: Path) -> None:
    (entry,) = load(tmp_path, RECORD)
    assert (entry.id, entry.entities, entry.answers) == ("q-1", {"Ada, of Amberley": "m.1"}, (("m.2", "Bell"),))


def test_answer_type_and_entity_name_may_be_missing(tmp_path: Path) -> None:
    (entry,) = load(tmp_path, RECORD | {"answer": [{"answer_argument": "12"}]})
    assert entry.answers == (("12", None),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"qid": "a> . <b"}, "record 1.qid"),
        ({"answer": []}, "record 1.answer"),
        ({"answer": [{"answer_argument": 7}]}, "record 1.answer.0.answer_argument"),
        ({"entities": ["m.1"]}, "record 1.entities"),
        ({"question": None}, "record 1.question"),
    ],
)
def test_a_broken_record_is_named_with_its_field(tmp_path: Path, change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(tmp_path, RECORD, RECORD | {"qid": "q-2"} | change)


def test_an_id_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="record 1: qid: 'q-1' stands twice"):
        load(tmp_path, RECORD, RECORD)


@pytest.mark.parametrize("text", ["", "{", "7", '{"qid": 1}', "\udcff"])
def test_a_file_that_holds_no_samples_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "data.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=r"data\.json"):
        dataset.load(path)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="can't be read"):
        dataset.load(tmp_path / "none.json")
