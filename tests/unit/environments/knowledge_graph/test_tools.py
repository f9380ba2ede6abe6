"""Preconditions of the tools, on a small double of a graph."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from environments.knowledge_graph.environment import SAMPLES
from environments.knowledge_graph.graphs import Graph
from environments.knowledge_graph.ontology import Ontology, Vocabulary, load_ontology
from environments.knowledge_graph.programs import NAMESPACE
from environments.knowledge_graph.reply import ToolRequest
from environments.knowledge_graph.tools import Listing, Profile, ToolRefusal, ToolRules, Tools, Variable
from proctor.environment import EnvironmentFault

ONTOLOGY = Ontology(
    vocabulary=Vocabulary(relations={"a.ship.port", "a.ferry.port"}, attributes={"a.ship.length"}, classes=()),
    roles={
        "a.ship.alias": ("a.ship", "type.text"),
        "type.object.name": ("type.object", "type.text"),
        "a.ship.length": ("a.ship", "type.float"),
        "a.ship.port": ("a.ship", "a.town"),
        "a.ferry.port": ("a.ferry", "a.ferry_port"),
    },
    parents={"a.ferry_port": frozenset({"a.town"})},
    inverses={},
    lines={},
)


class Told(Graph):
    """Answers every query with the same names, and keeps the queries."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.queries: list[str] = []

    async def column(self, query: str, max_rows: int) -> tuple[str, ...]:
        self.queries.append(query)
        if "down" in self.names:
            raise EnvironmentFault("down")
        return tuple(NAMESPACE + name for name in self.names)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        yield


def tools(graph: Graph, profile: Profile = "strict", ontology: Ontology = ONTOLOGY) -> Tools:
    return Tools({"Wren": "m.1"}, graph, None, ToolRules(profile, ontology, 100, None))


async def run(on: Tools, function: str, *arguments: str) -> Variable | Listing | ToolRefusal:
    return await on.run(ToolRequest(function, function, arguments))


async def two_variables(profile: Profile) -> Tools:
    made = tools(Told("a.ferry.port", "a.ship.port", "a.ship.length"), profile)
    await run(made, "get_relations", "Wren")
    await run(made, "get_neighbors", "Wren", "a.ship.port")
    await run(made, "get_neighbors", "m.1", "a.ferry.port")
    return made


@pytest.mark.parametrize(
    ("profile", "listed"),
    [("compat", ("a.ferry.port", "a.ship.port")), ("strict", ("a.ferry.port", "a.ship.alias", "a.ship.port"))],
)
async def test_relations_are_sorted_and_those_of_the_roles_are_listed_in_strict_only(
    profile: Profile, listed: tuple[str, ...]
) -> None:
    graph = Told("a.ship.port", "type.object.name", "a.ferry.port", "a.ship.length", "a.ship.alias")
    made = tools(graph, profile)
    assert await run(made, "get_relations", "Wren") == Listing(listed)
    followed = await run(made, "get_neighbors", "Wren", "a.ship.alias")
    assert isinstance(followed, Variable if profile == "strict" else ToolRefusal)
    assert f"<{NAMESPACE}m.1>" in graph.queries[0]


@pytest.mark.parametrize("profile", ["strict", "compat"])
@pytest.mark.parametrize(
    "text", ["m.1> ?o . } #", "m.1\n", "m.1 ?y", "m.1\\u003e", "SERVICE <http://127.0.0.1/>", "../m.1"]
)
async def test_what_an_agent_writes_is_part_of_no_query(text: str, profile: Profile) -> None:
    graph = Told("a.ship.port", "a.ship.length")
    made = tools(graph, profile)
    await run(made, "get_relations", "Wren")
    await run(made, "get_neighbors", "Wren", "a.ship.port")
    await run(made, "get_attributes", "#0")
    asked = len(graph.queries)
    for function, arguments in [
        ("get_relations", (text,)),
        ("get_neighbors", (text, "a.ship.port")),
        ("get_neighbors", ("Wren", text)),
        ("argmax", ("#0", text)),
        (text, ("#0",)),
    ]:
        assert isinstance(await run(made, function, *arguments), ToolRefusal)
    assert len(graph.queries) == asked


