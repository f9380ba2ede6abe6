"""Finds the values of variables for which a formula holds: a formula becomes a chain of small searches."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from typing import TypeAlias

from environments.alfworld.engine.facts import Arguments, Facts
from environments.alfworld.engine.formula import And, Atom, Equal, Exists, Formula, Not, Or, Signatures, variables
from environments.alfworld.engine.s_expressions import GameError

Values = list[str]
"""The value of each variable, by its slot."""
Step: TypeAlias = Callable[[Facts, Values], Iterator[None]]
"""Binds its slots in place, and yields once for each solution."""
Scope: TypeAlias = Mapping[str, int]
"""The slot of each variable."""

_LATE = 1e6
"""The cost of a part that binds variables and is no atom: it comes after all atoms."""


class Query:
    """A compiled formula: finds the values of its variables for which it holds."""

    def __init__(self, compiler: "Compiler", formula: Formula, types: Mapping[str, str], bound: Sequence[str]) -> None:
        """`types` has the type of each variable to find, in order; `ask` is given the values of those in `bound`."""
        self._types = types
        self._bound = [list(types).index(name) for name in bound]
        self._slots: list[str] = list(types.values())
        scope = {name: slot for slot, name in enumerate(types)}
        self._step = _Compilation(compiler, self._slots).complete(formula, scope, set(bound), set(types))

    def ask(self, facts: Facts, given: Sequence[str] = ()) -> Iterator[Arguments]:
        """All solutions, each with a value for every variable; a solution may come twice."""
        values = [""] * len(self._slots)
        for slot, value in zip(self._bound, given, strict=True):
            values[slot] = value
        count = len(self._types)
        for _ in self._step(facts, values):
            yield tuple(values[:count])


class Compiler:
    """Compiles the queries of one game."""

    def __init__(self, signatures: Signatures, objects: Mapping[str, Sequence[str]], facts: Facts) -> None:
        """`objects` by type; `facts` are those at the start, whose numbers decide the order of searches."""
        self.signatures = signatures
        self.objects = objects
        self._facts = facts
        self._spreads: dict[Atom, tuple[int, list[str]]] = {}
        """What `_spread` has found."""

    def query(self, formula: Formula, types: Mapping[str, str], bound: Sequence[str] = ()) -> Query:
        """The formula as a query. Raises GameError where a variable has no type, or the wrong one."""
        return Query(self, formula, types, bound)

    def guess(self, atom: Atom, bound: Set[str]) -> float:
        """An estimate of how many facts match a pattern once the variables in `bound` have values."""
        count, unknown = self._spreads.get(atom) or self._spread(atom)
        free = sum([each not in bound for each in unknown])
        return math.pow(count, free / max(1, len(unknown)))

    def _spread(self, atom: Atom) -> tuple[int, list[str]]:
        """How many facts match a pattern by its constants, at most, and its variables, with repeats."""
        constants = [(at, each) for at, each in enumerate(atom.arguments) if not each.startswith("?")]
        counts = [len(self._facts.having(atom.predicate, at, each)) for at, each in constants]
        count = min(counts) if counts else len(self._facts.of(atom.predicate))
        self._spreads[atom] = count, [each for each in atom.arguments if each.startswith("?")]
        return self._spreads[atom]


class _Compilation:
    """The compilation of one query."""

    def __init__(self, compiler: Compiler, slots: list[str]) -> None:
        self._compiler = compiler
        self._slots = slots
        """The type of each slot; grows with each quantified variable."""

    def complete(self, formula: Formula, scope: Scope, bound: Set[str], wanted: Set[str]) -> Step:
        """A step that binds all wanted variables; one that is not in the formula gets every object of its type."""
        left = sorted(wanted - bound - variables(formula))
        return _chain([self._compile(formula, scope, bound), *(self._any_object(name, scope) for name in left)])

    def _compile(self, formula: Formula, scope: Scope, bound: Set[str]) -> Step:
        free = variables(formula) - bound
        match formula:
            case Atom(predicate, arguments):
                self._check_types(formula, scope)
                return _matching(predicate, [(scope.get(each), each, each in free) for each in arguments])
            case And(parts):
                return self._all_of(parts, scope, bound)
            case Or(parts):
                steps = [self.complete(part, scope, bound, bound | free) for part in parts]
                return _either(steps) if free else _once(_either(steps))
            case Exists(inner, part):
                return self._some(inner, part, scope, bound, not free)
            case Equal(left, right):
                same = _same(scope.get(left), left, scope.get(right), right)
                return _chain([*(self._any_object(name, scope) for name in sorted(free)), same])
            case Not(part):
                step = self._compile(part, scope, bound | free)
                return _chain([*(self._any_object(name, scope) for name in sorted(free)), _absent(step)])

    def _all_of(self, parts: Sequence[Formula], scope: Scope, bound: Set[str]) -> Step:
        steps, waiting = list[Step](), [(part, variables(part)) for part in parts]
        while waiting:
            cheapest = min(waiting, key=lambda each: self._cost(each[0], each[1], bound))
            waiting.remove(cheapest)
            steps.append(self._compile(cheapest[0], scope, bound))
            bound = bound | cheapest[1]
        return _chain(steps)

    def _cost(self, part: Formula, names: Set[str], bound: Set[str]) -> float:
        if names <= bound:
            return -1.0 if isinstance(part, Atom | Equal) else -0.5
        if isinstance(part, Atom):
            return self._compiler.guess(part, bound)
        return _LATE * (2 if isinstance(part, Not | Equal) else 1)

    def _some(self, inner: Sequence[tuple[str, str]], part: Formula, scope: Scope, bound: Set[str], once: bool) -> Step:
        if not all(self._compiler.objects.get(kind) for _, kind in inner):
            return _never
        own: dict[str, int] = {}
        for name, kind in inner:
            own[name] = len(self._slots)
            self._slots.append(kind)
        step = self._compile(part, {**scope, **own}, bound - own.keys())
        return _once(step) if once else step

    def _any_object(self, name: str, scope: Scope) -> Step:
        if name not in scope:
            raise GameError(f"the variable {name} is declared nowhere")
        slot = scope[name]
        return _choosing(slot, self._compiler.objects.get(self._slots[slot], ()))

    def _check_types(self, atom: Atom, scope: Scope) -> None:
        expected = self._compiler.signatures[atom.predicate.removeprefix("not_")]
        for argument, kind in zip(atom.arguments, expected, strict=True):
            if not argument.startswith("?"):
                continue
            if argument not in scope:
                raise GameError(f"{atom.predicate}: the variable {argument} is declared nowhere")
            if self._slots[scope[argument]] != kind:
                raise GameError(f"{atom.predicate}: {argument} must be of the type {kind}")


def _chain(steps: Sequence[Step]) -> Step:
    if not steps:
        return _always
    first, rest = steps[0], steps[1:]
    if not rest:
        return first
    then = _chain(rest)

    def run(facts: Facts, values: Values) -> Iterator[None]:
        for _ in first(facts, values):
            yield from then(facts, values)

    return run


def _always(facts: Facts, values: Values) -> Iterator[None]:
    yield


def _never(facts: Facts, values: Values) -> Iterator[None]:
    return iter(())


def _either(steps: Sequence[Step]) -> Step:
    def run(facts: Facts, values: Values) -> Iterator[None]:
        for step in steps:
            yield from step(facts, values)

    return run


def _once(step: Step) -> Step:
    def run(facts: Facts, values: Values) -> Iterator[None]:
        for _ in step(facts, values):
            yield
            return

    return run


def _absent(step: Step) -> Step:
    def run(facts: Facts, values: Values) -> Iterator[None]:
        if not any(True for _ in step(facts, values)):
            yield

    return run


def _same(left: int | None, left_name: str, right: int | None, right_name: str) -> Step:
    def run(facts: Facts, values: Values) -> Iterator[None]:
        if (left_name if left is None else values[left]) == (right_name if right is None else values[right]):
            yield

    return run


def _choosing(slot: int, objects: Sequence[str]) -> Step:
    def run(facts: Facts, values: Values) -> Iterator[None]:
        for each in objects:
            values[slot] = each
            yield

    return run


def _matching(predicate: str, terms: Sequence[tuple[int | None, str, bool]]) -> Step:
    """A step over the facts that match terms: (slot, or None for a constant; name; whether the step binds it)."""
    free = [(at, slot) for at, (slot, _, unbound) in enumerate(terms) if unbound and slot is not None]
    known = [(at, slot, name) for at, (slot, name, unbound) in enumerate(terms) if not unbound]
    if not free:
        return _checking(predicate, [(slot, name) for _, slot, name in known])
    slots = [slot for _, slot in free]
    repeated = [(at, slot) for at, slot in free if slots.count(slot) > 1]

    def run(facts: Facts, values: Values) -> Iterator[None]:
        given = [(at, name if slot is None else values[slot]) for at, slot, name in known]
        found: Collection[Arguments] = facts.having(predicate, *given[0]) if given else facts.of(predicate)
        others = given[1:]
        for arguments in found:
            for at, slot in free:
                values[slot] = arguments[at]
            if others and any(arguments[at] != value for at, value in others):
                continue
            if not repeated or all(arguments[at] == values[slot] for at, slot in repeated):
                yield

    return run


def _checking(predicate: str, terms: Sequence[tuple[int | None, str]]) -> Step:
    def run(facts: Facts, values: Values) -> Iterator[None]:
        if facts.holds(predicate, tuple(name if slot is None else values[slot] for slot, name in terms)):
            yield

    return run
