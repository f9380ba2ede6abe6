"""Replies become moves by the grammar and in no other way; the bad inputs are tables/card_game.jsonl."""

import pytest

from environments.card_game.reply import IllegalReply, ReplyGrammar, blocks, read_action, read_guess
from environments.card_game.rules.fish import BARRACUDA, EEL, OCTOPUS, STANDARD_TEAM, WHITESHARK
from environments.card_game.rules.moves import Attack, Move

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
