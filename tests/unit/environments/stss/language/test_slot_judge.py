"""The slot judge on whole talks as people hold them; no rule is made with the test half."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from environments.stss.dataset import ANY, SocialTask, SubGoal, shipped
from environments.stss.environment import Stss
from environments.stss.hearing.labelled import FOLDER
from environments.stss.hearing.slots import SpokenLine
from environments.stss.language.dialogue import DialogueSlots, dialogue
from environments.stss.language.judge import SlotJudge

TOWN = shipped().town
BASES = {task.category: task for task in map(Stss().task, Stss().samples())}
"""The last shipped task of each category."""
PERFORMER, GUEST = "Ada Birch", "Ben Osei"
FLOORS = {"development": 30, "practice": 150, "test": 27}
"""Fully agreed talks judged right. Measured: 30 of 30, 151 of 153, 27 of 30; issue 21 wants 27 of the test half."""
CEILINGS = {"development": 1, "practice": 1, "test": 2}
"""Talks that fail but count as agreed. Measured: 0 of 11, 0 of 58, 2 of 11."""
Labels = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def _each_talk_is_read_once() -> Iterator[None]:
    """Several tests have the same talks judged."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("environments.stss.language.judge.dialogue", lambda lines, *_: heard(tuple(lines)))
        yield


@cache
def heard(lines: tuple[SpokenLine, ...]) -> DialogueSlots:
    return dialogue(lines, TOWN.places, TOWN.owned)


def labelled(half: str) -> list[Labels]:
    return [json.loads(line) for line in (FOLDER / f"talks_{half}.jsonl").read_text("utf-8").splitlines()]


def task_of(talk: Labels) -> SocialTask:
    """A task whose goal is what was agreed; the shipped tasks are all of the second day."""
    base, slots, category = BASES[talk["category"]], talk["slots"] or {}, talk["category"]
    timed = slots.get("start") and (category in ("public", "online") or slots["day"] == "2023-02-13")
    placed = category in ("public", "companions", "help")
    goals = tuple(
        SubGoal(
            keyword=activity,
            location=(slots.get("place") if placed else None) or ANY,
            start_time=f"{slots['day']} {slots['start']}" if timed else ANY,
            duration_in_minutes=60,
        )
        for activity in slots.get("order") or [slots.get("activity", "nothing")]
    )
    change = {"performer": talk["performer"], "task": base.task.model_copy(update={"goal": goals})}
    return base.model_copy(update=change)


async def verdicts(talk: Labels, task: SocialTask) -> tuple[bool, ...]:
    judged = await SlotJudge(TOWN.places, TOWN.owned).verdicts(task, [SpokenLine(*said) for said in talk["talk"]])
    assert judged is not None
    return judged


def wanted(talk: Labels, count: int) -> tuple[bool, ...]:
    """All conditions, but for the hour where people agreed to none."""
    no_hour = talk["category"] in ("appointment", "companions") and talk["slots"]["start"] is None
    return tuple(not (no_hour and number == 1) for number in range(count))


async def right(half: str) -> int:
    """How many of the fully agreed talks of a half are judged as they were meant, in every condition."""
    count = 0
    for talk in labelled(half):
        if talk["agreed"]:
            judged = await verdicts(talk, task_of(talk))
            count += judged == wanted(talk, len(judged))
    return count


@pytest.mark.thorough
@pytest.mark.parametrize("half", FLOORS)
async def test_natural_talks_are_judged_as_they_were_meant(half: str) -> None:
    assert await right(half) >= FLOORS[half]


@pytest.mark.parametrize("half", CEILINGS)
def test_few_talks_that_fail_count_as_agreed(half: str) -> None:
    failed = [talk for talk in labelled(half) if not talk["agreed"]]
    said = [tuple(SpokenLine(*said) for said in talk["talk"]) for talk in failed]
    assert sum(heard(lines).agreed for lines in said) <= CEILINGS[half]


