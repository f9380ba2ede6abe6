"""Talks with people driven by rules: what they answer, what they keep, and that nothing is silently wrong."""

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.stss.characters.driver import Context
from environments.stss.characters.rule_driver import RuleDriver
from environments.stss.dataset import home_of, shipped
from environments.stss.invitation import FORM, SpokenLine
from environments.stss.reply import limited
from environments.stss.town.schedule import DAY, Commitment, stamp, time_text

TOWN = shipped().town
DEV = TOWN.personas["Dev Anand"]
HOME = TOWN.world.full(home_of(DEV))
DRIVER = RuleDriver(TOWN, 0.6, "seed")
LUNCH = Commitment(activity="lunch", address="Anchor Inn", start=DAY + 12 * 60, end=DAY + 13 * 60)
PARTY = "what: party; where: Anchor Inn; when: tomorrow 19:00 to 20:30"
CHESS = "what: chess; where: Anchor Inn"
AGREED = "party, Anchor Inn, 2023-02-14 19:00-20:30"


TEXTS = [json.loads(line) for line in Path(__file__).with_name("form_texts.jsonl").read_text().splitlines()]
"""648 talks by a hand that has not seen the reader: name, what Ada says, and what Dev may be committed to after it."""
ASKED = {
    *("activity_sunday_roast_sentence", "activity_tuesday_club_sentence", "activity_clock_inside_sentence"),
    *("activity_tomorrow_inside_sentence", "activity_tuesday_on_monday"),
}
"""Talks in which an activity holds a day or a time: it is asked about."""


async def talk(*said: str, commitments: tuple[Commitment, ...] = ()) -> tuple[list[str], list[str], Context]:
    """Dev's answers to Ada, what he keeps, and the talk."""
    context = Context(DEV, 9 * 60, "Ada Birch", doing="idling", place="Anchor Inn", commitments=commitments)
    answers: list[str] = []
    for text in said:
        context = context._replace(lines=(*context.lines, SpokenLine("Ada Birch", text)))
        answer, end = await DRIVER.reply(context)
        answers.append(f"{answer} (leaves)" if end else answer)
        context = context._replace(lines=(*context.lines, SpokenLine(DEV.name, answer)))
        if end:
            break
    kept = (await DRIVER.after_conversation(context)).commitments
    place = {HOME: "home"}
    told = [
        f"{each.activity}, {place.get(each.address, each.address)}, {stamp(each.start)}-{time_text(each.end)}"
        for each in kept
    ]
    return answers, told, context


@pytest.mark.parametrize("text", TEXTS, ids=[text["name"] for text in TEXTS])
async def test_what_is_kept_is_exactly_what_was_said_and_all_else_is_asked_about(text: dict[str, Any]) -> None:
    _, kept, _ = await talk(*map(limited, text["said"]))
    found = [one.replace(", home, ", ", online, ").lower() for one in kept]
    wanted = [
        [f"{activity}, {place}, {start}-{end}".replace("’", "'").lower() for activity, place, start, end in allowed]
        for allowed in (text["allowed"] if text["name"] not in ASKED else [[]])
    ]
    assert [_sector(one) for one in found] in [[_sector(one) for one in each] for each in wanted]


def _sector(told: str) -> str:
    """What somebody is committed to, with the place's sector."""
    activity, place, when = told.rsplit(", ", 2)
    return f"{activity}, {place.partition(':')[0]}, {when}"


async def test_what_is_agreed_is_read_back_whole_and_kept() -> None:
    answers, kept, context = await talk(PARTY)
    assert answers == ["Yes, gladly: party at Anchor Inn on 2023-02-14 from 19:00 to 20:30. I will be there."]
    assert kept == [AGREED]
    assert await DRIVER.summary(context) == (
        "Ada Birch asked me: what: party; where: Anchor Inn; when: 2023-02-14 19:00 to 20:30. I agreed."
    )


@pytest.mark.parametrize("said", ["Come to my party tomorrow at seven, at the inn!", "Hello!", "Sing, sing!", "yes"])
async def test_free_words_are_answered_by_the_form_and_agree_to_nothing(said: str) -> None:
    answers, kept, _ = await talk(said)
    assert FORM in answers[0]
    assert kept == []


