"""What can't be played is named when a game is read."""

from collections.abc import Callable
from typing import Literal

import pytest

from environments.alfworld.engine.game import ReadyGame
from environments.alfworld.engine.s_expressions import GameError
from environments.alfworld.engine.world import GameWorld
from environments.alfworld.texts import own_domain, own_grammar

PROBLEM = """
(define (problem p) ; a comment (with parentheses
(:domain alfred)
(:objects agent1 - agent loc_bar_1 LOC_bar_2 - location Desk_bar_1 - receptacle Mug_bar_1 - object DeskType - rtype)
(:init (atLocation agent1 loc_bar_1) (receptacleAtLocation Desk_bar_1 loc_bar_2))
(:goal (exists (?o - object) (isHot ?o))))
"""
Change = Callable[[str], str]


def same(text: str) -> str:
    return text


def swap(old: str, new: str) -> Change:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


def game(domain: Change = same, grammar: Change = same, problem: Change = same) -> ReadyGame:
    return ReadyGame(domain(own_domain("put")), grammar(own_grammar("put")), problem(PROBLEM))


def test_letters_of_any_case_comments_and_line_breaks_do_not_matter() -> None:
    spaced = game(problem=lambda text: text.replace(" - ", "\n - \t\n"))
    assert GameWorld(spaced).admissible() == ["go to desk 1", "inventory", "look"]


def changed(part: Literal["domain", "grammar", "problem"], old: str, new: str) -> str:
    """What is told of a game of which one part is changed, or is new, where nothing old is named; for tables."""
    return str(game(**{part: swap(old, new) if old else lambda _: new}).grammar.has_plain_lists)


def test_a_grammar_that_ends_too_early_is_an_error() -> None:
    with pytest.raises(GameError, match="is not supported"):
        game(grammar=lambda text: text[:-5])


def test_symbols_that_stand_for_each_other_end_as_an_error() -> None:
    endless = game(grammar=swap('"task": [{"rhs": "Your task is to: @TASK@"}]', '"task": [{"rhs": "#task#"}]'))
    with pytest.raises(GameError, match="refers to itself"):
        GameWorld(endless)


def test_a_rule_without_a_condition_that_can_be_met_says_nothing() -> None:
    quiet = game(grammar=swap('"task": [{"rhs"', '"task": [{"condition": "holdsany(a:agent)", "rhs"'))
    assert GameWorld(quiet).intro.endswith("\n\n")


def test_of_alternatives_in_an_expression_the_first_is_taken() -> None:
    grammar = swap("{r.indefinite} {r.name}", "{r.indefinite + ' big ' + r.name or r.id} ({r.id})")
    assert "you see a big desk 1 (desk_bar_1)." in GameWorld(game(grammar=grammar)).intro


@pytest.mark.parametrize("more", ["[{l.id | atlocation(a:agent, l:location)}]", "#look.feedback#"])
def test_a_command_that_tells_of_what_changes_is_written_anew(more: str) -> None:
    moving = GameWorld(game(grammar=swap('"inventory"', f'"inventory {more}"')))
    before = moving.admissible()
    moving.step("go to desk 1")
    assert len({each for each in [*before, *moving.admissible()] if each.startswith("inventory")}) == 2


def test_a_command_whose_lists_are_separated_by_what_changes_is_written_anew() -> None:
    changing = '"list_separator": [{"condition": "atlocation(a:agent, desk:location)", "rhs": " "}, {"rhs": ", "}]'
    grammar = game(grammar=swap('"list_separator": [{"rhs": ", "}]', changing)).grammar
    assert not grammar.has_plain_lists
    assert game().grammar.has_plain_lists
