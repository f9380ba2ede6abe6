"""The one form of an invitation: what is read, what is asked about, and that nothing is guessed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.stss.dataset import shipped
from environments.stss.invitation import ONLINE, FormContent, Leg, form_of, in_words, missing, read
from environments.stss.town.schedule import DAY

PLACES = shipped().town.places
INN, STORE = "Anchor Inn", "Tidewater Store"
PARTY = Leg("party", INN, 1, 19 * 60, 21 * 60)


def heard(text: str, today: int = 0) -> FormContent:
    return read(text, PLACES, today)


@pytest.mark.parametrize(
    ("text", "leg"),
    [
        ("Would you like to party at Anchor Inn on 2023-02-14 from 19:00 to 21:00?", PARTY),
        ("Hello Ben! would you like to party at the anchor inn on Tuesday from 7 pm to 9 pm? Please come.", PARTY),
        ("Would you like to party at Anchor Inn tomorrow at 19:00?", PARTY._replace(end=None)),
        ("Would you like to party online on Tuesday from noon to 13:00?", Leg("party", ONLINE, 1, 720, 780)),
        (
            "Would you like to look at stars on Tuesday from 21:00 to midnight?",
            Leg("look at stars", None, 1, 1260, DAY),
        ),
        ("Would you like to party at Anchor Inn?", Leg("party", INN)),
        (
            "Would you like to have a go at chess at Anchor Inn today from 7:30 pm?",
            Leg("have a go at chess", INN, 0, 1170),
        ),
        ("what: party; where: Anchor Inn; when: Tuesday 2023-02-14 19:00 to 21:00", PARTY),
        ("Sure. WHAT: party where: anchor inn, when: tomorrow from 7 p.m. to 9 p.m. See you!", PARTY),
        ("what: party\nwhere: Anchor Inn\nwhen: 2023-02-14 19:00 - 21:00", PARTY),
        ("when: 2023-02-14 22:30 to 00:30", Leg(None, None, 1, 1350, DAY + 30)),
        ("where: Anchor Inn. Please come!", Leg(None, INN)),
        ("when: today", Leg(None, None, 0)),
        ("when: 16:00 to 17:00", Leg(None, None, None, 960, 1020)),
        ("when: Wednesday 19:00", Leg(None, None, 2, 1140)),
        ("when: 2023-02-20 19:00", Leg(None, None, 2, 1140)),
    ],
)
def test_what_is_in_the_form_is_read(text: str, leg: Leg) -> None:
    assert heard(text)._replace(whole=False) == FormContent((leg,))


@pytest.mark.parametrize(
    "text",
    [
        "Let's party at Anchor Inn on Tuesday at 19:00!",
        "I would like to invite you to a party at Anchor Inn on 2023-02-14 at 19:00. Please come!",
        "What would you like to do tomorrow at 15:00?",
        "Wouldn't you like to party at Anchor Inn?",
        "You would like to party, I heard.",
        "Whatever: no.",
        "",
        "would you like to ?",
    ],
)
def test_free_words_are_nothing(text: str) -> None:
    assert heard(text)._replace(whole=False) == FormContent()


@pytest.mark.parametrize(
    ("text", "named", "lost"),
    [
        ("Would you like to swim at Harbour Green the day after tomorrow from 15:00?", "when", {"day", "start"}),
        ("Would you like to swim on next Tuesday from 15:00 to 16:00?", "when", {"day", "start"}),
        ("Would you like to dance at 7 at Anchor Inn on Tuesday from 19:00?", "", set()),
        ("Would you like to dance tomorrow at Anchor Inn from 19:00?", "what", {"activity"}),
        ("Would you like to swim at Harbour Green on Tuesday from 19:00 to ten?", "what", {"activity", "day", "start"}),
        ("when: Monday 2023-02-14 15:00", "when", {"day", "start"}),
        ("when: the day after tomorrow 15:00", "when", {"day", "start"}),
        ("when: in the evening", "when", {"day", "start"}),
        ("when: tomorrow 7 to 9", "when", {"day", "start"}),
        ("when: tomorrow 25:00", "from when", {"start"}),
        ("when: tomorrow 15:00 to 14:00", "from when", {"start"}),
        ("when: tomorrow 24:00", "from when", {"start"}),
        ("where: the moon", "where", {"place"}),
        ("what: a; what: b; what: c", "more than 2", set()),
    ],
)
def test_what_fits_only_in_part_is_named_and_left_out(text: str, named: str, lost: set[str]) -> None:
    found = heard(text)
    assert named in " ".join(found.unread)
    assert bool(found.unread) == bool(named)
    leg = found.legs[0] if found.legs else Leg()
    assert not {name for name in lost if getattr(leg, name) is not None}


def test_an_errand_has_two_legs_in_order() -> None:
    errand = "what: fetch bandages; where: Tidewater Store; when: tomorrow 15:00; what: bring them; where: Anchor Inn"
    first, second = Leg("fetch bandages", STORE, 1, 900), Leg("bring them", INN)
    assert heard(errand).legs == (first, second)
    assert not missing([first, second])
    assert missing([first, second._replace(place=None)]) == ("where",)
    assert missing([Leg("swim")]) == ("where", "when")


@pytest.mark.parametrize(
    "text", ["not: party", "Not: the party.", "We will not party after all.", "Sorry. We will not party!"]
)
def test_a_refusal_names_what_is_called_off(text: str) -> None:
    off = heard(text).off
    assert off is not None
    assert off.removeprefix("the ") == "party"
    assert heard("We will not be late for the party, will we?").off is None


LEGS = st.builds(
    Leg,
    st.sampled_from(["party", "chess club", "watching movies"]),
    st.sampled_from([INN, STORE, ONLINE, "Anchor Inn:taproom"]),
    st.sampled_from([0, 1]),
    st.integers(0, DAY - 1),
    st.none(),
).flatmap(lambda leg: st.integers(1, 300).map(lambda length: leg._replace(end=(leg.start or 0) + length)))


@given(LEGS)
def test_both_spellings_of_what_was_heard_are_read_as_the_same(leg: Leg) -> None:
    assert heard(form_of([leg])).legs == (leg,)
    assert heard(f"Would you like to {in_words([leg])}?").legs == (leg,)


@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text: str) -> None:
    for said in (text, f"what: {text}", f"when: {text}", f"where: {text}", f"Would you like to {text}?"):
        heard(said)
