"""Programs as SPARQL against an independent oracle: plain sets over a graph small enough to enumerate."""

from collections.abc import Iterable

import pyoxigraph
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from environments.knowledge_graph.programs import (
    NAMESPACE,
    Count,
    Entity,
    Extreme,
    Intersection,
    Join,
    Program,
    answers_query,
    intersection,
    plain_literals_query,
    relations_query,
)

GRAPH = "urn:test"
Triples = frozenset[tuple[str, str, str]]
IDS = ("m.a", "m.b", "m.c", "m.d")
RELATIONS = ("r.one", "r.two")
SIZE = "r.size"


def term(text: str) -> pyoxigraph.NamedNode | pyoxigraph.Literal:
    if text.isdigit():
        return pyoxigraph.Literal(int(text))
    return pyoxigraph.NamedNode(NAMESPACE + text)


def store(triples: Iterable[tuple[str, str, str]]) -> pyoxigraph.Store:
    made = pyoxigraph.Store()
    graph = pyoxigraph.NamedNode(GRAPH)
    for subject, relation, value in triples:
        nodes = pyoxigraph.NamedNode(NAMESPACE + subject), pyoxigraph.NamedNode(NAMESPACE + relation)
        made.add(pyoxigraph.Quad(*nodes, term(value), graph))
    return made


def ask(triples: pyoxigraph.Store, query: str) -> list[str]:
    solutions = triples.query(query)
    assert isinstance(solutions, pyoxigraph.QuerySolutions)
    values = (solution[0] for solution in solutions)
    return [
        value.value.removeprefix(NAMESPACE)
        for value in values
        if isinstance(value, (pyoxigraph.NamedNode, pyoxigraph.Literal))
    ]


def members(program: Program, triples: Triples) -> set[str]:
    """What a program denotes, by the definition."""
    match program:
        case Entity(name):
            return {name}
        case Join(relation, of):
            inner = members(of, triples)
            return {value for subject, link, value in triples if subject in inner and link == relation}
        case Intersection(parts):
            return set.intersection(*(members(part, triples) for part in parts))
        case Count(of):
            return {str(len(members(of, triples)))}
        case Extreme(order, attribute, of):
            inner = members(of, triples)
            sizes = {
                (subject, int(value)) for subject, link, value in triples if subject in inner and link == attribute
            }
            best = (max if order == "MAX" else min)((size for _, size in sizes), default=None)
            return {subject for subject, size in sizes if size == best}


def ids(program: Program) -> set[str]:
    match program:
        case Entity(name):
            return {name}
        case Intersection(parts):
            return set().union(*map(ids, parts))
        case Join(_, of) | Count(of) | Extreme(_, _, of):
            return ids(of)


def joined(inner: st.SearchStrategy[Program]) -> st.SearchStrategy[Program]:
    return st.one_of(
        st.builds(Join, st.sampled_from(RELATIONS), inner),
        st.builds(intersection, inner, inner),
        st.builds(Extreme, st.sampled_from(["MAX", "MIN"]), st.just(SIZE), inner),
    )


LEAVES = st.builds(Join, st.sampled_from(RELATIONS), st.builds(Entity, st.sampled_from(IDS)))
PROGRAMS: st.SearchStrategy[Program] = st.recursive(LEAVES, joined, max_leaves=5)
EDGES = st.tuples(st.sampled_from(IDS), st.sampled_from(RELATIONS), st.sampled_from(IDS))
SIZES = st.tuples(st.sampled_from(IDS), st.just(SIZE), st.sampled_from(["1", "2", "3"]))
GRAPHS = st.frozensets(st.one_of(EDGES, SIZES), max_size=16)


@pytest.mark.thorough
@settings(max_examples=300)
@given(PROGRAMS, GRAPHS)
def test_answers_are_the_members_without_the_programs_ids(program: Program, triples: Triples) -> None:
    answers = ask(store(triples), answers_query(program, GRAPH))
    assert len(answers) == len(set(answers))
    assert set(answers) == members(program, triples) - ids(program)


@settings(max_examples=200)
@given(PROGRAMS, GRAPHS)
def test_counts_are_of_distinct_members_without_the_programs_ids(program: Program, triples: Triples) -> None:
    assert ask(store(triples), answers_query(Count(program), GRAPH)) == [
        str(len(members(program, triples) - ids(program)))
    ]


@settings(max_examples=200)
@given(PROGRAMS, GRAPHS)
def test_relations_are_those_of_the_members(program: Program, triples: Triples) -> None:
    inner = members(program, triples)
    made = store(triples)
    assert set(ask(made, relations_query(program, GRAPH))) == {link for one, link, _ in triples if one in inner}
    assert set(ask(made, plain_literals_query(program, GRAPH))) == {
        link for one, link, value in triples if one in inner and value.isdigit()
    }


def test_counts_within_programs_are_numbers_like_others() -> None:
    one, two = Join("r.one", Entity("m.a")), Join("r.two", Entity("m.a"))
    triples = store([("m.a", "r.one", "m.b"), ("m.a", "r.two", "m.c")])
    assert ask(triples, answers_query(intersection(Count(one), Count(two)), GRAPH)) == ["1"]
    assert ask(triples, answers_query(Count(Count(one)), GRAPH)) == ["1"]
    assert ask(triples, relations_query(Count(one), GRAPH)) == []


def test_literals_in_other_languages_are_left_out() -> None:
    made = store([])
    graph, node = pyoxigraph.NamedNode(GRAPH), pyoxigraph.NamedNode(NAMESPACE + "m.a")
    for text, language in (("Guard", "en"), ("Guardia", "en-GB"), ("Wache", "de"), ("plain", None)):
        literal = pyoxigraph.Literal(text, language=language)
        made.add(pyoxigraph.Quad(node, pyoxigraph.NamedNode(NAMESPACE + "r.one"), literal, graph))
    answers = ask(made, answers_query(Join("r.one", Entity("m.a")), GRAPH))
    assert sorted(answers) == ["Guard", "Guardia", "plain"]


def test_only_the_named_graph_is_asked_and_none_is_the_default_graph() -> None:
    made = store([("m.a", "r.one", "m.b")])
    program = Join("r.one", Entity("m.a"))
    assert ask(made, answers_query(program, GRAPH)) == ["m.b"]
    assert ask(made, answers_query(program, "urn:other")) == []
    assert ask(made, answers_query(program, None)) == []


def test_intersections_over_and_over_stay_small() -> None:
    one, two = Join("r.one", Entity("m.a")), Join("r.two", Entity("m.a"))
    program = intersection(one, two)
    for _ in range(40):
        program = intersection(program, intersection(two, program))
    assert program == Intersection((one, two))
    assert intersection(one, one) == one


@pytest.mark.parametrize("text", ["m.1> ?p ?o . #", "", "m.1 m.2", "m.", ".m", "m.é", "m.1\n", "a:b", "<a>", 'a"'])
def test_no_text_that_is_not_a_plain_name_gets_into_a_query(text: str) -> None:
    for make in (
        lambda: Entity(text),
        lambda: Join(text, Entity("m.a")),
        lambda: Extreme("MAX", text, Entity("m.a")),
    ):
        with pytest.raises(ValueError, match="is no name"):
            make()
