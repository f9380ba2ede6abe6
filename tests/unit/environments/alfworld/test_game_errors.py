"""What can't be played is named when a game is read."""

from collections.abc import Callable

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


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (swap("(:objects", "((:objects"), "pddl_problem: 1 opening parentheses are never closed"),
        (swap("(isHot ?o))))", "(isHot ?o)))))))"), "pddl_problem: a closing parenthesis has no opening one"),
        (swap("(:goal (exists (?o - object) (isHot ?o)))", ""), r"pddl_problem: has no \(:goal"),
        (swap("(:goal (exists (?o - object) (isHot ?o)))", "(:goal)"), "holds 0 conditions"),
        (swap("(atLocation agent1 loc_bar_1)", ""), "the agent is nowhere"),
        (swap("(atLocation agent1", "(flies agent1"), "declares no predicate flies"),
        (swap("(atLocation agent1 loc_bar_1)", "(atLocation agent1)"), r"must be \(atlocation agent location\)"),
        (swap("(atLocation agent1 loc_bar_1)", "(atLocation loc_bar_1 agent1)"), "must be"),
        (swap("(atLocation agent1 loc_bar_1)", "(not (atLocation agent1 loc_bar_1))"), "only plain facts"),
        (swap("(isHot ?o)", "(isHot ?o ?o)"), "ishot takes 1 arguments, not 2"),
        (swap("(isHot ?o)", "(forall (?o - object) (isHot ?o))"), "is none of: and, or, not, exists"),
        (swap("(isHot ?o)", "(isHot ?x)"), r"\?x is declared nowhere"),
        (swap("(isHot ?o)", "(or (isHot ?o) (= ?x ?o))"), r"the variable \?x is declared nowhere"),
        (swap("(isHot ?o)", "(not " * 2000 + "(isHot ?o)" + ")" * 2000), "pddl_problem: .*deeper than 100"),
        (swap(" - rtype", ""), "desktype has no type"),
        (lambda text: "", "expected one expression"),
    ],
)
def test_a_broken_problem_is_an_error_that_names_the_part(change: Change, problem: str) -> None:
    with pytest.raises(GameError, match=problem):
        game(problem=change)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (swap(":effect (checked ?l)", ""), "action look: has no :effect"),
        (swap("(checked ?l)", "(forall (?x - object) (isHot ?x))"), "action look"),
        (swap("(checked ?l)", "(seen ?l)"), "action look: .*declares no predicate seen"),
        (swap("(define", "(redefine"), r"not with \(define"),
        (swap("(?a - agent ?l - location)\n", "?a\n"), ":parameters must be a list"),
    ],
)
def test_a_broken_domain_is_an_error_that_names_the_action(change: Change, problem: str) -> None:
    with pytest.raises(GameError, match=problem):
        game(domain=change)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (swap("open {r}", "open {r.colour}"), r"the expression \{r.colour\}"),
        (swap("open {r}", "open {r"), r"uses '\{r'"),
        (swap("open {r}", "open [{r}]"), r"uses '\[\{r\}\]'"),
        (swap("open {r}", "open #r"), "uses '#r'"),
        (swap("open {r}", "open #nobody#"), "the symbol #nobody# has no rule"),
        (swap("holdsany(a:agent)", "holdsany(a)"), r"the condition 'holdsany\(a\)'"),
        (swap("holdsany(a:agent)", "holdsany(a:agent, b:agent)"), "asks for holdsany, not as the domain has it"),
        (swap("holdsany(a:agent)", "flies(a:agent)"), "asks for flies"),
        (swap("You close the {r.name}.", "You close [{r.name | flies(r:receptacle)}]."), "asks for flies"),
        (swap('{"rhs": "You are not carrying anything."}', '{"rhs": "", "chance": 1}'), "'chance'"),
        (swap('{"rhs": "You are not carrying anything."}', '{"said": ""}'), "a rule has 'said'"),
        (swap('"task": [', '"task": ]'), "its rules are not a JSON object"),
        (swap("action look {", "task look {"), "is not supported"),
        (swap('template :: "look";', ""), "action look: expected template, feedback"),
        (swap("put {o} in/on {r}", "lay {o} on {r}"), "action PutObject: its template must be one of"),
        (lambda text: text[:-5], "is not supported"),
    ],
)
def test_a_grammar_that_uses_anything_else_is_an_error_that_names_it(change: Change, problem: str) -> None:
    with pytest.raises(GameError, match=problem):
        game(grammar=change)


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
