"""What a text names in passing, what of it belongs to the meeting, and what is asked about where that is unclear."""

import pytest

from environments.stss.hearing.asides import MOST, weighed
from environments.stss.hearing.read import read, read_in_doubt
from environments.stss.hearing.slots import Situation
from tests.unit.environments.stss.characters.talking import ADA, FINN, TOWN, answers

TEN = 10 * 60
INVITES = Situation(TOWN.places, TEN, ADA, FINN)


@pytest.mark.parametrize(
    ("text", "slot", "value"),
    [
        ("I've been up since four this morning. Come to the quiz at the inn tonight at eight.", "start", 20 * 60),
        ("We played darts on Sunday and I lost. Would you play again tomorrow at six in the evening?", "day", 1),
        ("I was at the bakery before work. Come to a fish supper at the inn tomorrow at six.", "place", "Anchor Inn"),
        ("Would you come to the quiz at the inn tonight at eight? Leo told me about it.", "people", frozenset()),
    ],
)
def test_what_is_named_in_passing_is_no_slot(text: str, slot: str, value: object) -> None:
    assert getattr(read(text, INVITES), slot) == value
    assert any(not each.belongs for each in weighed(text, INVITES))


@pytest.mark.parametrize(
    "text",
    [
        "wanna come to the green with me and kiri tomorrow at four in the afternoon?",
        "Would you come to Harbour Green with me and Ms Tane tomorrow at four in the afternoon?",
    ],
)
def test_people_are_known_without_capitals_and_by_title(text: str) -> None:
    assert read(text, INVITES).people == {"Kiri Tane"}


@pytest.mark.parametrize(
    ("text", "come"),
    [
        ("Supper at the inn tonight at six. Leo says he wouldn't miss it.", {"Leo Rossi"}),
        ("Supper at the inn tonight at six. Leo says he'd rather starve.", set()),
        ("Leo n I are playing darts at the inn tonight at nine, come along!", {"Leo Rossi"}),
    ],
)
def test_who_says_that_they_come_takes_part(text: str, come: set[str]) -> None:
    assert read(text, INVITES).people == come


async def test_an_unclear_day_and_place_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("environments.stss.hearing.asides.likelihood", lambda weights, clues: 0.5)
    text = "I invite you to a spelling bee at Harbour Green tomorrow at 16:00 to 17:30."
    assert read_in_doubt(text, INVITES).doubted >= {"day", "place"}
    asks, *_ = await answers(text)
    assert "2023" not in asks
    assert asks.endswith("Gladly, but where and on which day would that be?")
    assert read_in_doubt(text, INVITES, asked=("place", "day")).place == "Harbour Green"


def test_of_many_times_only_the_first_are_weighed() -> None:
    found = weighed("at 5 " * 100, INVITES)
    assert len(found) == 100
    assert all(0 < each.likelihood < 1 for each in found[:MOST])
    assert {each.likelihood for each in found[MOST:]} == {1.0}


def test_a_range_keeps_both_its_times() -> None:
    slots = read("Video call for snorers tomorrow, 6 pm to 6:20.", INVITES)
    assert (slots.start, slots.end) == (18 * 60, 18 * 60 + 20)
