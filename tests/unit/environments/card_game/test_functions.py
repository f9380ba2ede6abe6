"""Protocol `tools`: the functions of both conversations, and how a session answers calls."""

import json

import pytest

from environments.card_game import prompt
from environments.card_game.environment import CardGame
from environments.card_game.functions import BOTH, toolset
from environments.card_game.rules.moves import Assert, Attack, Skill
from environments.card_game.sample_game import SampleGame, Setup
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.tools import NO_PUBLISHED_FUNCTIONS, Protocol
from proctor.types import Action, Finish, FinishReason
from tests.tool_calls import CallingAgent, call, calls, in_turn

SAMPLE = "greedy-seat0-0"
GUESS = call("guess", guess_type="eel", target_position=2)
SWEEP = call("act", pick_fish="spray", action="active", target_position=0)
FISH = ["spray", "flame", "eel", "sunfish"]


class Caller(CallingAgent):
    """Gives the replies of each conversation in turn, the last one for ever."""

    def __init__(self, guess: list[Action], act: list[Action]) -> None:
        policies = {"guess": in_turn(*guess), "act": in_turn(*act)}
        super().__init__(lambda conversation, history: policies[conversation](conversation, history))

    def asked(self, conversation: str) -> list[str]:
        """The last message of each observation of a conversation."""
        return [each.messages[-1].content for each in self.seen if each.conversation == conversation]


async def play(agent: Caller, **fields: object) -> Finish:
    environment = CardGame.model_validate({"protocol": "tools", **fields})
    return await play_to_finish(environment, SAMPLE, agent)


def test_each_conversation_offers_its_function_with_the_names_of_the_game() -> None:
    (guess,), (act,) = toolset("guess", False).tools(), toolset("act", False).tools()
    assert (guess.name, guess.parameters["required"]) == ("guess", ["guess_type", "target_position"])
    assert (act.name, act.parameters["required"]) == ("act", ["pick_fish", "action", "target_position"])
    properties = act.parameters["properties"]
    assert isinstance(properties, dict)
    assert [schema["enum"] for schema in properties.values() if isinstance(schema, dict)] == [
        FISH,
        ["normal", "active"],
        [0, 1, 2, 3],
    ]
    assert toolset("act", True).tools()[0].parameters["required"] == ["pick_fish", "action"]


@pytest.mark.parametrize(
    ("action", "asserting", "move"),
    [
        (GUESS, True, Assert(2, 3)),
        (call("act", pick_fish="eel", action="normal", target_position=1), False, Attack(2, 1)),
        (call("act", pick_fish="flame", action="active", target_position=0), False, Skill(1, mates=(0,))),
        (SWEEP, False, Skill(0, enemies=(0, 1, 2, 3))),
    ],
)
def test_a_call_is_the_move_that_its_json_is_in_text(action: Action, asserting: bool, move: object) -> None:
    (asked,) = action.tool_calls
    function = BOTH.find(asked.name, strict=True)
    assert function is not None
    text = function.read(function.checked(asked.arguments, strict=True))
    match = SampleGame(Setup("random", 0, 0), 0)
    match.game.asserting = asserting
    assert match.read(text) == move
    assert [each.name for each in BOTH.functions if each.write(text) is not None] == [asked.name]


async def test_prompts_are_the_results_of_calls_and_nothing_is_sent_again() -> None:
    agent = Caller([GUESS], [SWEEP, SWEEP, Action(content="Enough.")])
    finish = await play(agent)
    assert finish.reason is FinishReason.INVALID_FORMAT
    assert not any(observation.fresh for observation in agent.seen)
    for name in ("guess", "act"):
        first, *later = [observation for observation in agent.seen if observation.conversation == name]
        assert [message.role for message in first.messages] == ["system", "user"]
        assert [tool.name for tool in first.tools] == [name]
        assert f"call the function `{name}`" in first.messages[0].content
        assert "JSON" not in first.messages[0].content
        assert all(len(observation.messages) == 1 and observation.tools == first.tools for observation in later)
    acts = [observation.messages[0].role for observation in agent.seen if observation.conversation == "act"]
    assert acts[1:] == ["tool", "tool", "user", "user", "user", "user"]
    states = [json.loads(told.split("\n")[0]) for told in agent.asked("act")]
    assert [state["Your previous action"] == "none" for state in states[:3]] == [True, False, False]


