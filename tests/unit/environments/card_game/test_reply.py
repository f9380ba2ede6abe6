"""Replies become moves by the grammar and in no other way: the table of bad inputs."""

import pytest

from environments.card_game.reply import ANY_POSITION, IllegalReply, ReplyGrammar, blocks, read_action, read_guess
from environments.card_game.rules.fish import BARRACUDA, EEL, OCTOPUS, STANDARD_TEAM, WHITESHARK
from environments.card_game.rules.moves import Assert, Attack, Move, Skill

TEAM = (BARRACUDA, WHITESHARK, OCTOPUS, EEL)


def legal(move: Move) -> str | None:
    return None


def action(text: str, grammar: ReplyGrammar = ReplyGrammar()) -> Move | IllegalReply:
    return read_action(text, TEAM, (0, 2, 3), legal, grammar)


def test_the_forms_of_every_kind_of_action() -> None:
    said = '{{"pick_fish": "{}", "action": "{}", "target_position": 2}}'
    assert action(said.format("octopus", "normal")) == Attack(2, 2)
    assert action(said.format("octopus", "active")) == Skill(2, mates=(2,))
    assert action(said.format("barracuda", "active")) == Skill(0, enemies=(2,))
    assert action(said.format("eel", "active")) == Skill(3, enemies=(0, 2, 3))
    assert read_guess('{"guess_type": "eel", "target_position": 1}', STANDARD_TEAM, legal, ReplyGrammar()) == Assert(
        1, EEL
    )


def test_the_first_legal_block_is_used() -> None:
    text = (
        '{"pick_fish": "shark", "action": "normal", "target_position": 0} or {so {} '
        '{"pick_fish": "eel", "action": "normal", "target_position": 0} or '
        '{"pick_fish": "eel", "action": "normal", "target_position": 3}'
    )
    assert action(text) == Attack(3, 0)
    assert read_action(
        text, TEAM, (0, 3), lambda move: "no" if move == Attack(3, 0) else None, ReplyGrammar()
    ) == Attack(3, 3)


@pytest.mark.parametrize(
    ("position", "read"),
    [
        ('"2"', 2),
        ("2", 2),
        ("2.0", None),
        ("-1", None),
        ('"two"', None),
        ("true", None),
        ("4", None),
        ("null", None),
        ('"+1"', 1),
        ('" 1"', 1),
        ('"01"', 1),
        ('"１"', 1),
        ('""', None),
        ("[1]", None),
        ('"' + "1" * 5_000 + '"', None),
    ],
)
def test_positions(position: str, read: int | None) -> None:
    move = action(f'{{"pick_fish": "eel", "action": "normal", "target_position": {position}}}')
    assert move == (IllegalReply(True, "target_position must be 0, 1, 2 or 3") if read is None else Attack(3, read))


@pytest.mark.parametrize("target", ["0", "7", "-1", '"+2"', '"１"'])
def test_an_aoe_names_any_integer_for_its_target(target: str) -> None:
    assert action(f'{{"pick_fish": "eel", "action": "active", "target_position": {target}}}') == Skill(
        3, enemies=(0, 2, 3)
    )


@pytest.mark.parametrize("target", ['"all"', "null", "[0, 2, 3]", "2.0", "true", '"none"', None])
def test_an_aoe_without_an_integer_is_understood_only_where_the_grammar_says_so(target: str | None) -> None:
    field = "" if target is None else f', "target_position": {target}'
    text = f'{{"pick_fish": "eel", "action": "active"{field}}}'
    assert action(text) == IllegalReply(True, ANY_POSITION)
    assert action(text, ReplyGrammar(targetless_aoe=True)) == Skill(3, enemies=(0, 2, 3))


def test_a_number_stands_for_the_next_fish_that_attacks_where_the_grammar_says_so() -> None:
    said = '{{"pick_fish": {}, "action": "{}", "target_position": 2}}'
    numbered = ReplyGrammar(numbered_fish=True)
    assert [action(said.format(f'"{number}"', "normal"), numbered) for number in range(3)] == [
        Attack(position, 2) for position in (1, 2, 3)
    ]
    for fish, kind in (('"3"', "normal"), ("0", "normal"), ('"0"', "active")):
        assert isinstance(action(said.format(fish, kind), numbered), IllegalReply)


