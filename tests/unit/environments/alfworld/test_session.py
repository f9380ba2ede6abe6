"""A session in both protocols: what is said when, how it ends, what it scores; and the rates of many sessions."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.alfworld import environment as household
from environments.alfworld import prompt
from environments.alfworld.engine.grammar import Format
from environments.alfworld.environment import ALFWorld
from environments.alfworld.examples import LEAST_PLAN, LONGEST_PLAN, example
from environments.alfworld.functions import toolset
from environments.alfworld.prompt import MAX_KEPT
from environments.alfworld.reply import MAX_ACTION, CommandCandidate, Profile, action_of, choose, nearest
from environments.alfworld.texts import TASK_TYPES, TaskType
from proctor.session.play import play_to_finish
from proctor.tools import Toolset
from proctor.types import Finish, FinishReason, Observation
from tests.scripted_agent import Scripted


async def play(
    *replies: str | Exception, sample: str = "own-00000", profile: Profile = "compat"
) -> tuple[Finish, list[Observation]]:
    agent = Scripted(*replies)
    finish = await play_to_finish(ALFWorld(profile=profile), sample, agent)
    return finish, agent.seen


@pytest.mark.parametrize("type_", TASK_TYPES)
@pytest.mark.parametrize("format", ["put", "move"])
def test_an_example_is_a_won_game_of_its_type_in_the_words_of_the_format(type_: TaskType, format: Format) -> None:
    messages = example(type_, format)
    said = "\n".join(message.content for message in messages)
    assert 2 * LEAST_PLAN + 2 <= len(messages) <= 2 * LONGEST_PLAN + 2
    assert [each.role for each in messages] == ["user", "assistant"] * (len(messages) // 2)
    assert messages[0].content.startswith("Here is one example.\nYou are in the middle of a room.")
    assert prompt.MARK not in said
    assert "Nothing happens" not in said
    assert ("ACTION: move " in said) == (format == "move" and type_ != "look_at_obj")
    assert ("ACTION: put " in said) == (format == "put" and type_ != "look_at_obj")
    assert "done" in messages[-1].content


async def test_of_a_long_reply_the_history_keeps_the_end() -> None:
    """All of them in full would in the end make an observation that no answer of a server can carry: a fault."""
    long = "x" * MAX_KEPT + "\nACTION: look"
    finish, seen = await play(long, "")
    assert seen[1].messages[-2].content == long[-MAX_KEPT:]
    assert finish.metrics["steps"] == 1


def test_faults_enter_no_rate_and_types_have_rates_of_their_own() -> None:
    detail = {"task_type": "look_at_obj", "format": "move"}
    passed = Finish(reason=FinishReason.COMPLETED, score=1.0, metrics={"steps": 4.0}, detail={**detail})
    failed = Finish(reason=FinishReason.INVALID_FORMAT, score=0.0, metrics={"steps": 9.0}, detail={**detail})
    fault = Finish.fault(FinishReason.TASK_ERROR, "broken")
    summary = ALFWorld().summarize([passed, failed, fault])
    assert summary.metrics[summary.primary] == 0.5
    assert summary.metrics["success_rate_look_at_obj"] == 0.5
    assert (summary.metrics["requested"], summary.metrics["scored"], summary.metrics["steps_of_passed"]) == (3, 2, 4)
    assert summary.metrics["invalid_format"] == 1
    assert any("move" in note for note in summary.notes)
    assert "steps_of_passed" not in ALFWorld().summarize([failed]).metrics, "none passed"
    nothing = ALFWorld().summarize([fault]).metrics
    assert not [name for name in nothing if name.startswith(("success_rate", "steps_of"))]
    assert (nothing["requested"], nothing["scored"], nothing["refused"]) == (1.0, 0.0, 0.0)


LIST = ["go to desk 1", "look", "open drawer 1"]


def test_a_long_action_is_cut() -> None:
    assert action_of("ACTION: " + "x" * 1_000_000, "compat") == "x" * MAX_ACTION


@given(st.text(), st.sampled_from(["compat", "strict"]))
def test_any_reply_is_read(reply: str, profile: Profile) -> None:
    action = action_of(f"ACTION: {reply}", profile)
    assert action is not None
    choose(action, LIST, profile)


def test_a_command_resembles_itself_fully_and_strangers_not_at_all() -> None:
    assert CommandCandidate("put mug 1 in/on desk 1").similarity("put mug 1 in/on desk 1") == pytest.approx(1.0)
    assert CommandCandidate("take soapbar").similarity("go to desk 1") == 0.0


def test_of_a_long_text_each_part_counts() -> None:
    long = "go to " * 2_000
    assert CommandCandidate(long).similarity("go to desk 1") == pytest.approx(2.2776460336e-4, abs=1e-12)
    assert nearest(long, ["look", "go to desk 1"]) is None


def test_the_digest_holds_instruction_and_function(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = ALFWorld(protocol="tools")
    digests = [environment.digest(), ALFWorld().digest(), ALFWorld(profile="strict", protocol="tools").digest()]
    monkeypatch.setattr(prompt, "CALLS_INSTRUCTION", "Play.")
    digests.append(environment.digest())
    monkeypatch.undo()
    described = replace(toolset("compat").functions[0], description="Acts.")
    monkeypatch.setattr(household, "toolset", lambda profile: Toolset((described,)))
    digests.append(environment.digest())
    assert len({*digests}) == 5
