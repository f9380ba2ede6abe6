"""The two hosts: what the lexical one says, what two texts have in common, how a model's answers are read and kept."""

import asyncio
import math
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.lateral_thinking.dataset import Language, Puzzle
from environments.lateral_thinking.host import Answer, Profile, eligible
from environments.lateral_thinking.hosts.judge import PuzzleJudge
from environments.lateral_thinking.hosts.lexical import LexicalHost
from environments.lateral_thinking.hosts.model import read_answer
from environments.lateral_thinking.hosts.model_prompt import answer_prompt, contains_prompt, merge_prompt
from environments.lateral_thinking.text import character_bleu, share, stem, words
from proctor.llm.cached_model import Replies
from proctor.llm.config import ChatConfig
from tests.support import via

PUZZLE = Puzzle(
    id="p",
    language="en",
    story="He {truth} jumped.",
    truth="The doctor had cured his eyes. In the tunnel he believed that he was blind again. He had no torch.",
    story_keys=("He jumped.",),
    keys=("The doctor cured his eyes.", "He did not carry a torch.", "He believed that he was blind again."),
    key_lines=3,
)


@pytest.mark.parametrize(
    ("question", "answer", "hits"),
    [
        ("Had a doctor cured his eyes?", "yes", (0,)),
        ("Had no doctor cured his eyes?", "no", ()),
        ("Did he carry a torch?", "no", ()),
        ("Did he not carry any torch?", "yes", (1,)),
        ("Did he believe he was blind, and did the doctor cure the eyes?", "yes", (0, 2)),
        ("Was there a tunnel?", "yes", ()),
        ("Was there no tunnel?", "no", ()),
        ("Did the elephant meet a doctor in Paris or Rome?", "no", ()),
        ("Was it about money, love or politics in Rome?", "irrelevant", ()),
        ("", "irrelevant", ()),
    ],
)
async def test_the_lexical_host_answers_by_shared_words(question: str, answer: Answer, hits: tuple[int, ...]) -> None:
    ruling = await LexicalHost().game(PUZZLE, "strict").rule(question, (0, 1, 2))
    assert (ruling.answer, ruling.hits) == (answer, hits)


@pytest.mark.parametrize(("question", "eligible_keys"), [("He had a torch?", []), ("He had no torch?", [0])])
def test_in_compat_a_key_longer_than_the_question_without_its_marks_is_not_hit(
    question: str, eligible_keys: list[int]
) -> None:
    puzzle = PUZZLE.model_copy(update={"keys": ("He had no torch",)})
    assert eligible(puzzle, question, [0], "compat") == eligible_keys
    assert eligible(puzzle, question, [0], "strict") == [0]


async def test_a_question_for_a_reason_is_irrelevant_to_the_lexical_host() -> None:
    ruling = await LexicalHost().game(PUZZLE, "compat").rule("Why had the doctor cured his eyes?", (0, 1, 2))
    assert (ruling.answer, ruling.hits) == ("irrelevant", ())


async def test_a_key_that_was_found_is_not_found_again_but_still_true() -> None:
    ruling = await LexicalHost().game(PUZZLE, "strict").rule("Had a doctor cured his eyes?", (1, 2))
    assert (ruling.answer, ruling.hits) == ("yes", ())


@pytest.mark.parametrize(
    ("text", "language", "compat", "strict"),
    [
        ("Yes", "en", "yes", "yes"),
        ("no.", "en", "no", "no"),
        ("YES!", "en", None, "yes"),
        ("“No”, he did not", "en", None, "no"),
        ("Not at all", "en", "no", None),
        ("Irrelevant.", "en", "irrelevant", "irrelevant"),
        ("Perhaps", "en", None, None),
        ("是的", "zh", "yes", "yes"),
        ("不是。", "zh", "no", "no"),
        ("否", "zh", "no", "no"),
        ("「是」", "zh", None, "yes"),
        ("是否如此？", "zh", "yes", None),
        ("无关", "zh", "irrelevant", "irrelevant"),
        ("Yes", "zh", None, None),
    ],
)
def test_an_answer_is_what_a_reply_begins_with(
    text: str, language: Language, compat: Answer | None, strict: Answer | None
) -> None:
    expected: list[tuple[Profile, Answer | None]] = [("compat", compat), ("strict", strict)]
    assert [read_answer(text, language, profile) for profile, _ in expected] == [answer for _, answer in expected]


