"""The lexical host is asked key points, and denials of them, in every common form, in both languages."""

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from environments.lateral_thinking.dataset import Language, Puzzle, load
from environments.lateral_thinking.environment import SHIPPED_SAMPLES
from environments.lateral_thinking.hosts.lexical import LexicalHost
from tests.support import SHARED_DATA

QUESTIONS = yaml.safe_load(Path(__file__).with_name("questions.yaml").read_text(encoding="utf-8"))
FORMS: dict[Language, tuple[str, ...]] = {
    "en": tuple(QUESTIONS["en"]["asking"]),
    "zh": tuple(QUESTIONS["zh"]["asking"]),
}
"""Forms of asking for a statement: `{S}` with a capital letter, `{s}` without."""
OPPOSITES: dict[Language, tuple[tuple[str, str], ...]] = {
    "en": ((" not ", " "), ("n't", ""), ("unable", "able"), ("never ", ""), ("No ", "Some ")),
    "zh": (
        ("没有", "有"),
        ("不是", "是"),
        ("无法", "可以"),
        ("没", ""),
        ("不在", "在"),
        ("不敢", "敢"),
        ("不知", "知"),
    ),
}


def asked_as(form: str, statement: str) -> str:
    said = statement.rstrip(".。?？!")
    return form.replace("{S}", said).replace("{s}", said[0].lower() + said[1:])


def opposite(key: str, language: Language) -> str | None:
    """The key point with its denial taken away, or with one put in; None where neither is simple."""
    for old, new in OPPOSITES[language]:
        if old in key:
            return key.replace(old, new)
    if language == "zh":
        return (
            re.sub("是|会|在|能|把", lambda verb: "不" + verb[0], key, count=1)
            if re.search("[是会在能把]", key)
            else None
        )
    verb = re.search(r"\b(?:is|was|are|were|had|has|can|could|did|will|would)\b", key)
    return None if verb is None else f"{key[: verb.end()]} not{key[verb.end() :]}"


async def answers_to_the_keys(puzzles: tuple[Puzzle, ...], language: Language) -> Counter[str]:
    """The answers to all key points in all forms; `lost` where a yes leaves the key point unfound."""
    answers = Counter[str]()
    for puzzle in puzzles:
        game = LexicalHost().game(puzzle, "strict")
        for at, key in enumerate(puzzle.keys):
            for form in FORMS[language]:
                ruling = await game.rule(asked_as(form, key), range(len(puzzle.keys)))
                answers["lost" if ruling.answer == "yes" and at not in ruling.hits else ruling.answer] += 1
    return answers


def denying(key: str, language: Language) -> list[str]:
    """Questions that deny a key point: its opposite in every form of asking, and itself in every form of denying."""
    false = opposite(key, language)
    opposites = [asked_as(form, false) for form in FORMS[language]] if false else []
    return opposites + [asked_as(form, key) for form in QUESTIONS[language]["denying"]]


async def denied_keys_found(puzzles: tuple[Puzzle, ...], language: Language) -> list[str]:
    """The questions that deny a key point and find it."""
    found = []
    for puzzle in puzzles:
        game = LexicalHost().game(puzzle, "strict")
        for at, key in enumerate(puzzle.keys):
            asked = denying(key, language) + QUESTIONS[language]["denied"].get(key, [])
            found += [question for question in asked if at in (await game.rule(question, (at,))).hits]
    return found


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_true_key_point_is_found_in_every_form(language: Language) -> None:
    puzzles = tuple(puzzle for puzzle in load(SHIPPED_SAMPLES) if puzzle.language == language)
    assert await answers_to_the_keys(puzzles, language) == {"yes": 24 * len(FORMS[language])}


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_denied_key_point_is_found_in_no_form(language: Language) -> None:
    puzzles = tuple(puzzle for puzzle in load(SHIPPED_SAMPLES) if puzzle.language == language)
    assert QUESTIONS[language]["denied"].keys() == {key for puzzle in puzzles for key in puzzle.keys}
    assert await denied_keys_found(puzzles, language) == []


@pytest.mark.shared
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_true_key_point_of_the_dev_data_is_found_in_every_form(language: Language) -> None:
    puzzles = load(SHARED_DATA / "ltp" / language / "dev.xlsx")
    assert await answers_to_the_keys(puzzles, language) == {"yes": 91 * len(FORMS[language])}


@pytest.mark.shared
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_denied_key_point_of_the_dev_data_is_found_in_no_form(language: Language) -> None:
    assert await denied_keys_found(load(SHARED_DATA / "ltp" / language / "dev.xlsx"), language) == []
