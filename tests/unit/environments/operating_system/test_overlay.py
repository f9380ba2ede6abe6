"""Errata over published samples."""

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from environments.operating_system.dataset import DataError, Dataset, load
from environments.operating_system.overlay import Errata

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
