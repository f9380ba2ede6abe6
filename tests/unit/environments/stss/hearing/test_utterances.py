"""The utterances that the rules are measured with: whole, labelled in one form, and the test half untouched."""

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import pytest

import environments.stss
from environments.stss.hearing.labelled import Half
from tools.hearing.lessons import LABELLED

FOLDER = Path(environments.stss.__file__).parent
PEOPLE = json.loads((FOLDER / "samples" / "characteristics.json").read_text(encoding="utf-8")).keys() - {"shared"}
PLACES = {"Anchor Inn", "Fernmouth School", "Gull Bakery", "Harbour Green", "Quay Workshop", "Tidewater Store"}
CATEGORIES = {"public", "appointment", "companions", "online", "help"}
MEANINGS = {"invite", "inform", "accept", "decline", "cancel", "move", "question", "smalltalk"}
SLOTS = {"activity", "place", "day", "start", "end", "people", "negated"}
FILES = (*(FOLDER / "utterances" / f"{name}.jsonl" for name in get_args(Half)), LABELLED)
TEST_SHA256 = {
    "test.jsonl": "bc58cc8d3be3e1e6577107cea266ad220b1de700c1c9ea7860e8e9861c3d671a",
    "fresh.jsonl": "196fff1475bc3c6fddc295cba15796b776b1446f44429bf52272e3e3536e24c3",
    "held.jsonl": "71526bb4af57c61f37989d0fe60036e64dffaad2e6af77e7eabc9ee1a53f5c49",
    "everyday.jsonl": "532808025bd88e5b4448c73dc00349752ec84e7a009c277a61798579f2d78d66",
    "talks_test.jsonl": "88db51e91ffaead3f50909a44f7612e2cd9bebc903a5210fdd07af747262ff07",
}

Line = dict[str, Any]


def half(name: str) -> list[Line]:
    return [json.loads(line) for line in (FOLDER / "utterances" / f"{name}.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("name", TEST_SHA256)
def test_what_is_only_measured_with_is_as_it_was_committed(name: str) -> None:
    found = hashlib.sha256((FOLDER / "utterances" / name).read_bytes()).hexdigest()
    assert found == TEST_SHA256[name]


def test_the_halves_are_alike_and_share_nothing() -> None:
    development, test = half("development"), half("test")
    assert (len(development), len(test)) == (310, 310)
    assert not {line["text"] for line in development} & {line["text"] for line in test}
    for field in ("author", "category", "kind"):
        shares = [Counter(line[field] for line in lines) for lines in (development, test)]
        assert max(abs(shares[0][value] - shares[1][value]) for value in shares[0] | shares[1]) <= 5


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_every_line_is_labelled_in_the_form_of_the_page(file: Path) -> None:
    for line in map(json.loads, file.read_text("utf-8").splitlines()):
        slots, number = line["slots"], line["id"]
        assert slots.keys() == SLOTS, number
        assert {line["speaker"], line["listener"], *slots["people"]} <= PEOPLE, number
        assert line["category"] in CATEGORIES, number
        assert line["meaning"] in MEANINGS, number
        assert slots["activity"] is None or slots["activity"] in line["text"], number
        assert slots["place"] in {None, *PLACES} or re.fullmatch(r"[A-Z][a-z]+'s house", slots["place"]), number
        days = r"2023-02-\d\d" if line["author"] in "EFGHKLMNOPQRSTUVWXYZ" else "2023-02-1[34]"
        assert slots["day"] is None or re.fullmatch(days, slots["day"]), number
        assert all(slots[name] is None or re.fullmatch(r"\d\d:\d\d", slots[name]) for name in ("start", "end")), number
        assert all(slots[name] is None for name in line["unsure"]), number


@pytest.mark.parametrize(
    ("name", "agreed", "failed"), [("talks_development", 30, 11), ("talks_practice", 153, 58), ("talks_test", 30, 11)]
)
def test_the_talks_are_labelled_in_the_form_of_the_page(name: str, agreed: int, failed: int) -> None:
    talks = half(name)
    assert Counter(talk["agreed"] for talk in talks) == {True: agreed, False: failed}
    for talk in talks:
        assert talk["talk"][0][0] == talk["performer"]
        assert {who for who, _ in talk["talk"]} == {talk["performer"], talk["partner"]} <= PEOPLE, talk["id"]
        slots = talk["slots"]
        assert (slots is not None) is talk["agreed"], talk["id"]
        if slots is not None:
            assert slots["place"] in {None, *PLACES} or re.fullmatch(r"[A-Z][a-z]+'s house", slots["place"]), talk["id"]
            assert slots["day"] in {"2023-02-13", "2023-02-14"}, talk["id"]
            assert slots["start"] or slots["end"] or talk["category"] != "online", talk["id"]