@pytest.mark.parametrize("fish", ["3", '"3"', '"Eel"', '"EEL"', '"spray"', "null", '["eel"]'])
def test_fish_go_by_their_lower_case_names_only(fish: str) -> None:
    move = action(f'{{"pick_fish": {fish}, "action": "normal", "target_position": 0}}')
    assert isinstance(move, IllegalReply)
    assert move.parsed


@pytest.mark.parametrize("kind", ['"Normal"', '"attack"', "1", '["active"]'])
def test_actions_are_normal_or_active(kind: str) -> None:
    assert isinstance(action(f'{{"pick_fish": "eel", "action": {kind}, "target_position": 0}}'), IllegalReply)


def test_thoughts_extra_keys_line_breaks_and_single_quotes_are_accepted() -> None:
    text = "I think\n{'thought': 'x',\n 'pick_fish': 'eel',\n 'action': 'normal', 'target_position': '0'}\nbye"
    assert action(text) == Attack(3, 0)


@pytest.mark.parametrize(
    "text",
    [
        '{"thought": "it\'s weak", "pick_fish": "eel", "action": "normal", "target_position": 0}',
        '{"thought": "don\'t, won\'t", "pick_fish": "eel", "action": "normal", "target_position": "0"}',
    ],
)
def test_an_apostrophe_inside_valid_json_is_understood_where_the_grammar_says_so(text: str) -> None:
    assert action(text) == IllegalReply(False, "no JSON object of the asked form was found")
    assert action(text, ReplyGrammar(apostrophes=True)) == Attack(3, 0)


def test_single_quotes_are_understood_in_every_grammar() -> None:
    text = "{'pick_fish': 'eel', 'action': 'normal', 'target_position': 0}"
    assert action(text) == action(text, ReplyGrammar(apostrophes=True)) == Attack(3, 0)
    guess = "{'guess_type': 'eel', 'target_position': 1}"
    assert read_guess(guess, STANDARD_TEAM, legal, ReplyGrammar(apostrophes=True)) == Assert(1, EEL)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        '{"pick_fish": "eel", "action": "normal", "target_position": 0',
        '{"move": {"pick_fish": "eel"}, "action": "normal", "target_position": 0}',
        "{'thought': 'it's', 'pick_fish': 'eel', 'action': 'normal', 'target_position': 0}",
        '{"pick_fish": "eel",}',
        "{" + '"a": ' + "[" * 100_000 + "}",
        '{"target_position": ' + "1" * 10_000 + "}",
    ],
)
def test_what_is_not_json_by_the_shortest_match_is_not_parsed(text: str) -> None:
    assert action(text) == IllegalReply(False, "no JSON object of the asked form was found")


def test_an_inner_block_of_nested_braces_is_not_found_but_the_next_block_is() -> None:
    text = '{"a": {"b": 1}} {"pick_fish": "eel", "action": "normal", "target_position": 0}'
    assert action(text) == Attack(3, 0)


@pytest.mark.parametrize("text", ["{" * (1 << 20), "{}" * (1 << 19), "}" * (1 << 20), '{"a":' * (1 << 18)])
def test_a_huge_reply_is_scanned_within_bounds(text: str) -> None:
    assert isinstance(action(text), IllegalReply)
    assert sum(1 for _ in blocks(text, ReplyGrammar())) <= 1_000


@pytest.mark.parametrize("guess", ['"shark"', '"octopus"', "3", "null", '"Eel"', "[]"])
def test_a_guess_names_one_of_the_four_types(guess: str) -> None:
    refused = read_guess(f'{{"guess_type": {guess}, "target_position": 0}}', STANDARD_TEAM, legal, ReplyGrammar())
    assert refused == IllegalReply(True, "guess_type must be one of spray, flame, eel, sunfish")
