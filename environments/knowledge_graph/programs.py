"""Programs: definitions of sets of entities, which variables hold, and their queries in standard SPARQL 1.1.

Queries have full IRIs throughout, since some parsers reject names with several dots as prefixed names.
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

NAMESPACE = "http://rdf.freebase.com/ns/"
_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*")


@dataclass(frozen=True)
class Entity:
    """The set with one id."""

    id: str

    def __post_init__(self) -> None:
        """Raises ValueError unless the id is a plain name: an agent's other texts must not enter a query."""
        _check(self.id)


@dataclass(frozen=True)
class Join:
    """The objects of a relation over the members of a set."""

    relation: str
    of: "Program"

    def __post_init__(self) -> None:
        _check(self.relation)


@dataclass(frozen=True)
class Intersection:
    """What is in all of several sets. No part is an Intersection, and none occurs twice, so that queries stay small."""

    parts: tuple["Program", ...]


@dataclass(frozen=True)
class Count:
    """The number of distinct members."""

    of: "Program"


@dataclass(frozen=True)
class Extreme:
    """The members that share the largest or smallest value of an attribute."""

    order: Literal["MAX", "MIN"]
    attribute: str
    of: "Program"

    def __post_init__(self) -> None:
        _check(self.attribute)


Program = Entity | Join | Intersection | Count | Extreme


def intersection(left: Program, right: Program) -> Program:
    """The set of what is in both."""
    parts = tuple(dict.fromkeys((*_parts(left), *_parts(right))))
    return parts[0] if len(parts) == 1 else Intersection(parts)


def relations_query(program: Program, graph: str | None) -> str:
    """The query for the distinct outgoing predicates of a set's members."""
    return f"SELECT DISTINCT ?r {_from(graph)}WHERE {{ {_outgoing(program)} }}"


def plain_literals_query(program: Program, graph: str | None) -> str:
    """The query for the distinct predicates from a set's members to literals without a language."""
    only = 'FILTER(isLiteral(?o) && lang(?o) = "")'
    return f"SELECT DISTINCT ?r {_from(graph)}WHERE {{ {_outgoing(program)} {only} }}"


def answers_query(program: Program, graph: str | None) -> str:
    """The query for a set as an answer: without the program's own ids, and of literals those in English or no language.

    A Count leaves the same out of what it counts, as in the published code.
    """
    if isinstance(program, Count):
        what, program = "(COUNT(DISTINCT ?x) AS ?c)", program.of
    else:
        what = "DISTINCT ?x"
    own = " ".join(f"FILTER(?x != {iri(name)})" for name in dict.fromkeys(_ids(program)))
    english = 'FILTER(!isLiteral(?x) || lang(?x) = "" || langMatches(lang(?x), "en"))'
    return f"SELECT {what} {_from(graph)}WHERE {{ {_members(program)} {own} {english} }}"


def _members(program: Program) -> str:
    return _pattern(program, "?x", (f"?y{number}" for number in itertools.count()))


def _outgoing(program: Program) -> str:
    if isinstance(program, Entity):
        return f"{iri(program.id)} ?r ?o ."
    return f"{_members(program)} ?x ?r ?o ."


def _pattern(program: Program, x: str, fresh: Iterator[str]) -> str:
    """A graph pattern whose solutions bind a variable to each member."""
    match program:
        case Entity(name):
            return f"VALUES {x} {{ {iri(name)} }}"
        case Join(relation, Entity(name)):
            return f"{iri(name)} {iri(relation)} {x} ."
        case Join(relation, of):
            y = next(fresh)
            return f"{_pattern(of, y, fresh)} {y} {iri(relation)} {x} ."
        case Intersection(parts):
            return " ".join(_pattern(part, x, fresh) for part in parts)
        case Count(of):
            y = next(fresh)
            return f"{{ SELECT (COUNT(DISTINCT {y}) AS {x}) WHERE {{ {_pattern(of, y, fresh)} }} }}"
        case Extreme(order, attribute, of):
            y, each, best, value = (next(fresh) for _ in range(4))
            inner = f"{_pattern(of, y, fresh)} {y} {iri(attribute)} {each} ."
            outer = f"{_pattern(of, x, fresh)} {x} {iri(attribute)} {value} ."
            extreme = f"{{ SELECT ({order}({each}) AS {best}) WHERE {{ {inner} }} }}"
            # a group of its own, so that the filter applies to these variables alone
            return f"{{ {extreme} {outer} FILTER({value} = {best}) }}"


def _ids(program: Program) -> Iterator[str]:
    match program:
        case Entity(name):
            yield name
        case Intersection(parts):
            for part in parts:
                yield from _ids(part)
        case Join(_, of) | Count(of) | Extreme(_, _, of):
            yield from _ids(of)


def _parts(program: Program) -> tuple[Program, ...]:
    return program.parts if isinstance(program, Intersection) else (program,)


def _from(graph: str | None) -> str:
    return "" if graph is None else f"FROM <{graph}> "


def iri(name: str) -> str:
    """The IRI of a name of the graph, as queries and triples write it."""
    return f"<{NAMESPACE}{name}>"


def is_name(text: str) -> bool:
    """Whether a text may follow the name space in an IRI."""
    return _NAME.fullmatch(text) is not None


def _check(name: str) -> None:
    if not is_name(name):
        raise ValueError(f"{name!r} is no name of this graph")