async def test_nothing_is_executed_when_a_variable_is_made() -> None:
    made = await two_variables("strict")
    assert isinstance(made._graph, Told)
    before = len(made._graph.queries)
    await run(made, "intersection", "#0", "#1")
    await run(made, "count", "#2")
    assert [variable.type for variable in made.variables] == ["a.town", "a.ferry_port", "a.ferry_port", "type.int"]
    assert len(made._graph.queries) == before


async def test_compat_compares_types_strictly() -> None:
    outcome = await run(await two_variables("compat"), "intersection", "#0", "#1")
    assert outcome == ToolRefusal("the variables are of different types, a.town and a.ferry_port")


@pytest.mark.parametrize(("profile", "listed"), [("compat", ("a.ship.length",)), ("strict", ("a.ship.length", "x.y"))])
async def test_strict_takes_attributes_from_the_data(profile: Profile, listed: tuple[str, ...]) -> None:
    made = await two_variables(profile)
    assert isinstance(made._graph, Told)
    made._graph.names = ("a.ship.length", "x.y")
    assert await run(made, "get_attributes", "#0") == Listing(listed)


async def test_an_extreme_needs_its_attribute_listed_for_this_very_variable() -> None:
    made = await two_variables("compat")
    await run(made, "get_attributes", "#0")
    assert isinstance(await run(made, "argmin", "#1", "a.ship.length"), ToolRefusal)
    outcome = await run(made, "argmin", "#0", "a.ship.length")
    assert isinstance(outcome, Variable)
    assert outcome.type == "a.town"


async def test_names_unfit_for_a_query_are_never_listed() -> None:
    made = await two_variables("strict")
    assert isinstance(made._graph, Told)
    made._graph.names = ("a> ?b ?c . <d", "x.y")
    assert await run(made, "get_attributes", "#0") == Listing(("x.y",))


async def test_a_variable_that_refuses_is_not_kept() -> None:
    made = tools(Told())
    assert isinstance(await run(made, "get_neighbors", "m.1", "a.ship.port"), ToolRefusal)
    assert made.variables == []


@pytest.mark.parametrize("argument", ["#-1", "#1", "#", "#١", "m.1 m.2", "M.1", "x.1", "", "type.int"])
async def test_what_is_no_variable_and_no_id_is_refused(argument: str) -> None:
    for profile in ("compat", "strict"):
        graph = Told()
        assert isinstance(await run(tools(graph, profile), "get_relations", argument), ToolRefusal)
        assert graph.queries == []


async def test_a_graph_that_fails_is_a_fault_and_no_refusal() -> None:
    with pytest.raises(EnvironmentFault):
        await run(tools(Told("down")), "get_relations", "Wren")


async def test_sessions_share_no_listing() -> None:
    graph = Told("isles.ship.captain")
    ontology = load_ontology(SAMPLES / "ontology")
    first, second = (tools(graph, ontology=ontology) for _ in range(2))
    await run(first, "get_relations", "m.1")
    assert isinstance(await run(first, "get_neighbors", "m.1", "isles.ship.captain"), Variable)
    assert isinstance(await run(second, "get_neighbors", "m.1", "isles.ship.captain"), ToolRefusal)


@pytest.mark.parametrize(
    "number", ["0", "1", "2", "01", "-1", "-3", " 1", "+1", "1_0", "\u0661", "x", "", "0" * 50, "9" * 5_000]
)
async def test_variables_are_counted_as_python_counts_as_published(number: str) -> None:
    made = await two_variables("compat")
    try:
        wanted = made.variables[int(number)]
    except (ValueError, IndexError):
        wanted = None
    assert made.variable(number) == wanted
    assert isinstance(await run(made, "count", f"#{number}"), ToolRefusal) is (wanted is None)


@pytest.mark.parametrize("written", ["variable #0", " #0 ", "'#0'", "`#0`", '"Variable #0"'])
async def test_a_variable_may_be_named_and_quoted_in_strict_alone(written: str) -> None:
    assert isinstance(await run(await two_variables("strict"), "count", written), Variable)
    assert isinstance(await run(await two_variables("compat"), "count", written), ToolRefusal)
