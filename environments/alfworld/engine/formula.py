"""Conditions over facts: the part of PDDL's formulas that ALFWorld's games use."""

import functools
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import TypeAlias

from environments.alfworld.engine.s_expressions import GameError, Tree, as_list, as_words, show, typed

Signatures = Mapping[str, tuple[str, ...]]
"""The types of each predicate's arguments."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A fact; a pattern of facts where arguments are variables, which begin with a question mark."""

    predicate: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Holds where `part` does not."""

    part: "Formula"


@dataclass(frozen=True, slots=True)
class And:
    """Holds where all parts do; without parts, always."""

    parts: tuple["Formula", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Holds where at least one part does."""

    parts: tuple["Formula", ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """Holds where there are objects of these types for which `part` holds."""

    variables: tuple[tuple[str, str], ...]
    part: "Formula"


@dataclass(frozen=True, slots=True)
class Equal:
    """Holds where both sides are the same object."""

    left: str
    right: str


Formula: TypeAlias = Atom | Not | And | Or | Exists | Equal


def parse(tree: Tree, signatures: Signatures, name: str) -> Formula:
    """The condition that an expression describes; `()` always holds. Raises GameError that begins with `name`."""
    if tree == []:
        return And(())
    head, *rest = as_list(tree, name)
    match head:
        case "and":
            return And(tuple(parse(part, signatures, name) for part in rest))
        case "or":
            return Or(tuple(parse(part, signatures, name) for part in rest))
        case "not" if len(rest) == 1:
            return Not(parse(rest[0], signatures, name))
        case "exists" if len(rest) == 2:
            return Exists(tuple(typed(as_list(rest[0], name), name)), parse(rest[1], signatures, name))
        case "=" if len(rest) == 2:
            left, right = as_words(rest, name)
            return Equal(left, right)
    return atom(tree, signatures, name)


def atom(tree: Tree, signatures: Signatures, name: str) -> Atom:
    """The fact, or the pattern of facts, that an expression describes. Raises GameError."""
    if isinstance(tree, list) and any(isinstance(part, list) for part in tree):
        raise GameError(f"{name}: {show(tree)} is none of: and, or, not, exists, =, a predicate with its arguments")
    predicate, *arguments = as_words(tree, name)
    types = signatures.get(predicate)
    if types is None:
        raise GameError(f"{name}: {show(tree)}: the domain declares no predicate {predicate}")
    if len(types) != len(arguments):
        raise GameError(f"{name}: {show(tree)}: {predicate} takes {len(types)} arguments, not {len(arguments)}")
    return Atom(predicate, tuple(arguments))


@functools.lru_cache(maxsize=4096)
def variables(formula: Formula) -> Set[str]:
    """The variables of a formula that are free in it."""
    match formula:
        case Atom(_, arguments):
            return {each for each in arguments if each.startswith("?")}
        case Equal(left, right):
            return {each for each in (left, right) if each.startswith("?")}
        case Not(part):
            return variables(part)
        case Exists(bound, part):
            return variables(part) - {name for name, _ in bound}
        case And(parts) | Or(parts):
            return set[str]().union(*map(variables, parts))
