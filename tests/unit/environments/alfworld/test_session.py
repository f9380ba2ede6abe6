"""A session: what is said when, and how it ends."""

from collections.abc import Sequence

import pytest

from environments.alfworld import prompt
from environments.alfworld.dataset import own_games
from environments.alfworld.engine.grammar import Format
from environments.alfworld.environment import ALFWorld
from environments.alfworld.examples import LEAST_PLAN, LONGEST_PLAN, example, in_format
from environments.alfworld.prompt import MAX_KEPT
from environments.alfworld.reply import Profile
from environments.alfworld.task_types import TASK_TYPES, TaskType
from proctor.environment import Agent, AgentStopped, AgentUnavailable, ContextLimitExceeded, Policy
from proctor.session.play import play_to_finish
from proctor.types import Action, Finish, FinishReason, Message, Observation


class Scripted(Agent):
    """Gives its replies one after the other, the last one for ever; keeps what it was shown."""

    def __init__(self, replies: Sequence[str | Exception]) -> None:
        self._replies = list(replies)
        self.seen: list[Observation] = []

    async def act(self, observation: Observation) -> Action:
        self.seen.append(observation)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, Exception):
            raise reply
        return Action(content=reply)


async def play(
    *replies: str | Exception, sample: str = "own-00000", profile: Profile = "compat"
) -> tuple[Finish, list[Observation]]:
    agent = Scripted(replies)
    finish = await play_to_finish(ALFWorld(profile=profile), sample, agent)
    return finish, agent.seen


PLAN = own_games()[0].plan


def doing(*commands: str) -> list[str]:
    return [f"ACTION: {command}" for command in commands]


