"""The domain of a game: conditions and effects of actions (PDDL with flat types; `game.tw-pddl`, key pddl_domain)."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from environments.alfworld.engine import formula
from environments.alfworld.engine.formula import And, Atom, Formula, Signatures
from environments.alfworld.engine.s_expressions import GameError, Tree, as_list, read, show, typed

NAME = "pddl_domain"


@dataclass(frozen=True, slots=True)
class Effect:
    """Changes to the facts where the condition held before the action: `deletes` come first, then `adds`."""

    condition: Formula
    deletes: tuple[Atom, ...]
    adds: tuple[Atom, ...]


@dataclass(frozen=True)
class Operator:
    """An action of the domain; its parameters are variables, which a command gives values to."""

    name: str
    parameters: Mapping[str, str]
    """The type of each parameter."""
    precondition: Formula
    effects: tuple[Effect, ...]

    @functools.cached_property
    def always_changes(self) -> bool:
        """Whether it has conditional effects, or adds facts of other predicates than it deletes."""
        first, *conditional = self.effects
        return bool(conditional) or {atom.predicate for atom in first.adds} != {
            atom.predicate for atom in first.deletes
        }


@dataclass(frozen=True, slots=True)
class Domain:
    """The predicates with the types of their arguments, and the operators by name."""

    predicates: Signatures
    operators: Mapping[str, Operator]
    changing: frozenset[str]
    """The predicates of the facts that operators add or delete, without `not_`."""


@functools.lru_cache(maxsize=8)
def parse(text: str) -> Domain:
    """The domain that a text describes. Raises GameError naming the part and what is wrong with it."""
    head, *parts = read(text, NAME)
    if head != "define":
        raise GameError(f"{NAME}: starts with {show(head)}, not with (define (domain ...")
    sections = [as_list(part, NAME) for part in parts]
    predicates = {
        str(predicate): tuple(kind for _, kind in typed(arguments, NAME))
        for section in sections
        if section[0] == ":predicates"
        for predicate, *arguments in (as_list(each, NAME) for each in section[1:])
    }
    operators = [_operator(section, predicates) for section in sections if section[0] == ":action"]
    effects = [effect for operator in operators for effect in operator.effects]
    atoms = [atom for effect in effects for atom in (*effect.adds, *effect.deletes)]
    changing = frozenset(atom.predicate.removeprefix("not_") for atom in atoms)
    return Domain(predicates, {operator.name: operator for operator in operators}, changing)


def _operator(section: list[Tree], predicates: Signatures) -> Operator:
    name = section[1] if len(section) > 1 else "an action without name"
    place = f"{NAME}: action {show(name)}"
    fields = dict(zip(map(show, section[2::2]), section[3::2], strict=False))
    missing = {":parameters", ":precondition", ":effect"} - fields.keys()
    if missing:
        raise GameError(f"{place}: has no {min(missing)}")
    parameters = fields[":parameters"]
    if isinstance(parameters, str):
        raise GameError(f"{place}: :parameters must be a list in parentheses")
    return Operator(
        name=show(name),
        parameters=dict(typed(parameters, place)),
        precondition=formula.parse(fields[":precondition"], predicates, place),
        effects=tuple(_effects(fields[":effect"], predicates, place)),
    )


def _effects(tree: Tree, predicates: Signatures, place: str) -> Iterator[Effect]:
    """The unconditional effect, then the conditional ones."""
    deletes, adds, conditional = list[Atom](), list[Atom](), list[Effect]()
    for part in _flat(tree, place):
        if part[0] == "when" and len(part) == 3:
            condition = formula.parse(part[1], predicates, place)
            (effect,) = _effects(part[2], predicates, place)
            conditional.append(Effect(condition, effect.deletes, effect.adds))
        elif part[0] == "not" and len(part) == 2:
            deletes.append(formula.atom(part[1], predicates, place))
        elif part[0] != "increase":
            adds.append(formula.atom(part, predicates, place))
    yield Effect(And(()), tuple(deletes), tuple(adds))
    yield from conditional


def _flat(tree: Tree, place: str) -> Iterator[list[Tree]]:
    parts = as_list(tree, place)
    if parts[0] != "and":
        yield parts
        return
    for part in parts[1:]:
        yield from _flat(part, place)
