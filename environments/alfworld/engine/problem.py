"""The problem of a game: its objects, the facts at the start, and the goal (`game.tw-pddl`, key pddl_problem)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from environments.alfworld.engine import formula
from environments.alfworld.engine.formula import Formula, Signatures
from environments.alfworld.engine.s_expressions import GameError, Tree, as_list, read, show, typed

NAME = "pddl_problem"
Fact = tuple[str, ...]
"""A predicate and its arguments."""


@dataclass(frozen=True, slots=True)
class PddlProblem:
    """The objects of a game, the facts at its start, and the goal."""

    types: Mapping[str, str]
    """The type of each object."""
    facts: tuple[Fact, ...]
    goal: Formula


def parse(text: str, predicates: Signatures) -> PddlProblem:
    """The problem that a text describes. Raises GameError naming the part and what is wrong with it."""
    sections = {show(parts[0]): parts[1:] for parts in (as_list(part, NAME) for part in read(text, NAME)[1:])}
    for section in (":objects", ":init", ":goal"):
        if section not in sections:
            raise GameError(f"{NAME}: has no ({section} ...)")
    types = dict(typed(sections[":objects"], f"{NAME}: :objects"))
    facts = tuple(_fact(part, types, predicates) for part in sections[":init"])
    if not any(fact[0] == "atlocation" for fact in facts):
        raise GameError(f"{NAME}: :init: no (atLocation agent ...): the agent is nowhere")
    if len(sections[":goal"]) != 1:
        raise GameError(f"{NAME}: :goal: holds {len(sections[':goal'])} conditions, not one")
    return PddlProblem(types, facts, formula.parse(sections[":goal"][0], predicates, f"{NAME}: :goal"))


def _fact(tree: Tree, types: Mapping[str, str], predicates: Signatures) -> Fact:
    fact = () if isinstance(tree, str) or list in map(type, tree) else cast(Fact, tuple(tree))
    if not fact:
        raise GameError(f"{NAME}: :init: {show(tree)} is no fact; only plain facts are allowed here")
    expected = predicates.get(fact[0])
    if expected is None:
        raise GameError(f"{NAME}: :init: {show(tree)}: the domain declares no predicate {fact[0]}")
    if expected != tuple(map(types.get, fact[1:])):
        raise GameError(
            f"{NAME}: :init: {show(tree)}: must be ({' '.join((fact[0], *expected))}), as :objects has them"
        )
    return fact
