"""Protocol `tools`: the functions of both conversations, and how a session answers calls."""

import pytest

from environments.card_game import prompt
from environments.card_game.environment import CardGame
from environments.card_game.functions import BOTH, toolset
from environments.card_game.rules.moves import Assert, Attack, Skill
from environments.card_game.sample_game import SampleGame, Setup
from proctor.session.play import play_to_finish
from proctor.tools import Protocol
from proctor.types import Action, Finish
from tests.tool_calls import CallingAgent, call, in_turn

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


async def test_an_aoe_needs_no_target_in_strict_alone() -> None:
    targetless = call("act", pick_fish="spray", action="active")
    for profile, damage in (("strict", True), ("compat", False)):
        finish = await play(Caller([GUESS], [targetless]), profile=profile)
        assert (finish.metrics["damage"] > 200) == damage, "200 are for the guess"


def test_the_rules_of_both_protocols_differ_in_the_reply_form_alone() -> None:
    setup = Setup("greedy", 0, 0, profile="strict")
    protocols: tuple[Protocol, Protocol] = ("text", "tools")
    for name in ("guess", "act"):
        text, tools = (prompt.rules(name, setup, True, protocol).split("\n") for protocol in protocols)
        (called,) = [line for line in tools if line not in text]
        assert called.endswith(f"then call the function `{name}` exactly once.")
        assert [line for line in text if line not in tools][1].startswith('{"')
