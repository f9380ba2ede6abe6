"""Invitations and talks with people driven by rules: what is read and kept, and that nothing is silently wrong."""

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
from environments.stss.invitation import ONLINE, FormContent, Leg, SpokenLine, form_of, in_words, read
from environments.stss.reply import limited
from environments.stss.town.schedule import DAY, Commitment, stamp, time_text

TOWN = shipped().town
DEV = TOWN.personas["Dev Anand"]
HOME = TOWN.world.full(home_of(DEV))
DRIVER = RuleDriver(TOWN, 0.6, "seed")
PARTY = "what: party; where: Anchor Inn; when: tomorrow 19:00 to 20:30"
CHESS = "what: chess; where: Anchor Inn"
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


async def story(*said: str, commitments: tuple[Commitment, ...] = ()) -> dict[str, object]:
    """A talk as tables have it: answers, what is kept and which of it follows the one before, and the summary."""
    answers, kept, context = await talk(*said, commitments=commitments)
    follows = [each.after_previous for each in (await DRIVER.after_conversation(context)).commitments]
    return {"answers": answers, "kept": kept, "follows": follows, "summary": await DRIVER.summary(context)}


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


@pytest.mark.parametrize("when", ["08:00 to 10:00", "14:00 to 18:00", "16:55 to 17:30", "10:00 to 10:20"])
async def test_nobody_agrees_to_or_proposes_hours_of_its_work(when: str) -> None:
    persona = DEV.model_copy(update={"daily_plan_req": f"{DEV.name} works at Quay Workshop from 9 am to 5 pm"})
    context = Context(persona, 8 * 60, "Ada Birch", lines=(SpokenLine("Ada Birch", f"{CHESS}; when: tomorrow {when}"),))
    answer, _ = await DRIVER.reply(context)
    assert "I have to work from 09:00 to 17:00" in answer
    start, end = (int(clock[:2]) * 60 + int(clock[3:]) for clock in answer.split("`")[1].split()[2::2])
    assert end <= 9 * 60 or start >= 17 * 60


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


PLACES = shipped().town.places
INN, STORE = "Anchor Inn", "Tidewater Store"


def heard(text: str, today: int = 0) -> FormContent:
    return read(text, PLACES, today)


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