@pytest.mark.parametrize("half", ["development", "practice"])
async def test_no_talk_that_fails_has_an_hour_that_was_agreed(half: str) -> None:
    for talk in labelled(half):
        if not talk["agreed"] and talk["category"] in ("appointment", "companions"):
            assert not (await verdicts(talk, task_of(talk)))[1], talk["id"]


@pytest.mark.parametrize("half", ["development", "practice"])
async def test_a_goal_at_another_time_than_agreed_is_not_met(half: str) -> None:
    """So that the floors are not reached by judging everything as met."""
    for talk in labelled(half):
        if talk["agreed"] and talk["category"] in ("public", "online"):
            task = task_of(talk)
            (goal,) = task.task.goal
            day, clock = goal.start_time.split()
            for hours in (1, 2):
                later = f"{day} {(int(clock[:2]) + hours) % 24:02}:{clock[3:]}"
                moved = task.task.model_copy(update={"goal": (goal.model_copy(update={"start_time": later}),)})
                assert not all(await verdicts(talk, task.model_copy(update={"task": moved}))), (talk["id"], later)


@pytest.mark.parametrize(
    ("said", "start", "agreed"),
    [
        (["Chess tomorrow at three?", "At three I'm at work. Five?", "Five is fine."], 5, True),
        (["Chess tomorrow at three?", "Could we make it an hour later?", "Gladly."], 4, True),
        (["Chess tomorrow at three?", "Half an hour later?", "Half an hour later, agreed."], 3.5, True),
        (["Chess tomorrow at three?", "Half past, then.", "Good, see you."], 3.5, True),
        (["Chess tomorrow at three?", "Rather half past four.", "Yes. I'll call my sister at nine."], 4.5, True),
        (["Chess tomorrow at three?", "I'm sorry, leave me out this time.", "What a pity."], 3, False),
        (["Chess tomorrow at three?", "We'll see.", "Fine."], 3, False),
        (["Chess tomorrow at three?", "With pleasure!", "I can't wait."], 3, True),
        (["Chess tomorrow at three?", "I close at five, so ten past.", "Bring the board."], 5 + 1 / 6, True),
        (["Chess tomorrow at three?", "Three's when I sleep. Wait till half past?", "I'll let you snore."], 3.5, True),
        (["Chess tomorrow at three?", "At three she sails.", "Quarter to four, then.", "Good."], 3.75, True),
        (["Chess tomorrow at three?", "Three it is.", "I'll be reading until six before that."], 3, True),
        (["Chess tomorrow at three?", "Lovely, but I'm at sea till dark.", "What a pity."], 3, False),
        (["Chess tomorrow at three?", "Ask Dev, he likes losing.", "Okay."], 3, False),
        (["Chess tomorrow at nineteen hundred?", "I'll set up the board."], 7, True),
        (["Chess tomorrow at three? It was to be two.", "How many are we?", "Four at most.", "Good."], 3, True),
        (["Chess tomorrow at three?", "I'd like five.", "Half past four, I'll have tea by then.", "Fine."], 4.5, True),
        (["Chess tomorrow. It was to be two, so we start at three.", "I would not miss it."], 3, True),
    ],
)
def test_the_last_value_that_stands_is_what_was_agreed(said: list[str], start: float, agreed: bool) -> None:
    lines = [SpokenLine((PERFORMER, GUEST)[index % 2], text) for index, text in enumerate(said)]
    found = dialogue(lines, TOWN.places, TOWN.owned)
    assert (found.days[0], found.starts[0], found.agreed) == (1, round(start * 60), agreed)


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("Come tomorrow at noon, my counter is free.", "Gull Bakery"),
        ("I'll be at your bar at noon.", "Anchor Inn"),
        ("Cards, here, when you close.", "Anchor Inn"),
        ("The Anchor, at noon.", "Anchor Inn"),
        ("Tonight! Tidewater!", "Tidewater Store"),
    ],
)
def test_a_place_may_be_told_by_whose_it_is(line: str, place: str) -> None:
    found = dialogue([SpokenLine(PERFORMER, line), SpokenLine(GUEST, "Good.")], TOWN.places, TOWN.owned)
    assert place in [spot.address for spot in found.spots]
