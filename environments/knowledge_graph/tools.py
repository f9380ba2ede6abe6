"""The seven tools of one session: its variables, the names listed so far, and the checks before each call.

Source: AgentBench v0.2, task `knowledgegraph`; arXiv 2308.03688, Appendix D.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from environments.knowledge_graph.graphs import Graph
from environments.knowledge_graph.ontology import Ontology
from environments.knowledge_graph.programs import (
    NAMESPACE,
    Count,
    Entity,
    Extreme,
    Join,
    Program,
    intersection,
    is_name,
    plain_literals_query,
    relations_query,
)
from environments.knowledge_graph.reply import ToolRequest

Profile = Literal["compat", "strict"]
NUMBER = "type.int"
_ID = re.compile(r"[fgm]\.[A-Za-z0-9_]+")
_PREFIXES: Mapping[Profile, tuple[str, ...]] = {"compat": ("m.", "f."), "strict": ("m.", "f.", "g.")}
_EVERYTHING = "common.topic"
_RECORD = "type.object"
"""The domain of names, keys and timestamps."""
_AROUND = re.compile(r"^[\s\"'`]*(?:variable\s+)?|[\s\"'`]+$", re.IGNORECASE)
_MAX_DIGITS = 4_000
"""Python reads no longer number."""


@dataclass(frozen=True)
class ToolRules:
    """What all sessions of a configured environment share."""

    profile: Profile
    ontology: Ontology
    max_rows: int
    max_shown: int | None


@dataclass(frozen=True)
class Variable:
    """A set that the agent has defined; it is computed only where its content is needed."""

    type: str
    program: Program
    warning: str = ""
    """Added to its observation."""


@dataclass(frozen=True)
class Listing:
    """Names that a tool lists, sorted."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class ToolRefusal:
    """A call that can't be executed."""

    reason: str
    """The precondition that failed."""
    unreadable: bool = False
    """True where the arguments could not be split."""


Operand = Variable | str
Outcome = Variable | Listing | ToolRefusal


