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

ENGLISH = (
    "{S}?",
    "Is it true that {s}?",
    "Is it true that {s}, yes or no?",
    "{S}, yes or no?",
    "Yes or no: {s}?",
    "{S}, true or false?",
    "{S} or not?",
    "Is it true or not that {s}?",
    "Isn't it true that {s}?",
    "Isn't it so that {s}?",
    "Isn’t it the case that {s}?",
    "Is it not true that {s}?",
    "Is it not the case that {s}?",
    "{S}, isn't it?",
    "{S}, isn't that so?",
    "{S}, isn't that right?",
    "{S}, is that not so?",
    "{S}, didn't he?",
    "{S}, wasn't it?",
    "{S}, doesn't she?",
    "{S}, right?",
    "{S}, right or not?",
    "{S}, no?",
    "No doubt {s}?",
    "There is no doubt that {s}?",
    "Without a doubt, {s}?",
    "Could it be that {s}?",
    "Couldn't it be that {s}?",
    "Could it not be that {s}?",
    "Don't you agree that {s}?",
    "Wouldn't you say that {s}?",
    "Would you not agree that {s}?",
    "Can't we say that {s}?",
    "If I'm not mistaken, {s}?",
    "Am I not right that {s}?",
    "Whether or not {s}?",
    "Is the answer yes or no: {s}?",
    "I'm not sure, but {s}?",
    "I don't know whether {s}?",
    "{S}. Yes or no?",
    "{S}. Right or wrong?",
    "{S} - correct or not?",
    "{S}, or am I wrong?",
    "{S}, or isn't it so?",
    "Isn't it possible that {s}?",
    "Is it not because {s}?",
    "Isn't it because {s}?",
    "Isn't the truth that {s}?",
    "Do you not think that {s}?",
    "It is undeniable that {s}?",
    "Nobody doubts that {s}?",
    "Is it (or is it not) true that {s}?",
    "So {s}, don't they?",
    "Hmm, no. Is it that {s}?",
    "Does the truth say that {s}, or not?",
    "So it's true that {s}, isn't it?",
    "Not to be too direct, but {s}?",
    "Is it fair to say {s}, or is it not?",
    "It wouldn't be wrong to say that {s}?",
)
"""`{S}` and `{s}` are a statement, with a capital letter or without."""
CHINESE = (
    "{s}吗？",
    "是不是{s}？",
    "{s}，是不是？",
    "是否{s}？",
    "{s}，是否如此？",
    "{s}，对不对？",
    "{s}对不对？",
    "会不会{s}？",
    "会不会是{s}？",
    "有没有可能{s}？",
    "能不能说{s}？",
    "可不可以说{s}？",
    "难道不是{s}吗？",
    "难道不就是{s}吗？",
    "{s}，不是吗？",
    "{s}不是吗？",
    "{s}，难道不是吗？",
    "{s}，对吗？",
    "{s}，没错吧？",
    "{s}，不对吗？",
    "{s}，是不是这样？",
    "{s}，是还是不是？",
    "{s}，是或不是？",
    "请回答是或不是：{s}？",
    "请回答是、不是或无关：{s}？",
    "我想知道是不是{s}？",
    "我不知道是不是{s}？",
    "不知道是不是因为{s}？",
    "毫无疑问，{s}？",
    "如果我没猜错的话，{s}？",
    "{s}，我没说错吧？",
    "{s}，我猜得对不对？",
    "莫非{s}？",
    "难道说不是{s}吗？",
    "是{s}不是？",
    "{s}，有没有这回事？",
    "{s}，有没有道理？",
    "能否认为{s}？",
    "可否认为{s}？",
    "该不会是{s}吧？",
    "不会是{s}吧？",
    "{s}，不是这样吗？",
    "这是不是说明{s}？",
    "是不是可以认为{s}？",
    "说{s}，对还是不对？",
    "{s}，是也不是？",
    "{s}，行不行得通？",
    "{s}，是这样吗，还是不是？",
    "有没有{s}这种情况？",
    "{s}，不是么？",
    "岂不是{s}？",
    "没准{s}？",
    "不会{s}吧？",
    "难不成{s}？",
    "不就是{s}吗？",
    "{s}，我说的没错吧？",
    "{s}，对吧，没错吧？",
    "{s}，真的假的？",
    "到底是不是{s}？",
    "究竟有没有{s}这件事？",
)
"""`{s}` is a statement."""
QUESTIONS = yaml.safe_load(Path(__file__).with_name("questions.yaml").read_text(encoding="utf-8"))
"""More forms, and whole questions, of each language."""
FORMS: dict[Language, tuple[str, ...]] = {
    "en": (*ENGLISH, *QUESTIONS["en"]["asking"]),
    "zh": (*CHINESE, *QUESTIONS["zh"]["asking"]),
}
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
