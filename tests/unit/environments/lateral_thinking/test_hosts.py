"""The two hosts: what the lexical one says and reads as a denial, how a model's answers are read and kept."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.lateral_thinking.dataset import Language, Puzzle
from environments.lateral_thinking.host import Profile
from environments.lateral_thinking.hosts.lexical import LexicalHost
from environments.lateral_thinking.hosts.model import PuzzleJudge
from environments.lateral_thinking.hosts.model_prompt import answer_prompt, merge_prompt
from environments.lateral_thinking.hosts.negation import agree
from environments.lateral_thinking.text import character_bleu, share, words
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


async def ruled(question: str, open: Sequence[int] = (0, 1, 2), profile: Profile = "strict") -> tuple[str, list[int]]:
    """What the lexical host answers, and the keys that it counts as found of the open ones; for tables."""
    ruling = await LexicalHost().game(PUZZLE, profile).rule(question, tuple(open))
    return ruling.answer, [*ruling.hits]


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


@given(st.text(), st.sampled_from(["en", "zh"]))
def test_a_text_covers_itself_and_nothing_raises(text: str, language: Language) -> None:
    found = words(text, language)
    assert share(found, found) == (1.0 if text.strip() else 0.0)
    assert 0.0 <= character_bleu(text, text[::-1]) <= 1.0


@given(st.text(), st.sampled_from(["en", "zh"]))
def test_any_text_is_read(text: str, language: Language) -> None:
    assert agree(text, text, language)


@pytest.mark.parametrize(
    "text", ["no " * 700, ", isn't" * 300, "不是" * 1000, "或" * 2000, " " * 2000, "or " * 700, "，" * 2000]
)
def test_the_longest_question_is_read_at_once(text: str) -> None:
    assert agree(text, text, "en")
    assert agree(text, text, "zh")