@pytest.mark.parametrize(
    ("before", "how"),
    [
        ([], FORM),
        (["what: party"], "where: PLACE; when: DAY START to END"),
        ([PARTY.replace("19:00 to 20:30", "03:00")], "If that suits you, say `when: 2023-02-14 "),
        ([PARTY.replace("tomorrow", "Friday")], FORM),
        ([PARTY, "not: party"], FORM),
        ([PARTY], f"on 2023-02-14 from 19:00 to 20:30. If that changes, say it as `{FORM}`"),
        ([PARTY, "when: tomorrow 03:00"], "If that suits you, say `when: 2023-02-14 "),
    ],
)
async def test_free_words_are_answered_twice_by_what_to_say_and_then_it_leaves(before: list[str], how: str) -> None:
    answers, kept, _ = await talk(*before, *["OK, that works for me."] * 5)
    told = answers[len(before) :]
    assert [answer.endswith("(leaves)") for answer in told] == [False, False, True]
    assert how in told[0]
    assert how in told[1]
    assert kept == ([AGREED] if PARTY in before and "not: party" not in before else [])


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Would you like to party at Anchor Inn?", "On which day, and from when to when? Please say it as `when: "),
        ("what: party; when: tomorrow 19:00", "Where? Please say it as `where: PLACE`."),
        ("when: tomorrow 19:00", "What would it be, and where? Please say it as `what: ACTIVITY; where: PLACE`."),
        ("what: party; where: Anchor Inn; when: tomorrow", "From when"),
        ("what: party; where: the moon; when: tomorrow 19:00", "I have not understood where it is (the moon)."),
    ],
)
async def test_what_is_missing_is_asked_for_in_the_form(said: str, asked: str) -> None:
    answers, kept, _ = await talk(said)
    assert asked.lower() in answers[0].lower()
    assert kept == []


async def test_the_parts_of_an_invitation_may_come_one_after_the_other() -> None:
    answers, kept, _ = await talk("when: tomorrow 19:00 to 20:30", "what: party", "where: Anchor Inn")
    assert answers[0].startswith("On 2023-02-14 from 19:00 to 20:30? ")
    assert kept == [AGREED]


async def test_without_an_end_it_is_an_hour_and_online_is_at_home() -> None:
    _, kept, _ = await talk("what: quiz; where: online; when: 2023-02-14 8 pm")
    assert kept == ["quiz, home, 2023-02-14 20:00-21:00"]


@pytest.mark.parametrize(
    ("when", "why"),
    [
        ("2023-02-13 08:00", "that time is over"),
        ("tomorrow 03:00", "I am asleep then"),
        ("tomorrow 12:30 to 14:00", "I have promised somebody: lunch, 12:00"),
    ],
)
async def test_what_stands_against_it_is_told_with_the_nearest_free_time(when: str, why: str) -> None:
    answers, kept, _ = await talk(f"what: party; where: Anchor Inn; when: {when}", commitments=(LUNCH,))
    assert why in answers[0]
    assert "How about `when: 2023-02-1" in answers[0]
    assert kept == []
    proposed = answers[0].split("`")[1]
    _, kept, _ = await talk(f"what: party; where: Anchor Inn; when: {when}", proposed, commitments=(LUNCH,))
    assert len(kept) == 1
    assert proposed.split()[2] in kept[0]


@pytest.mark.parametrize("when", ["08:00 to 10:00", "14:00 to 18:00", "16:55 to 17:30", "10:00 to 10:20"])
async def test_nobody_agrees_to_or_proposes_hours_of_its_work(when: str) -> None:
    persona = DEV.model_copy(update={"daily_plan_req": f"{DEV.name} works at Quay Workshop from 9 am to 5 pm"})
    context = Context(persona, 8 * 60, "Ada Birch", lines=(SpokenLine("Ada Birch", f"{CHESS}; when: tomorrow {when}"),))
    answer, _ = await DRIVER.reply(context)
    assert "I have to work from 09:00 to 17:00" in answer
    start, end = (int(clock[:2]) * 60 + int(clock[3:]) for clock in answer.split("`")[1].split()[2::2])
    assert end <= 9 * 60 or start >= 17 * 60


async def test_a_day_after_the_two_is_declined() -> None:
    answers, kept, _ = await talk("what: party; where: Anchor Inn; when: Friday 19:00")
    assert "I can plan for today and tomorrow only" in answers[0]
    assert kept == []


async def test_a_change_of_what_was_agreed_takes_its_place() -> None:
    _, kept, _ = await talk(PARTY, "when: tomorrow 20:00 to 21:00")
    assert kept == ["party, Anchor Inn, 2023-02-14 20:00-21:00"]
    _, kept, _ = await talk(PARTY, "where: Harbour Green")
    assert kept == ["party, Harbour Green, 2023-02-14 19:00-20:30"]


async def test_a_change_that_is_not_understood_is_asked_about_and_the_agreement_stands() -> None:
    answers, kept, _ = await talk(PARTY, "when: a bit later")
    assert "I have not understood when it is (a bit later)." in answers[1]
    assert "party at Anchor Inn on 2023-02-14 from 19:00 to 20:30" in answers[1]
    assert kept == [AGREED]


