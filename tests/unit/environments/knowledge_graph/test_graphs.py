"""Graphs that are embedded, and those that are made for a question."""

import threading
from pathlib import Path

import pyoxigraph
import pytest

from environments.knowledge_graph.dataset import QuestionEntry
from environments.knowledge_graph.environment import SAMPLES
from environments.knowledge_graph.graphs import EmbeddedGraph
from environments.knowledge_graph.ontology import load_ontology
from environments.knowledge_graph.programs import NAMESPACE
from environments.knowledge_graph.synthetic import Edge, distractors, graph
from proctor.environment import EnvironmentFault
from tests.pace import slowly

NAMES = "SELECT ?n FROM <urn:proctor:isles> WHERE { ?x <http://rdf.freebase.com/ns/type.object.name> ?n }"
QUADS = SAMPLES / "graph.nq"


async def column(path: Path, query: str = NAMES, max_rows: int = 1_000, limit_s: float = slowly(30)) -> tuple[str, ...]:
    graph = EmbeddedGraph(path, limit_s)
    async with graph.lifespan():
        return await graph.column(query, max_rows)


async def test_a_file_and_a_stores_folder_give_the_same(tmp_path: Path) -> None:
    store = pyoxigraph.Store(str(tmp_path))
    store.bulk_load(path=QUADS, format=pyoxigraph.RdfFormat.N_QUADS)
    store.flush()
    del store
    assert sorted(await column(tmp_path)) == sorted(await column(QUADS))


async def test_rows_are_cut_at_the_limit() -> None:
    assert len(await column(QUADS, max_rows=5)) == 5


async def test_a_query_that_takes_too_long_is_a_fault() -> None:
    slow = "SELECT (COUNT(*) AS ?n) WHERE { GRAPH ?g { ?a ?b ?c . ?d ?e ?f } }"
    with pytest.raises(EnvironmentFault, match=r"no result within 0\.001 s"):
        await column(QUADS, slow, limit_s=0.001)


async def test_a_query_that_is_none_is_a_fault() -> None:
    with pytest.raises(EnvironmentFault, match="the embedded graph: error at 1:1"):
        await column(QUADS, "nonsense")


@pytest.mark.parametrize("content", [None, "<urn:a> <urn:b> .\n"])
async def test_a_graph_that_cannot_be_read_is_a_fault_naming_the_file(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "graph.nq"
    if content is not None:
        path.write_text(content)
    with pytest.raises(EnvironmentFault, match=r"graph\.nq: .*; give N-Quads"):
        await column(path)


async def test_the_lifespan_leaves_no_thread() -> None:
    await column(QUADS)
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("kg")]
    for thread in threads:
        thread.join(slowly(10))
    assert not any(thread.is_alive() for thread in threads)


async def test_distractors_add_relations_and_change_none(tmp_path: Path) -> None:
    one, town, two = (f"<{NAMESPACE}{name}>" for name in ("m.1", "isles.island.towns", "m.2"))
    (tmp_path / "graph.nq").write_text(f"{one} {town} {two} <urn:g> .\n")
    graph = EmbeddedGraph(tmp_path / "graph.nq", slowly(30), 2, load_ontology(SAMPLES / "ontology"))
    async with graph.lifespan():
        relations = await graph.column(f"SELECT ?p FROM <urn:g> WHERE {{ {one} ?p ?o }}", 100)
        assert sorted(relations) == [f"{NAMESPACE}isles.island.lighthouses", f"{NAMESPACE}isles.island.towns"]
        assert len(await graph.column(f"SELECT ?p FROM <urn:g> WHERE {{ {two} ?p ?o }}", 100)) == 2
        assert await graph.column(f"SELECT ?o FROM <urn:g> WHERE {{ {one} {town} ?o }}", 100) == (f"{NAMESPACE}m.2",)


ISLES = load_ontology(SAMPLES / "ontology")
EDGES = [
    Edge("m.1", "isles.island.towns", "m.2"),
    Edge("m.1", "isles.island.towns", "m.3"),
    Edge("m.2", "isles.town.makes", "m.4"),
]


def entry(*actions: str, answer: str = "m.9", name: str | None = None) -> QuestionEntry:
    return QuestionEntry(
        id="q",
        source="own",
        question="?",
        entities={'The "Bell"': "m.1"},
        actions=actions,
        answers=((answer, name),),
    )


def test_wrong_relations_have_the_domain_of_their_members_and_touch_none_of_the_graphs_own() -> None:
    added = distractors(EDGES, ISLES, 2, "seed")
    kinds = {"m.1": "isles.island", "m.2": "isles.town", "m.3": "isles.town", "m.4": "isles.cargo"}
    assert {edge.subject for edge in added} == set(kinds)
    assert all(ISLES.roles[edge.relation][0] == kinds[edge.subject] for edge in added)
    assert not {edge.relation for edge in added} & {edge.relation for edge in EDGES}
    assert len({edge.relation for edge in added if edge.subject == "m.3"}) == 2
    assert not {edge.object for edge in added} & set(kinds)


def test_wrong_relations_come_from_their_seed_alone() -> None:
    assert distractors(EDGES, ISLES, 1, "a") == distractors(reversed(EDGES), ISLES, 1, "a")
    drawn = {tuple(distractors(EDGES, ISLES, 1, str(seed))) for seed in range(20)}
    assert len(drawn) > 5


def test_no_more_wrong_relations_than_there_are() -> None:
    assert len({edge.relation for edge in distractors(EDGES, ISLES, 100, "a") if edge.subject == "m.1"}) == 1


def test_a_count_gets_as_many_members_as_it_counts() -> None:
    made = graph(
        entry("get_relations(m.1)", "get_neighbors(m.1,isles.island.towns)", "count(#0)", answer="3"), ISLES, 7
    )
    assert [line.split()[1][-6:-1] for line in made if "towns" in line] == ["towns"] * 3


def test_the_largest_has_others_below_it_in_the_attributes_own_datatype() -> None:
    actions = ("get_neighbors(m.1,isles.town.ships_calling)", "get_attributes(#0)", "argmax(#0,isles.ship.launched)")
    launched = [line for line in graph(entry(*actions), ISLES, 7) if "launched" in line]
    assert sorted(line.split()[2] for line in launched) == [
        f'"{year}-01-01"^^<http://www.w3.org/2001/XMLSchema#date>' for year in (1990, 2000, 2010)
    ]
    assert next(line for line in launched if "m.9>" in line).split()[2].startswith('"2010')


def test_each_side_of_an_intersection_has_a_member_that_the_other_lacks() -> None:
    actions = ("get_neighbors(m.1,isles.a)", "get_neighbors(m.2,isles.b)", "intersection(#0,#1)")
    made = [line.split() for line in graph(entry(*actions), ISLES, 7)]
    sides = [{parts[2] for parts in made if parts[1].endswith(f"isles.{side}>")} for side in "ab"]
    assert len(sides[0]) == len(sides[1]) == 2
    assert len(sides[0] & sides[1]) == 1


def test_names_are_escaped() -> None:
    made = graph(entry("get_neighbors(m.1,isles.a)", name="back\\slash\n"), ISLES, 7)
    assert [line.partition("name> ")[2] for line in made if "type.object.name" in line] == [
        '"The \\"Bell\\""@en',
        '"back\\\\slash\\n"@en',
    ]
