"""Queries find what trying out all values finds."""

import itertools
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.alfworld.engine.facts import Facts
from environments.alfworld.engine.formula import And, Atom, Equal, Exists, Formula, Not, Or, variables
from environments.alfworld.engine.query import Compiler
from environments.alfworld.engine.s_expressions import GameError

OBJECTS: Mapping[str, Sequence[str]] = {"thing": ("a", "b", "c"), "place": ("x", "y"), "void": ()}
SIGNATURES = {"in": ("thing", "place"), "near": ("place", "place"), "red": ("thing",)}
TYPES = {"?t": "thing", "?u": "thing", "?p": "place", "?q": "place"}
FACTS = [("in", *pair) for pair in itertools.product(OBJECTS["thing"], OBJECTS["place"])] + [
    ("near", *pair) for pair in itertools.product(OBJECTS["place"], repeat=2)
]
FACTS += [("red", each) for each in OBJECTS["thing"]]

things, places = st.sampled_from(["?t", "?u", "a"]), st.sampled_from(["?p", "?q", "x"])
atoms: st.SearchStrategy[Formula] = st.one_of(
    st.builds(lambda t, p: Atom("in", (t, p)), things, places),
    st.builds(lambda p, q: Atom("near", (p, q)), places, places),
    st.builds(lambda t: Atom("red", (t,)), things),
    st.builds(Equal, things, things),
)


def larger(parts: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    several = st.lists(parts, max_size=3).map(tuple)
    bound = st.sampled_from([(("?t", "thing"),), (("?p", "place"), ("?u", "thing")), (("?p", "void"),)])
    return st.one_of(
        st.builds(And, several), st.builds(Or, several), st.builds(Not, parts), st.builds(Exists, bound, parts)
    )


formulas = st.recursive(atoms, larger, max_leaves=6)


def holds(formula: Formula, facts: set[tuple[str, ...]], values: Mapping[str, str]) -> bool:
    """The meaning of a formula, by trying out everything."""
    match formula:
        case Atom(predicate, arguments):
            return (predicate, *(values.get(each, each) for each in arguments)) in facts
        case Equal(left, right):
            return values.get(left, left) == values.get(right, right)
        case Not(part):
            return not holds(part, facts, values)
        case And(parts):
            return all(holds(part, facts, values) for part in parts)
        case Or(parts):
            return any(holds(part, facts, values) for part in parts)
        case Exists(bound, part):
            names = [name for name, _ in bound]
            choices = itertools.product(*(OBJECTS[kind] for _, kind in bound))
            return any(holds(part, facts, {**values, **dict(zip(names, each, strict=True))}) for each in choices)


@given(formulas, st.sets(st.sampled_from(FACTS)), st.sets(st.sampled_from(sorted(TYPES))))
def test_a_query_answers_what_trying_out_all_values_answers(
    formula: Formula, known: set[tuple[str, ...]], bound: set[str]
) -> None:
    facts = Facts(sorted(known))
    types = {name: kind for name, kind in TYPES.items() if name in variables(formula) | bound}
    given_names = [name for name in types if name in bound]
    given_values = [OBJECTS[types[name]][0] for name in given_names]
    query = Compiler(SIGNATURES, OBJECTS, facts).query(formula, types, given_names)
    fixed = dict(zip(given_names, given_values, strict=True))
    choices = itertools.product(*((fixed[name],) if name in fixed else OBJECTS[kind] for name, kind in types.items()))
    expected = {each for each in choices if holds(formula, known, dict(zip(types, each, strict=True)))}
    assert set(query.ask(facts, given_values)) == expected


def test_facts_that_change_change_the_answers_of_a_query_that_is_there() -> None:
    facts = Facts([("red", "a")])
    query = Compiler(SIGNATURES, OBJECTS, facts).query(Atom("red", ("?t",)), {"?t": "thing"})
    facts.add("red", ("b",))
    facts.delete("red", ("a",))
    assert set(query.ask(facts)) == {("b",)}
    assert facts.holds("not_red", ("a",))
    facts.add("red", ("a",))
    assert not facts.holds("not_red", ("a",))


def test_a_copy_of_facts_changes_apart_from_them() -> None:
    facts = Facts([("red", "a")])
    copy = facts.copy()
    copy.delete("red", ("a",))
    assert (facts.holds("red", ("a",)), copy.holds("red", ("a",))) == (True, False)
    assert (len(facts.having("red", 0, "a")), len(copy.having("red", 0, "a"))) == (1, 0)


def test_a_variable_of_another_type_or_of_none_is_an_error() -> None:
    compiler = Compiler(SIGNATURES, OBJECTS, Facts([]))
    with pytest.raises(GameError, match="must be of the type thing"):
        compiler.query(Atom("red", ("?p",)), {"?p": "place"})
    with pytest.raises(GameError, match=r"\?z is declared nowhere"):
        compiler.query(Atom("red", ("?z",)), {})
