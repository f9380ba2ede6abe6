"""A game that is ready to be played: its three texts, parsed and linked."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from environments.alfworld.engine import domain, grammar, problem
from environments.alfworld.engine.domain import Effect, Operator
from environments.alfworld.engine.facts import Arguments, Facts
from environments.alfworld.engine.formula import And, Equal, Formula, Not
from environments.alfworld.engine.query import Compiler, Query
from environments.alfworld.engine.s_expressions import GameError
from environments.alfworld.engine.template import ListPattern, Pattern, PropertyPattern, Symbol, Text

Binding = Mapping[str, str]
"""The value of each parameter of a command."""
_SEPARATOR = "_bar_"
MAX_DEPTH = 30
"""How deep the symbols of a grammar may be nested."""


class ReadyGame:
    """The parts of a game that never change. Raises GameError for texts that can't be played."""

    def __init__(self, pddl_domain: str, grammar_text: str, pddl_problem: str) -> None:
        self.domain = domain.parse(pddl_domain)
        self.grammar = grammar.parse(grammar_text)
        self.problem = problem.parse(pddl_problem, self.domain.predicates)
        objects: defaultdict[str, list[str]] = defaultdict(list)
        for each, kind in self.problem.types.items():
            objects[kind].append(each)
        self._names = names({argument for fact in self.problem.facts for argument in fact[1:]})
        self.start = Facts(self.problem.facts)
        """The facts at the start; each session changes a copy of them."""
        self._compiler = Compiler(self.domain.predicates, objects, self.start)
        self._queries: dict[tuple[int, Sequence[str]], Query] = {}
        """By the identity of the formula or pattern, which the domain or the grammar holds: to hash one takes long."""
        self._commands: dict[tuple[str, Arguments], str] = {}
        """The commands that depend on no fact that changes, by operator and the values of `_used`."""
        self.goal = self._compiler.query(self.problem.goal, {})
        self.operators = [
            (operator, self._compiler.query(operator.precondition, operator.parameters))
            for name, operator in self.domain.operators.items()
            if name in self.grammar.commands
        ]
        """The operators that have a command, each with the query for the admissible values of its parameters."""
        self._used = {operator.name: self._parameters_of_command(operator) for operator, _ in self.operators}
        self._check_rules()

    def applies(self, effect: Effect, operator: Operator, facts: Facts, given: Sequence[str]) -> bool:
        """Whether the condition of an operator's effect holds for these values of its parameters."""
        if effect.condition == And(()):
            return True
        query = self._query(effect.condition, operator.parameters, tuple(operator.parameters))
        return any(True for _ in query.ask(facts, given))

    def command(self, operator: Operator, binding: Binding, facts: Facts) -> str:
        """The command by which an operator is carried out with these values of its parameters."""
        template, used = self.grammar.commands[operator.name].template, self._used[operator.name]
        if used is None:
            return self.render(template, binding, facts).strip()
        key = operator.name, tuple([binding[name] for name in used])
        if key not in self._commands:
            self._commands[key] = self.render(template, binding, facts).strip()
        return self._commands[key]

    def _parameters_of_command(self, operator: Operator) -> list[str] | None:
        """The parameters that an operator's command depends on; None where it depends on facts that change too."""
        template = self.grammar.commands[operator.name].template
        lists = [part for part in template if isinstance(part, ListPattern)]
        parts = [*template, *(part for each in lists for part in each.item)]
        if any(isinstance(part, Symbol) for part in parts) or not all(map(self._never_changes, lists)):
            return None
        names = {part.variable for part in parts if isinstance(part, PropertyPattern)}
        names |= {name for each in lists for name, _ in each.pattern.types}
        return [name for name in operator.parameters if name in names]

    def _never_changes(self, listed: ListPattern) -> bool:
        """Whether a list is of facts that no operator changes."""
        predicates = {atom.predicate.removeprefix("not_") for atom in listed.pattern.atoms}
        return predicates.isdisjoint(self.domain.changing) and self.grammar.has_plain_lists

    def render(self, text: Text, binding: Binding, facts: Facts, depth: int = 0) -> str:
        """A text with all its patterns filled in, from the values of a command and the current facts."""
        parts = []
        for part in text:
            match part:
                case str():
                    parts.append(part)
                case Symbol(name):
                    parts.append(self._expand(name, binding, facts, depth))
                case PropertyPattern(variable, attribute):
                    parts.append(self._property(variable, attribute, binding))
                case ListPattern(item, pattern):
                    parts.append(self._list(item, pattern, binding, facts, depth))
        return "".join(parts)

    def _expand(self, symbol: str, binding: Binding, facts: Facts, depth: int) -> str:
        """The text of a symbol's first rule whose condition is met; empty where there is no such rule."""
        if depth > MAX_DEPTH:
            raise GameError(f"{grammar.NAME}: the symbol #{symbol}# refers to itself")
        for rule in self.grammar.rules[symbol]:
            if rule.condition is None or self._matches(rule.condition, binding, facts):
                return self.render(rule.text, binding, facts, depth + 1)
        return ""

    def _list(self, item: Text, pattern: Pattern, binding: Binding, facts: Facts, depth: int) -> str:
        items = [
            self.render(item, {**binding, **match}, facts, depth + 1)
            for match in self._matches(pattern, binding, facts)
        ]
        if not items:
            return self._expand("list_empty", binding, facts, depth)
        *first, last = items
        if not first:
            return last
        separator = self._expand("list_separator", binding, facts, depth)
        return separator.join(first) + self._expand("list_last_separator", binding, facts, depth) + last

    def _matches(self, pattern: Pattern, binding: Binding, facts: Facts) -> list[Binding]:
        """All matches of a pattern, sorted: variables of the command keep their values; values of one type differ."""
        types = dict(pattern.types)
        bound = tuple(name for name in types if name in binding)
        query = self._query(pattern, types, bound)
        return [dict(zip(types, found, strict=True)) for found in sorted(query.ask(facts, [binding[n] for n in bound]))]

    def _query(self, key: Formula | Pattern, types: Mapping[str, str], bound: Sequence[str]) -> Query:
        if (id(key), bound) not in self._queries:
            formula = _formula(key) if isinstance(key, Pattern) else key
            self._queries[id(key), bound] = self._compiler.query(formula, types, bound)
        return self._queries[id(key), bound]

    def _property(self, variable: str, attribute: str, binding: Binding) -> str:
        if variable not in binding:
            raise GameError(f"{grammar.NAME}: {{{variable[1:]}.{attribute}}} is used where {variable[1:]} has no value")
        if attribute == "indefinite":
            return "a"
        return binding[variable] if attribute == "id" else self._names.get(binding[variable], binding[variable])

    def _check_rules(self) -> None:
        """Raises GameError where a pattern or condition of the grammar needs facts that the domain does not declare."""
        for pattern in self._patterns:
            types = dict(pattern.types)
            for atom in pattern.atoms:
                expected = self.domain.predicates.get(atom.predicate.removeprefix("not_"))
                if expected != tuple(types[argument] for argument in atom.arguments):
                    raise GameError(f"{grammar.NAME}: a condition asks for {atom.predicate}, not as the domain has it")

    @cached_property
    def _patterns(self) -> list[Pattern]:
        texts = [rule.text for rules in self.grammar.rules.values() for rule in rules]
        texts += [text for command in self.grammar.commands.values() for text in (command.template, command.feedback)]
        listed = [part.pattern for text in texts for part in text if isinstance(part, ListPattern)]
        asked = [rule.condition for rules in self.grammar.rules.values() for rule in rules if rule.condition]
        return listed + asked


def _formula(pattern: Pattern) -> Formula:
    pairs = itertools.combinations(pattern.types, 2)
    differ = [Not(Equal(one, other)) for (one, kind), (other, also) in pairs if kind == also]
    return And((*pattern.atoms, *differ))


def names(identifiers: Iterable[str]) -> Mapping[str, str]:
    """The display names, such as `desk 2`, of all identifiers in a game's facts, numbered down to 1 in sorted order.

    They are those of ALFWorld's name wrapper, without shuffling.
    """
    entities = sorted(set(identifiers))
    left = Counter(_base(entity) for entity in entities)
    found: dict[str, str] = {}
    for entity in entities:
        base = _base(entity)
        found[entity] = f"{base} {left[base]}" if _SEPARATOR in entity else entity
        left[base] -= 1
    return found


def _base(entity: str) -> str:
    return entity.partition(_SEPARATOR)[0] + ("basin" if "basin" in entity else "")