async def test_the_first_observation_is_instruction_consent_example_and_task() -> None:
    _, seen = await play("")
    messages = seen[0].messages
    assert [messages[0].content, messages[1].content] == [prompt.INSTRUCTION, prompt.CONSENT]
    assert messages[2:-1] == example("pick_and_place", "put")
    assert [each.role for each in messages] == ["user", "assistant"] * (len(messages) // 2) + ["user"]
    head, _, actions = messages[-1].content.partition(" AVAILABLE ACTIONS: ")
    assert head.startswith("Here is your task. You are in the middle of a room.")
    assert head.split("\n")[1].startswith("Your task is to: ")
    assert actions.endswith("\n")
    assert actions.split("\n")[:-1] == sorted(actions.split("\n")[:-1])


async def test_only_the_newest_message_has_a_list_and_the_rest_of_the_history_stays() -> None:
    _, seen = await play(*doing(*PLAN))
    for turn, observation in enumerate(seen):
        users = [message.content for message in observation.messages if message.role == "user"]
        assert observation.fresh
        assert [prompt.MARK in content for content in users[1:]] == [False] * (len(users) - 2) + [True]
        assert users[0] == prompt.INSTRUCTION
        if turn:
            before = seen[turn - 1].messages
            assert observation.messages[: len(before) - 1] == before[:-1]
            assert observation.messages[len(before) - 1].content == before[-1].content.partition(prompt.MARK)[0]
            assert observation.messages[-2] == Message(role="assistant", content=f"ACTION: {PLAN[turn - 1]}")


async def test_the_number_of_the_location_is_left_out_in_the_old_format_alone() -> None:
    old, new = own_games()[0], own_games()[6]
    assert [old.format, new.format] == ["put", "move"]
    for number, game in ((0, old), (6, new)):
        _, seen = await play(*doing(game.plan[0]), "", sample=f"own-{number:05}")
        said = seen[1].messages[-1].content
        assert said.startswith("You arrive at ") == (game.format == "move")
        assert "loc " not in said
    assert prompt.observed("You arrive at loc 7. On the desk 1, you see a mug 1.") == "On the desk 1, you see a mug 1."


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


def test_commands_are_told_in_either_format() -> None:
    assert in_format("put mug 1 in/on desk 2", "move") == "move mug 1 to desk 2"
    assert in_format("move mug 1 to desk 2", "put") == "put mug 1 in/on desk 2"
    assert in_format("take mug 1 from desk 2", "move") == "take mug 1 from desk 2"


async def test_a_won_game_scores_one_and_tells_every_step() -> None:
    finish, seen = await play(*doing(*PLAN))
    assert (finish.reason, finish.score, len(seen)) == (FinishReason.COMPLETED, 1.0, len(PLAN))
    assert finish.metrics == {"steps": len(PLAN), "matched": 0, "refused": 0, "below_1": 0}
    assert finish.detail["steps"] == [{"action": each, "executed": each, "similarity": 1.0} for each in PLAN]
    assert finish.detail["game"] == own_games()[0].path
    kept = ("task_type", "format", "profile", "upstream_status")
    assert [finish.detail[key] for key in kept] == ["pick_and_place", "put", "compat", "completed"]


@pytest.mark.parametrize(
    ("replies", "profile", "reason", "upstream", "turns"),
    [
        ([""], "compat", FinishReason.INVALID_FORMAT, "agent invalid action", 1),
        (["look"], "strict", FinishReason.INVALID_FORMAT, "agent invalid action", 1),
        (["Action: look", ""], "compat", FinishReason.INVALID_FORMAT, "agent invalid action", 1),
        (["Action: look", ""], "strict", FinishReason.INVALID_FORMAT, "agent invalid action", 2),
        (["ACTION: \nlook"], "compat", FinishReason.INVALID_ACTION, "agent invalid action", 1),
        ([ContextLimitExceeded()], "compat", FinishReason.CONTEXT_LIMIT, "agent context limit", 1),
        ([AgentStopped(FinishReason.TURN_LIMIT)], "compat", FinishReason.TURN_LIMIT, "task limit reached", 1),
        (["ACTION: look"], "compat", FinishReason.INVALID_ACTION, "agent invalid action", 4),
        (["ACTION: look"], "strict", FinishReason.TURN_LIMIT, "task limit reached", 35),
        (["ACTION: xyzzy"], "strict", FinishReason.INVALID_ACTION, "agent invalid action", 4),
    ],
)
async def test_how_a_lost_session_ends(
    replies: list[str | Exception], profile: Profile, reason: FinishReason, upstream: str, turns: int
) -> None:
    finish, seen = await play(*replies, profile=profile)
    assert (finish.reason, finish.score, finish.detail["upstream_status"]) == (reason, 0.0, upstream)
    assert len(seen) == turns


async def test_two_equal_replies_do_not_end_a_session_and_three_do_from_the_fourth_step_on() -> None:
    finish, seen = await play(*doing("look", "inventory", "look", "look", "inventory", "look", "look"), "ACTION: look")
    assert (finish.reason, len(seen)) == (FinishReason.INVALID_ACTION, 8)


async def test_three_equal_replies_end_a_session_of_compat_even_where_the_third_wins() -> None:
    number, plan = next(
        (number, game.plan)
        for number, game in enumerate(own_games())
        if game.format == "put" and len(game.plan) == 5 and game.plan[3].startswith("open ")
    )
    target = plan[2].removeprefix("go to ")
    repeated = f"open put in/on {target}"
    finish, _ = await play(*doing(*plan[:2], repeated), sample=f"own-{number:05}")
    steps = finish.detail["steps"]
    assert isinstance(steps, list)
    assert [step["executed"] for step in steps if isinstance(step, dict)] == list(plan)
    assert (finish.reason, finish.score) == (FinishReason.INVALID_ACTION, 0.0)
    finish, _ = await play(*doing(*plan), sample=f"own-{number:05}")
    assert (finish.reason, finish.score) == (FinishReason.COMPLETED, 1.0)


async def test_a_failing_agent_is_a_fault() -> None:
    finish, _ = await play(*doing(PLAN[0]), AgentUnavailable("down"))
    assert (finish.reason, finish.score) == (FinishReason.AGENT_ERROR, None)


async def test_matched_and_refused_actions_are_counted() -> None:
    finish, _ = await play(*doing("look", "go to the moon", "xyzzy"), "")
    assert finish.metrics == {"steps": 3, "matched": 1, "refused": 1, "below_1": 2}


async def test_odd_replies_end_with_a_score_and_details_that_any_store_takes() -> None:
    replies = ["ACTION: " + "go " * 400_000, "ACTION: a\0b", "ACTION: 去\ud800", "ACTION: \N{PILE OF POO}", ""]
    finish, _ = await play(*replies)
    assert (finish.reason, finish.metrics["steps"]) == (FinishReason.INVALID_FORMAT, 4)
    assert b"\\u0000" not in finish.model_dump_json().encode()


async def test_policies_have_no_memory() -> None:
    """Asked anew for each turn with the transcript alone, they give the same session."""

    class Forgetful(Agent):
        def __init__(self, name: str) -> None:
            self._name = name
            self.said: list[str] = []

        async def act(self, observation: Observation) -> Action:
            policy: Policy = getattr(ALFWorld(), self._name)("own-00005", 3)
            action = policy("main", observation.messages)
            self.said.append(action.content)
            return action

    for name in ("reference", "naive", "random"):
        one, other = Forgetful(name), Forgetful(name)
        finishes = [await play_to_finish(ALFWorld(), "own-00005", agent, 3) for agent in (one, other)]
        assert finishes[0] == finishes[1]
        assert one.said == other.said


async def test_of_a_long_reply_the_history_keeps_the_end() -> None:
    """All of them in full would in the end make an observation that no answer of a server can carry: a fault."""
    long = "x" * MAX_KEPT + "\nACTION: look"
    finish, seen = await play(long, "")
    assert seen[1].messages[-2].content == long[-MAX_KEPT:]
    assert finish.metrics["steps"] == 1


async def test_an_action_that_differs_in_its_blanks_alone_is_matched() -> None:
    finish, _ = await play(*doing(PLAN[0].replace(" ", "  ")), "")
    assert finish.metrics == {"steps": 1, "matched": 1, "refused": 0, "below_1": 0}