@pytest.mark.parametrize(
    "off", ["not: party", "We will not party after all.", "We will not party", "Sorry, we will not party after all."]
)
async def test_what_is_called_off_is_not_kept(off: str) -> None:
    _, kept, _ = await talk(PARTY, off)
    assert kept == []
    _, kept, _ = await talk(PARTY, off, PARTY)
    assert kept == [AGREED]


async def test_one_thing_may_be_called_off_for_another() -> None:
    _, kept, _ = await talk(PARTY, "not: party; what: chess; where: Gull Bakery; when: tomorrow 10:00")
    assert kept == ["chess, Gull Bakery, 2023-02-14 10:00-11:00"]


async def test_a_change_that_is_not_possible_leaves_what_was_agreed() -> None:
    answers, kept, _ = await talk(PARTY, "when: tomorrow 03:00")
    assert "I am asleep then" in answers[1]
    assert "stays as agreed" in answers[1]
    assert kept == [AGREED]
    _, kept, _ = await talk(PARTY, "when: tomorrow 03:00", answers[1].split("`")[1])
    assert len(kept) == 1
    assert kept != [AGREED]


@pytest.mark.parametrize("off", ["not: the ball", "We will not dance.", "If it rains, we will not party."])
async def test_what_is_called_off_by_another_name_is_asked_about(off: str) -> None:
    answers, kept, context = await talk(PARTY, off)
    assert (await DRIVER.summary(context)).endswith("I agreed.")
    assert "Say it as `not: ACTIVITY`" in answers[1]
    assert kept == [AGREED]


async def test_two_things_in_one_talk_are_both_kept_or_one_is_in_the_way() -> None:
    tea = "what: tea; where: Gull Bakery; when: tomorrow 16:00"
    _, kept, _ = await talk(PARTY, tea)
    assert kept == [AGREED, "tea, Gull Bakery, 2023-02-14 16:00-17:00"]
    answers, kept, _ = await talk(PARTY, tea.replace("16:00", "19:30"))
    assert "I have promised somebody: party, 19:00" in answers[1]
    assert kept == [AGREED]
    _, kept, _ = await talk(PARTY, tea, "not: party")
    assert kept == ["tea, Gull Bakery, 2023-02-14 16:00-17:00"]


async def test_an_errand_is_two_commitments_in_order() -> None:
    errand = "what: fetch rope; where: Tidewater Store; when: tomorrow 15:00; what: bring rope; where: Quay Workshop"
    answers, kept, context = await talk(errand)
    assert kept == [
        "fetch rope, Tidewater Store, 2023-02-14 15:00-15:20",
        "bring rope, Quay Workshop, 2023-02-14 15:20-15:40",
    ]
    assert (
        "fetch rope at Tidewater Store on 2023-02-14 from 15:00 to 15:20, then bring rope at Quay Workshop"
        in answers[0]
    )
    second = (await DRIVER.after_conversation(context)).commitments[1]
    assert second.after_previous


async def test_a_talk_ends_after_eight_answers() -> None:
    answers, _, _ = await talk(*[PARTY, "when: tomorrow 20:00"] * 8)
    assert len(answers) == 8
    assert answers[-1].endswith("(leaves)")


PARTS = st.sampled_from(
    [
        *(f"what: {what}" for what in ("party", "chess", "a stroll")),
        *(f"where: {where}" for where in ("Anchor Inn", "online", "the moon", "Gull Bakery:shop")),
        *(
            f"when: {when}"
            for when in ("tomorrow 15:00", "today 9 pm to 11 pm", "noon", "Friday 10:00", "now", "03:00")
        ),
        *("not: party", "We will not chess.", "What a day!", "Hello.", PARTY, "yes", "tomorrow at 7?"),
    ]
)


@given(st.lists(st.lists(PARTS, min_size=1, max_size=4).map("; ".join), min_size=1, max_size=6))
def test_whatever_is_kept_was_read_back_in_the_last_answer_about_it(said: list[str]) -> None:
    answers, kept, _ = asyncio.run(talk(*said))
    for one in kept:
        activity, place, when = one.rsplit(", ", 2)
        times = when.replace("-", " to ", 3).split(" to ")[-2:]
        assert any(
            activity in answer and times[0][-5:] in answer and (place in answer or place == "home")
            for answer in answers
        )
    for one, other in itertools.combinations(kept, 2):
        assert one.rsplit(", ", 1)[1] != other.rsplit(", ", 1)[1]
