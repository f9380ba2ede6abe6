import threading
from pathlib import Path

import pyoxigraph
import pytest

from environments.knowledge_graph.environment import SAMPLES
from environments.knowledge_graph.graphs import EmbeddedGraph
from environments.knowledge_graph.ontology import load_ontology
from environments.knowledge_graph.programs import NAMESPACE
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
