"""What the agent is told before the first round: our own words, or those of a file; and when runs are comparable."""

import json
from pathlib import Path
from typing import Any

import pytest

from environments.webshop import prompt
from environments.webshop.catalogue import check_goals, store
from environments.webshop.catalogue.make import DATABASE
from environments.webshop.environment import WebShop
from environments.webshop.prompt import PROMPT
from proctor.published import Opening, Source, fingerprint, records_hash
from proctor.types import Message
from tests.unit.environments.webshop.test_reply import some_goal

TOLD = [{"role": "user", "content": "You shop."}, {"role": "agent", "content": "Ok."}]


def write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


USUAL: dict[str, Any] = {
    "format": store.FORMAT,
    "products": 1_180_000,
    "goals": 12_087,
    "average_length": 100.0,
    "invented": False,
    "price_seed": 0,
    "nouns": "en_core_web_lg 3.7.1, spaCy 3.7.5",
    "files": {},
    "problems": {},
}


GOALS = [some_goal(instruction=f"i'd like {number} lamps, and price lower than 30.00 dollars") for number in range(500)]


def why(folder: Path, meta: dict[str, object], **fields: object) -> str | None:
    """Why a run over a catalogue that says this of itself is not comparable."""
    folder.mkdir()
    connection = store.create(folder / DATABASE)
    store.finish(connection, GOALS, store.Meta.model_validate({**USUAL, **meta}))
    connection.close()
    usual = {"data": folder, "goals": (200, 280), "prompts": write(folder / "mine.json", TOLD)}
    return WebShop.model_validate({**usual, **fields}).not_comparable_because()


def test_only_the_published_words_nouns_goals_and_catalogue_are_comparable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "other words than the published ones" in str(why(tmp_path / "other", {}))
    known = frozenset((fingerprint(PROMPT.read(write(tmp_path / "mine.json", TOLD))),))
    monkeypatch.setattr("environments.webshop.environment.PROMPT", Source(PROMPT.file, known))
    assert "the goals 200 to 499 have other words" in str(why(tmp_path / "goals", {}))
    monkeypatch.setattr(check_goals, "PUBLISHED", records_hash(map(check_goals.words, GOALS[200:])))
    assert why(tmp_path / "same", {}) is None
    assert why(tmp_path / "test", {}, goals=(0, 200), candidates=1_000) is None
    cases: list[tuple[dict[str, object], dict[str, object], str]] = [
        ({}, {"prompts": None}, "in Proctor's own words; give AgentBench v0.2's src/server"),
        ({"nouns": "lexical 1"}, {}, "found by lexical 1, published ones by en_core_web_lg; index with --nouns"),
        ({"nouns": "en_core_web_sm 3.7.1"}, {}, "found by en_core_web_sm 3.7.1"),
        ({"goals": 12_000}, {}, "has 12000 goals, the published one 12087"),
        ({"products": 1_000}, {}, "has 1000 products"),
        ({}, {"goals": None}, "published scores are over the goals [0, 200]"),
        ({}, {"goals": (200, 204)}, "published scores are over the goals [0, 200]"),
        ({}, {"candidates": 50}, "scores 50 documents misses hits"),
        ({}, {"profile": "strict"}, "use compat"),
        ({"invented": True}, {}, "invented"),
    ]
    for number, (meta, fields, reason) in enumerate(cases):
        assert reason in str(why(tmp_path / str(number), meta, **fields)), (meta, fields)
    assert WebShop().published_sampling() == {"temperature": 0}


def test_our_own_words_are_not_the_published_ones() -> None:
    assert PROMPT.differs(Path("x"), Opening(prompt.opening())) is not None
    assert fingerprint(Opening((Message(role="user", content="a"),))) != fingerprint(Opening(()))
