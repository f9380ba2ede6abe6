"""Questions and the ontology: what is read, and what is said of broken files."""

import json
import logging
from pathlib import Path

import pytest

from environments.knowledge_graph import dataset, ontology
from environments.knowledge_graph.environment import SAMPLES

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


ROLES = "a.ship a.ship.port a.town\na.ship a.ship.length type.floata.ship a.ship.name type.text\n\n"
TYPES = "a.ferry meta.subclassOf a.ship\na.ship meta.subclassOf common.topic .\na.town meta.subclassOf\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    names = {"relations": ["a.ship.port"], "attributes": ["a.ship.length"], "classes": ["a.ship"]}
    (tmp_path / "vocab.json").write_text(json.dumps(names))
    (tmp_path / "fb_roles").write_text(ROLES)
    (tmp_path / "fb_types").write_text(TYPES)
    (tmp_path / "reverse_properties").write_text("a.ship.port\ta.town.ships\n")
    return tmp_path


def test_corrupt_lines_are_skipped_with_a_warning(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        known = ontology.load_ontology(folder)
    assert known.roles == {"a.ship.port": ("a.ship", "a.town")}
    assert known.lines == {"fb_roles": 2, "fb_types": 3, "reverse_properties": 1}
    assert [line.partition(": ")[0] for line in known.skipped] == ["fb_roles:2", "fb_types:3"]
    assert len(caplog.records) == 2


def test_a_folder_is_read_once_until_a_file_of_it_changes(folder: Path) -> None:
    known = ontology.load_ontology(folder)
    assert ontology.load_ontology(folder) is known
    (folder / "fb_types").write_text("a.ferry meta.subclassOf a.vehicle\n")
    assert ontology.load_ontology(folder).is_a("a.ferry", "a.vehicle")


def test_a_type_is_what_it_comes_under_at_any_depth(folder: Path) -> None:
    known = ontology.load_ontology(folder)
    assert known.is_a("a.ferry", "a.ferry")
    assert known.is_a("a.ferry", "common.topic")
    assert not known.is_a("a.ship", "a.ferry")
    assert not known.is_a("a.unknown", "common.topic")


def test_types_in_a_circle_end(folder: Path) -> None:
    (folder / "fb_types").write_text("a meta.subclassOf b\nb meta.subclassOf a\n")
    assert not ontology.load_ontology(folder).is_a("a", "c")


def test_the_shipped_ontology_is_whole() -> None:
    known = ontology.load_ontology(SAMPLES / "ontology")
    assert known.skipped == ()
    assert known.vocabulary.relations | known.vocabulary.attributes == set(known.roles)
    assert {known.inverses[known.inverses[name]] for name in known.inverses} == known.vocabulary.relations
