"""The town: its map, its schedules, its people under way."""

import itertools

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.stss.dataset import shipped
from environments.stss.days.person import Person
from environments.stss.town.schedule import DAY, START, Commitment, DayPlan, Row, agenda, read_stamp, stamp
from environments.stss.town.world import TownMap

TOWN = shipped().town
ADA = TOWN.personas["Ada Birch"]


def small(*rows: str) -> TownMap:
    """A map of one room; `#` is a wall, `o` a chair, letters are rooms of their own."""
    cells = "".join(rows)
    names = {"#": (), ".": (), "o": ("House", "room", "chair")}
    addresses = [names.get(cell, ("House", f"room {cell}")) for cell in cells]
    return TownMap("town", len(rows[0]), len(rows), [cell == "#" for cell in cells], addresses)


def test_a_way_is_as_short_as_networkx_finds_it() -> None:
    world = TOWN.world
    graph = nx.grid_2d_graph(world.width, world.height)
    graph.remove_nodes_from([world.point(tile) for tile, wall in enumerate(world.walls) if wall])
    start = TOWN.positions["Leo Rossi"]
    lengths = nx.single_source_shortest_path_length(graph, world.point(start))
    for address in world.objects:
        nearest = min(lengths[world.point(tile)] for tile in world.tiles(address) if world.point(tile) in lengths)
        way = world.path(start, address)
        assert len(way) == world.distance(start, address) == nearest
        steps = [world.point(tile) for tile in (start, *way)]
        assert all(graph.has_edge(one, other) for one, other in itertools.pairwise(steps))


def test_a_thing_behind_walls_is_reached_as_near_as_its_room_can_be() -> None:
    world = small("aaaa.", "aaa##", "aaa#o")
    assert 14 not in world.reachable
    shut = small("ooo.a", "...##", "...#o")
    assert shut.path(5, "House:room:chair")[-1] in shut.tiles("House:room:chair")


def test_people_see_each_other_within_eight_tiles_of_one_room_only() -> None:
    world = small("aaaaaaaaaabb")
    assert world.sees(0, 8)
    assert not world.sees(0, 9)
    assert not world.sees(9, 10)
    assert not small("....").sees(0, 1)


def place(name: str) -> str | None:
    return TOWN.places.find(name)


def test_names_in_a_text_are_found_whole() -> None:
    found = TOWN.places.mentions("From Gull Bakery to the anchor inn, not to a Gullible Baker.")
    assert found == ["Gull Bakery", "Anchor Inn"]


rows = st.lists(
    st.tuples(st.integers(0, DAY - 1), st.integers(1, 300)).map(
        lambda span: Row(span[0], span[0] + span[1], "work", "Gull Bakery")
    ),
    max_size=6,
)
promises = st.lists(
    st.tuples(st.integers(0, DAY - 1), st.integers(1, 200)).map(
        lambda span: Commitment(activity="tea", address="Anchor Inn", start=span[0], end=span[0] + span[1])
    ),
    max_size=3,
)


@given(st.integers(240, 720), st.integers(721, 1700), st.integers(0, 200), rows, promises)
def test_an_agenda_has_neither_gaps_nor_overlaps(
    wake: int, bed: int, late: int, planned: list[Row], promised: list[Commitment]
) -> None:
    blocks = agenda(0, DayPlan(wake, bed, tuple(planned)), late, promised, "home")
    assert blocks[0].start == 0
    assert blocks[-1].end >= DAY
    assert all(one.end == other.start for one, other in itertools.pairwise(blocks))
    if promised:
        last = promised[-1]
        held = [block for block in blocks if block.start <= last.start < block.end]
        assert held[0].activity == "tea"


def person(walk_s: int = 10) -> Person:
    return Person(ADA, TOWN.positions["Ada Birch"], TOWN.world, walk_s, START)


def lived(somebody: Person, until: int) -> dict[int, tuple[str, str, str]]:
    """What somebody does at each of its records: kind, activity, sector."""
    records: dict[int, tuple[str, str, str]] = {}
    while somebody.due < until:
        record = somebody.advance(somebody.due)
        if record is not None:
            records[record.t] = (record.kind, record.activity, record.sector)
    return records


def test_one_sets_off_in_time_for_a_commitment_and_at_the_start_of_a_row() -> None:
    somebody = person()
    somebody.live(DayPlan(START, 1320, (Row(600, 660, "reading", "Anchor Inn"),)), START)
    somebody.commit(Commitment(activity="tea", address="Gull Bakery", start=900, end=960), START)
    records = lived(somebody, 1000)
    assert records[600][:2] == ("walk", "reading")
    assert any(what == ("act", "reading", "Anchor Inn") for what in records.values())
    arrived = next(t for t, what in records.items() if what[0] == "act" and what[2] == "Gull Bakery")
    assert 890 <= arrived <= 900
    assert records[900] == ("act", "tea", "Gull Bakery")


@pytest.mark.parametrize("walk_s", [5, 10, 60])
def test_a_tile_takes_its_seconds(walk_s: int) -> None:
    somebody = person(walk_s)
    somebody.live(DayPlan(START, 1320, (Row(600, 900, "reading", "Anchor Inn"),)), START)
    lived(somebody, 600)
    steps = TOWN.world.distance(somebody.tile, TOWN.world.full("Anchor Inn"))
    arrived = next(t for t, what in lived(somebody, 900).items() if what == ("act", "reading", "Anchor Inn"))
    assert arrived - 600 == -(-steps * walk_s // 60)


def test_the_second_leg_of_an_errand_waits_until_it_can_be_reached() -> None:
    somebody = person(60)
    somebody.live(DayPlan(START, 1320, ()), START)
    first = Commitment(activity="buy rope", address="Tidewater Store", start=900, end=910)
    second = first.model_copy(
        update={"activity": "deliver rope", "address": "Ben's house", "start": 910, "end": 920, "after_previous": True}
    )
    somebody.commit(first, START)
    moved = somebody.commit(second, START)
    assert moved.start > 915
    done = lived(somebody, 1300)
    assert any(what[1:] == ("deliver rope", "Ben's house") and what[0] == "act" for what in done.values())


def test_a_bedtime_after_midnight_lasts_into_the_next_day() -> None:
    somebody = person()
    somebody.live(DayPlan(START, DAY + 120, ()), START)
    lived(somebody, DAY)
    somebody.live(DayPlan(DAY + 600, DAY + 1400, ()), DAY)
    records = lived(somebody, DAY + 700)
    assert records[DAY + 120][0] == "sleep"
    assert records[DAY + 600][0] == "act"


@given(st.integers(0, 2 * DAY - 1))
def test_a_stamp_is_read_back(minute: int) -> None:
    assert read_stamp(stamp(minute)) == minute


def test_the_midnight_after_the_two_days_is_of_the_third() -> None:
    assert stamp(2 * DAY) == "2023-02-15 00:00"
