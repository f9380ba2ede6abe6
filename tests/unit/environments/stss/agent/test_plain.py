"""Simple prompts, for models that fail at JSON: plans and talks in words, as the published code asks weak models."""

from collections.abc import Sequence
from typing import Literal

import pytest

from environments.stss.agent.forms import READERS, said
from environments.stss.agent.script import invitation
from environments.stss.environment import Stss
from environments.stss.reply import Encounter, FirstPlan, PerformerReply, Reminder, Review, Utterance
from proctor.conformance.check import check
from proctor.environment import Agent
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Action, Finish, FinishReason, Observation

FULL, SIMPLE = Stss(), Stss(prompts="simple")
SAMPLE = "fernmouth_birthday"


class Weak(Agent):
    """Never writes JSON: it talks to everybody with one sentence; keeps the requests."""

    def __init__(self, words: str) -> None:
        self._words = words
        self.asked: list[str] = []

    async def act(self, observation: Observation) -> Action:
        self.asked.append(observation.messages[-1].content)
        return Action(content=self._words)


async def played(environment: Stss, agent: Agent, sample: str = SAMPLE) -> Finish:
    return await play_to_finish(environment, sample, agent)


@pytest.mark.thorough
@pytest.mark.parametrize("level", ["action", "language"])
async def test_the_reference_reaches_the_same_in_words(level: Literal["action", "language"]) -> None:
    full, simple = Stss(level=level), Stss(level=level, prompts="simple")
    for sample in full.samples():
        one = await played(full, PolicyAgent(full.reference(sample)), sample)
        other = await played(simple, PolicyAgent(simple.reference(sample)), sample)
        assert (other.reason, other.score) == (one.reason, one.score), sample
        assert other.metrics["format_errors"] == other.metrics["action_errors"] == 0


async def test_a_model_without_json_talks_in_simple_prompts_alone() -> None:
    words = invitation(SIMPLE.script(SAMPLE).legs)
    full = await played(Stss(level="language"), Weak(words))
    simple = await played(Stss(level="language", prompts="simple"), Weak(words))
    assert (full.reason, full.score) == (FinishReason.INVALID_FORMAT, 0.0)
    assert (simple.reason, simple.metrics["format_errors"]) == (FinishReason.COMPLETED, 0)
    assert simple.metrics["sr_conversation"] > 0.8


async def test_only_days_and_notes_ask_for_json() -> None:
    agent = Weak(invitation(SIMPLE.script(SAMPLE).legs))
    await played(SIMPLE, agent)
    asked: dict[str, set[bool]] = {}
    for request in agent.asked:
        code = request.rpartition("Request ")[2].partition(".")[0]
        if "can't be used" not in request:
            asked.setdefault(code, set()).add('{"' in request or "JSON" in request)
    assert asked == {code: {code in ("D", "N")} for code in ("T1", "T2", "D", "E", "U", "N", "R") if code in asked}
    assert {"T1", "T2", "D"} <= set(asked)


@pytest.mark.parametrize(
    ("kind", "reply", "form"),
    [
        (
            FirstPlan,
            "Sure, here is my plan:\n1. Go out.\n2) Ask.\n\n- Be there.",
            {"plan": ("Go out.", "Ask.", "Be there.")},
        ),
        (FirstPlan, "Just ask.", {"plan": ("Just ask.",)}),
        (FirstPlan, "a\nb\nc\nd\ne\nf", {"plan": ("a", "b", "c", "d", "e")}),
        (Reminder, "Be out.\n* what\n* when", {"schedule_reminder": "Be out.", "checklist": ("what", "when")}),
        (Reminder, "", {"schedule_reminder": "", "checklist": ()}),
        (Encounter, "No.", {"talk": False, "utterance": "No."}),
        (Encounter, "\n", {"talk": False, "utterance": ""}),
        (Encounter, "No party without you!", {"talk": True, "utterance": "No party without you!"}),
        (Utterance, '"See you at 7."', {"utterance": "See you at 7.", "end": False}),
        (Utterance, '{"utterance": "x"}', {"utterance": '{"utterance": "x"}', "end": False}),
        (Review, "Nothing.", {"notes": ()}),
        (Review, "- Leo comes.", {"notes": ("Leo comes.",)}),
    ],
)
def test_words_are_read(kind: type[PerformerReply], reply: str, form: dict[str, object]) -> None:
    read = READERS[kind](reply)
    assert isinstance(read, kind)
    assert read.model_dump() == form


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ('Here is what Ann should say next in the conversation:\n\n"Come at 7!"\n\nThis works because', "Come at 7!"),
        ("Hello Leo!\n\nCome at 7!", "Hello Leo! Come at 7!"),
        ("I say:", "I say:"),
    ],
)
def test_what_announces_an_utterance_is_no_part_of_it_as_published(reply: str, words: str) -> None:
    assert " ".join(said(reply).split()) == words


async def test_an_empty_plan_is_asked_for_again_in_words() -> None:
    agent = Weak("")
    finish = await played(Stss(level="language", prompts="simple"), agent)
    assert "in the form asked for" in agent.asked[1]
    assert "JSON" not in agent.asked[1]
    assert finish.metrics["format_errors"] == 2


@pytest.mark.thorough
async def test_simple_prompts_keep_every_promise() -> None:
    assert [result.name async for result in check(SIMPLE) if not result.ok] == []


def test_only_simple_prompts_change_the_digest_and_tools_have_none() -> None:
    digests: Sequence[str] = [FULL.digest(), SIMPLE.digest(), Stss(prompts="simple", level="language").digest()]
    assert len(set(digests)) == 3
    with pytest.raises(ValueError, match="prompts: protocol tools asks for calls"):
        Stss(prompts="simple", protocol="tools")
