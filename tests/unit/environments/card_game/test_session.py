"""Sessions in states that replies alone do not reach; what is told and scored else is golden/card_game.jsonl.

And replies that become moves by the grammar and in no other way; the bad inputs are tables/card_game.jsonl.
"""

import json

import pytest

from environments.card_game.conversation import opened
from environments.card_game.reply import IllegalReply, ReplyGrammar, blocks, read_action, read_guess
from environments.card_game.rules.fish import BARRACUDA, EEL, OCTOPUS, STANDARD_TEAM, WHITESHARK
from environments.card_game.rules.moves import Attack, Move
from environments.card_game.sample_game import SampleGame, Setup
from environments.card_game.session import CardGameSession
from proctor.types import Action, Finish, FinishReason
from tests.tool_calls import CallingAgent

GUESS = '{"guess_type": "eel", "target_position": 2}'
SWEEP = '{"pick_fish": "spray", "action": "active", "target_position": 0}'


async def played(match: SampleGame, *acts: str) -> tuple[Finish, CallingAgent]:
    """A game in which all guesses are the eel at 2, and these are the actions, the last one for ever."""
    left = list(acts)

    def reply(conversation: str, _history: object) -> Action:
        return Action(content=GUESS if conversation == "guess" else left.pop(0) if len(left) > 1 else left[0])

    agent = CallingAgent(reply)
    return await CardGameSession(match, agent, *opened(match.setup)).play(), agent


def kill(match: SampleGame, player: int, *positions: int) -> None:
    for position in positions:
        match.game.teams[player][position].hp, match.game.teams[player][position].dead = 0, True


async def test_an_infight_alone_is_refused() -> None:
    match = SampleGame(Setup("random", 0, 0), 0)
    kill(match, 0, 0, 2, 3)
    finish, _ = await played(match, '{"pick_fish": "flame", "action": "active", "target_position": 0}')
    assert finish.reason is FinishReason.INVALID_ACTION


@pytest.mark.parametrize("bugs", [True, False])
async def test_with_the_published_bugs_a_guess_is_asked_for_even_where_none_is_left(bugs: bool) -> None:
    match = SampleGame(Setup("random", 0, 0, legacy_agent_bugs=bugs), 0)
    for fish in match.game.teams[1]:
        fish.exposed = True
    finish, agent = await played(match, SWEEP, "-")
    asked = [each.conversation for each in agent.seen]
    assert asked == (["guess", "act", "guess", *["act"] * 5] if bugs else [*["guess"] * 5, *["act"] * 6])
    last = next(each for each in reversed(agent.seen) if each.conversation == "guess")
    assert json.loads(last.messages[-1].content)["Positions to guess"] == []
    assert finish.metrics["guesses"] == 0


async def test_with_the_published_bugs_a_guess_at_a_dead_fish_is_refused() -> None:
    match = SampleGame(Setup("random", 0, 0, legacy_agent_bugs=True), 0)
    kill(match, 1, 2)
    finish, agent = await played(match, "-")
    assert ([each.conversation for each in agent.seen].count("guess"), finish.metrics["guesses"]) == (5, 0)


TEAM = (BARRACUDA, WHITESHARK, OCTOPUS, EEL)
Made = tuple[object, ...]
"""A move as tables have it: its kind and what it holds."""


def legal(move: Move) -> str | None:
    return None


def made(move: Move | IllegalReply) -> Made:
    return type(move).__name__, *move


def action(text: str, grammar: ReplyGrammar = ReplyGrammar()) -> Made:
    """What a reply to a request for an action is, where the enemy at position 1 is dead."""
    return made(read_action(text, TEAM, (0, 2, 3), legal, grammar))


def act(fish: str, kind: str, target: str | None, grammar: ReplyGrammar = ReplyGrammar()) -> Made:
    """What a reply with these values, as they stand in JSON, is."""
    field = "" if target is None else f', "target_position": {target}'
    return action(f'{{"pick_fish": {fish}, "action": {kind}{field}}}', grammar)


def guess(fish: str, grammar: ReplyGrammar = ReplyGrammar()) -> Made:
    text = f'{{"guess_type": {fish}, "target_position": 1}}'
    return made(read_guess(text, STANDARD_TEAM, legal, grammar))


def test_the_first_legal_block_is_used() -> None:
    text = (
        '{"pick_fish": "shark", "action": "normal", "target_position": 0} or {so {} '
        '{"pick_fish": "eel", "action": "normal", "target_position": 0} or '
        '{"pick_fish": "eel", "action": "normal", "target_position": 3}'
    )
    assert action(text) == ("Attack", 3, 0)
    refused = read_action(text, TEAM, (0, 3), lambda move: "no" if move == Attack(3, 0) else None, ReplyGrammar())
    assert refused == Attack(3, 3)


def test_numbers_and_brackets_without_end_are_not_parsed() -> None:
    assert act('"eel"', '"normal"', '"' + "1" * 5_000 + '"') == act('"eel"', '"normal"', "4")
    for text in ("{" + '"a": ' + "[" * 100_000 + "}", '{"target_position": ' + "1" * 10_000 + "}"):
        assert action(text) == action("no JSON")


@pytest.mark.parametrize("text", ["{" * (1 << 20), "{}" * (1 << 19), "}" * (1 << 20), '{"a":' * (1 << 18)])
def test_a_huge_reply_is_scanned_within_bounds(text: str) -> None:
    assert action(text)[0] == "IllegalReply"
    assert sum(1 for _ in blocks(text, ReplyGrammar())) <= 1_000