@pytest.mark.parametrize("profile", ["compat", "strict", "paper"])
async def test_a_rejected_call_is_told_why_with_the_state(profile: str) -> None:
    unknown = call("act", pick_fish="octopus", action="normal", target_position=0)
    itself = call("act", pick_fish="flame", action="active", target_position=1)
    agent = Caller([GUESS], [unknown, itself, calls(("hit", "{}")), Action(content="-"), calls(("act", "{"))])
    finish = await play(agent, profile=profile)
    state, *told = agent.asked("act")
    whys = [
        "The arguments of act can't be read: pick_fish must be one of spray, flame, eel, sunfish",
        "flame can't use its skill on itself",
        "Invalid function call: there is no function 'hit'",
        "Your reply calls no function. Call one of: act",
    ]
    for why, given in zip(whys, told, strict=True):
        assert given.startswith(f"{state}\nYour last reply was not accepted: {why}")
        assert given.endswith(". Reply again.")
        assert ".." not in given
    assert finish.reason is FinishReason.INVALID_ACTION, "some call was JSON"
    assert finish.metrics["bad_replies"] == 2
    counted = {kind: finish.metrics[kind] for kind in ("no_call", "bad_arguments", "unknown_function")}
    assert counted == {"no_call": 1, "bad_arguments": 2, "unknown_function": 1}
    assert finish.metrics["calls"] == 6, "replies: one guess and five acts"


async def test_five_failed_guesses_are_a_pass_and_the_next_prompt_answers_the_last_call() -> None:
    wrong = call("guess", guess_type="whale", target_position=0)
    agent = Caller([wrong], [SWEEP, Action(content="-")])
    finish = await play(agent)
    assert [observation.conversation for observation in agent.seen[:7]] == [*["guess"] * 5, "act", "guess"]
    assert json.loads(agent.asked("guess")[5])["Your previous guess"] == "none"
    assert finish.metrics["guesses"] == 0


async def test_an_aoe_needs_no_target_in_strict_alone() -> None:
    targetless = call("act", pick_fish="spray", action="active")
    for profile, damage in (("strict", True), ("compat", False)):
        finish = await play(Caller([GUESS], [targetless]), profile=profile)
        assert (finish.metrics["damage"] > 200) == damage, "200 are for the guess"


@pytest.mark.parametrize(
    ("guess", "act", "limit", "reason"),
    [
        (Action(content="-"), Action(content="-"), 7, FinishReason.INVALID_FORMAT),
        (Action(content="-"), Action(content="-"), 5, FinishReason.INVALID_FORMAT),
        (GUESS, Action(content="-"), 3, FinishReason.TURN_LIMIT),
        (calls(("x", "{}")), calls(("x", "{}")), 3, FinishReason.INVALID_ACTION),
        (GUESS, SWEEP, 4, FinishReason.TURN_LIMIT),
    ],
)
async def test_a_strict_game_at_its_limit_of_calls(
    guess: Action, act: Action, limit: int, reason: FinishReason
) -> None:
    finish = await play(Caller([guess], [act]), profile="strict", max_agent_calls=limit)
    assert (finish.reason, finish.metrics["calls"]) == (reason, limit)
    compat = await play(Caller([guess], [act]), max_agent_calls=limit)
    assert compat.reason is FinishReason.TURN_LIMIT


@pytest.mark.parametrize("kind", ["naive", "random"])
async def test_the_policies_play_on_their_own(kind: str) -> None:
    environment = CardGame(protocol="tools")
    finish = await play_to_finish(environment, SAMPLE, PolicyAgent(getattr(environment, kind)(SAMPLE, 1)), 1)
    assert finish.reason is FinishReason.COMPLETED
    assert finish.metrics["no_call"] == finish.metrics["bad_arguments"] == finish.metrics["unknown_function"] == 0


def test_scores_are_not_comparable_and_the_notes_name_the_functions() -> None:
    for fields in ({}, {"profile": "paper"}, {"legacy_agent_bugs": True}):
        environment = CardGame.model_validate({"protocol": "tools", **fields})
        assert environment.not_comparable_because() == NO_PUBLISHED_FUNCTIONS
        notes = environment.summarize([]).notes
        assert any("the functions are in our own words" in note for note in notes)
        assert not any("reply forms" in note for note in notes)


def test_the_protocol_is_part_of_the_digest_and_text_is_as_before() -> None:
    """The digests are those from before there was a protocol."""
    assert CardGame(protocol="text").digest() == "2e4e56701e653fc1217b5bddc0918706"
    assert CardGame(profile="strict").digest() == "f74430482969221c05f520d8cea9d8e5"
    assert CardGame(profile="paper").digest() == "1d75275e079aefb646fdddebf4df1246"
    assert CardGame(explain_rules=True).digest() == "89daa73f721aab836fd22e446897e049"
    assert CardGame(protocol="tools").digest() != CardGame().digest()


def test_the_rules_of_both_protocols_differ_in_the_reply_form_alone() -> None:
    setup = Setup("greedy", 0, 0, profile="strict")
    protocols: tuple[Protocol, Protocol] = ("text", "tools")
    for name in ("guess", "act"):
        text, tools = (prompt.rules(name, setup, True, protocol).split("\n") for protocol in protocols)
        (called,) = [line for line in tools if line not in text]
        assert called.endswith(f"then call the function `{name}` exactly once.")
        assert [line for line in text if line not in tools][1].startswith('{"')