@pytest.mark.parametrize("profile", ["compat", "strict"])
def test_the_answer_prompt_is_ten_messages_all_facts_in_one_and_the_question(profile: Profile) -> None:
    prompt = answer_prompt(PUZZLE, ["He could see.", "It was {dark}."], "Was {keys} there?", profile)
    assert [message.role for message in prompt] == ["user", "assistant"] * 6 + ["user"]
    assert "He {truth} jumped." in prompt[0].content
    assert PUZZLE.truth in prompt[0].content
    assert prompt[3].content == "1. He jumped."
    assert "3. He believed" in prompt[5].content
    assert prompt[7].content in prompt[0].content
    assert ("never an instruction" in prompt[7].content) == (profile == "strict")
    assert prompt[10].content.startswith("He could see. It was {dark}.\nReply with")
    assert prompt[11].content == "Yes."
    assert prompt[12].content.startswith("Was {keys} there?\nReply with")
    assert len(answer_prompt(PUZZLE, [], "Was it?", profile)) == 11


def test_the_hit_test_asks_for_all_of_a_key_point_with_its_details() -> None:
    (message,) = contains_prompt("en", "He saw.", "He could see.")
    assert "key details" in message.content
    assert message.content.endswith("Sentence 1: He could see.\nSentence 2: He saw.")


def test_prompts_are_in_the_language_of_the_puzzle() -> None:
    assert "第一句话：{sentence}\n第二句话：句" in contains_prompt("zh", "句", "{sentence}")[0].content
    assert merge_prompt("en", ["a.", "b."])[0].content.endswith("\na. b.")


async def test_sessions_that_ask_the_same_at_once_buy_it_once(tmp_path: Path) -> None:
    bought: list[bytes] = []

    def handle(request: httpx.Request) -> httpx.Response:
        bought.append(request.content)
        return httpx.Response(200, json={"choices": [{"message": {"content": f"reply {len(bought)}"}}]})

    cache = Replies(tmp_path)
    cache.open()
    async with httpx.AsyncClient(transport=httpx.MockTransport(handle)) as client:
        judge = PuzzleJudge(ChatConfig(base_url="http://host/v1", model="judge"), via(client), cache)
        one, other = merge_prompt("en", ["a", "b"]), merge_prompt("en", ["a", "c"])
        replies = await asyncio.gather(*(judge.ask(prompt, "strict") for prompt in (one, one, other)))
    assert (replies[0] == replies[1] != replies[2], len(bought)) == (True, 2)


def test_forms_of_one_word_are_one() -> None:
    for forms in ("stops stopped stopping stop", "cause caused causing causes", "carry carries carried"):
        assert len({stem(word) for word in forms.split()}) == 1
    assert {stem(word) for word in ("glass", "is", "fell", "see")} == {"glass", "is", "fell", "see"}


def test_english_words_are_stems_without_stop_words() -> None:
    assert words("He was the woman's HUSBAND, and didn’t know.", "en") == {"woman", "husband", "know"}


def test_a_text_of_stop_words_is_compared_by_them_and_one_without_words_by_itself() -> None:
    assert words("Is it?", "en") == {"is", "it"}
    assert words(" ?! ", "en") == {"?!"}
    assert words("", "en") == frozenset()


def test_chinese_is_compared_by_pairs_of_neighbours_and_whole_foreign_words() -> None:
    assert words("他是熊，有DNA。", "zh") == {"他是", "是熊", "有", "dna"}


def test_share_is_of_the_first_set() -> None:
    assert share({"a", "b"}, {"b", "c", "d"}) == 0.5
    assert share(set(), {"a"}) == 0.0


@pytest.mark.parametrize(
    ("text", "reference", "likeness"),
    [
        ("aab", "ab", 2 / 3),
        ("ab", "ab", 1.0),
        ("ab", "abcd", math.exp(1 - 4 / 2)),
        ("xb", "abcd", math.exp(1 - 4 / 2) / 2),
        ("abcdefgh", "abcd", 1 / 2),
        ("xyz", "ab", 0.0),
        ("", "ab", 0.0),
    ],
)
def test_bleu_counts_characters_as_often_as_the_reference_has_them_and_punishes_brevity(
    text: str, reference: str, likeness: float
) -> None:
    assert character_bleu(text, reference) == pytest.approx(likeness)


@given(st.text(), st.sampled_from(["en", "zh"]))
def test_a_text_covers_itself_and_nothing_raises(text: str, language: Language) -> None:
    found = words(text, language)
    assert share(found, found) == (1.0 if text.strip() else 0.0)
    assert 0.0 <= character_bleu(text, text[::-1]) <= 1.0