class Tools:
    """The tools of one session; their state belongs to the session alone."""

    def __init__(self, entities: Mapping[str, str], graph: Graph, graph_name: str | None, rules: ToolRules) -> None:
        self._entities, self._graph, self._graph_name, self._rules = entities, graph, graph_name, rules
        self._strict = rules.profile == "strict"
        self.variables: list[Variable] = []
        self._relations: dict[Program, tuple[str, ...]] = {}
        self._attributes: dict[Program, tuple[str, ...]] = {}
        self._functions: dict[str, tuple[int, Callable[..., Awaitable[Outcome]]]] = {
            "get_relations": (1, self._get_relations),
            "get_neighbors": (2, self._get_neighbors),
            "intersection": (2, self._intersection),
            "get_attributes": (1, self._get_attributes),
            "argmax": (2, partial(self._extreme, "MAX")),
            "argmin": (2, partial(self._extreme, "MIN")),
            "count": (1, self._count),
        }

    async def run(self, call: ToolRequest) -> Outcome:
        """The outcome of a call; a new variable joins `variables`. Raises EnvironmentFault where the graph fails."""
        if call.function not in self._functions:
            return ToolRefusal(f"there is no function {call.function}")
        wanted, function = self._functions[call.function]
        if call.arguments is None:
            return ToolRefusal("the arguments can't be read", unreadable=True)
        if len(call.arguments) != wanted:
            return ToolRefusal(f"{call.function} takes {wanted} argument(s), not {len(call.arguments)}")
        operands = [self._operand(argument) for argument in call.arguments]
        unknown = next((operand for operand in operands if isinstance(operand, ToolRefusal)), None)
        outcome = unknown or await function(*operands)
        if isinstance(outcome, Variable):
            self.variables.append(outcome)
        return outcome

    def variable(self, digits: str) -> Variable | None:
        """The variable with this number, or None."""
        return self._at(digits) if len(digits) <= _MAX_DIGITS else None

    def _at(self, number: str) -> Variable | None:
        """The variable at a place as Python reads it, from the end where it is negative, as published; or None."""
        try:
            return self.variables[int(number)]
        except (ValueError, IndexError):
            return None

    def _operand(self, argument: str) -> Operand | ToolRefusal:
        if self._strict and (plain := _AROUND.sub("", argument)).startswith("#"):
            argument = plain
        if argument.startswith("#"):
            return self.variable(argument[1:]) or ToolRefusal(f"there is no variable {argument}")
        return self._entities.get(argument, argument)

    async def _get_relations(self, x: Operand) -> Outcome:
        program = self._set(x)
        if isinstance(program, ToolRefusal):
            return program
        predicates = await self._names(relations_query(program, self._graph_name))
        listed = tuple(sorted(filter(self._is_relation, predicates)))
        self._relations[program] = listed
        return Listing(listed)

    def _is_relation(self, name: str) -> bool:
        """Whether a predicate is listed as a relation.

        `strict` also lists those that are in the roles alone, except the properties of every node (`type.object.name`).
        """
        ontology = self._rules.ontology
        if name in ontology.vocabulary.relations:
            return True
        by_roles = self._strict and name in ontology.roles and name not in ontology.vocabulary.attributes
        return by_roles and ontology.roles[name][0] != _RECORD

    async def _get_neighbors(self, x: Operand, relation: Operand) -> Outcome:
        program = self._set(x)
        if isinstance(program, ToolRefusal):
            return program
        kind = self._rules.ontology.range_of(str(relation))
        if relation not in self._relations.get(program, ()) or kind is None:
            return ToolRefusal("the relation was not listed by get_relations for this variable or entity")
        return Variable(kind, Join(str(relation), program))

    async def _intersection(self, a: Operand, b: Operand) -> Outcome:
        if isinstance(a, str) or isinstance(b, str):
            return ToolRefusal("intersection takes two variables")
        both = Variable(a.type, intersection(a.program, b.program))
        if a.type == b.type:
            return both
        if not self._strict:
            return ToolRefusal(f"the variables are of different types, {a.type} and {b.type}")
        if self._rules.ontology.is_a(a.type, b.type):
            return both
        if self._rules.ontology.is_a(b.type, a.type):
            return replace(both, type=b.type)
        return replace(both, warning=f"warning: the two variables are of the types {a.type} and {b.type}")

    async def _get_attributes(self, v: Operand) -> Outcome:
        if isinstance(v, str):
            return ToolRefusal("get_attributes takes a variable")
        predicates = await self._names(relations_query(v.program, self._graph_name))
        found = predicates & self._rules.ontology.vocabulary.attributes
        if self._strict:
            found |= await self._names(plain_literals_query(v.program, self._graph_name))
        self._attributes[v.program] = tuple(sorted(found))
        return Listing(self._attributes[v.program])

    async def _extreme(self, order: Literal["MAX", "MIN"], v: Operand, attribute: Operand) -> Outcome:
        if isinstance(v, str):
            return ToolRefusal("the first argument is no variable")
        if attribute not in self._attributes.get(v.program, ()):
            return ToolRefusal("the attribute was not listed by get_attributes for this variable")
        return Variable(v.type, Extreme(order, str(attribute), v.program))

    async def _count(self, v: Operand) -> Outcome:
        return ToolRefusal("count takes a variable") if isinstance(v, str) else Variable(NUMBER, Count(v.program))

    def _set(self, x: Operand) -> Program | ToolRefusal:
        """The set that a tool starts from: a variable's, or that of one id; a refusal where it is neither."""
        if isinstance(x, Variable):
            return x.program
        if _ID.fullmatch(x) and x.startswith(_PREFIXES[self._rules.profile]):
            return Entity(x)
        if self._strict and x == _EVERYTHING:
            return Entity(x)
        return ToolRefusal("there is no such variable, entity or id")

    async def _names(self, query: str) -> set[str]:
        """The names that a query finds in Freebase's name space, without those that could not enter another query."""
        iris = await self._graph.column(query, self._rules.max_rows)
        found = (iri.removeprefix(NAMESPACE) for iri in iris if iri.startswith(NAMESPACE))
        return {name for name in found if is_name(name)}
