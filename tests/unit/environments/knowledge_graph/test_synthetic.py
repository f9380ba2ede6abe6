from environments.knowledge_graph.dataset import QuestionEntry
from environments.knowledge_graph.environment import SAMPLES
from environments.knowledge_graph.ontology import load_ontology
from environments.knowledge_graph.synthetic import Edge, distractors, graph

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
