"""What a stored trial tells of its two days: who met whom, what was agreed, who came."""

import asyncio
import base64
import json
import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from environments.stss.days.event_log import ActivityRecord, Agreed, EventLog, Talk
from environments.stss.days.transcript import DayTranscript, Picture, pack, unpack
from environments.stss.drawing.town_map import PEOPLE_APART, lane_x, moves
from environments.stss.drawing.two_days import TwoDays, two_days
from environments.stss.environment import Stss
from environments.stss.hearing.slots import SpokenLine
from environments.stss.town.clock import DAY, END, START
from environments.stss.town.schedule import Commitment
from proctor.session.play import PolicyAgent
from proctor.types import Action, Finish, FinishReason, Message

SAMPLE = "fernmouth_birthday"
INN = Commitment(activity="party", address="Inn", start=DAY + 600, end=DAY + 660, with_whom="Ada")
TOWN = Picture(width=10, height=4, walls="." * 40, sectors={"Inn": (0, 0, 3, 3)})


@pytest.fixture(scope="module")
def finish() -> Finish:
    environment = Stss()
    return asyncio.run(environment.play(SAMPLE, PolicyAgent(environment.reference(SAMPLE))))


def at(t: int, who: str, sector: str = "Inn", activity: str = "party", kind: str = "act") -> ActivityRecord:
    assert kind in ("act", "walk")
    return ActivityRecord(
        t, who, 0, sector, "hall", activity, f"town:{sector}:hall", "act" if kind == "act" else "walk"
    )


def told(
    *records: ActivityRecord, agreed: tuple[Agreed, ...], hits: tuple[tuple[str, int, int, int], ...] = ()
) -> TwoDays:
    """The story of a trial with a talk of Ada and Ben at 400."""
    lines = (SpokenLine("Ada", "Come to my party!"), SpokenLine("Ben", "Gladly."))
    log = EventLog(
        (at(START, "Ada"), at(START, "Ben"), *records), (Talk(400, 2, ("Ada", "Ben"), lines, (7, 0)),), agreed
    )
    detail = {"evidence": pack(DayTranscript(log, TOWN, hits)), "performer": "Ada", "level": "action"}
    return two_days(Finish(reason=FinishReason.COMPLETED, score=0.5, detail=detail))


def test_who_agreed_and_came_is_told_with_the_time() -> None:
    shown = told(agreed=(Agreed(400, "Ben", INN),), hits=(("Ben", 0, DAY + 600, DAY + 660),))
    (agreement,) = shown.moments[0].agreed
    assert (agreement.who, agreement.partner, agreement.came, agreement.counts) == ("Ben", "Ada", DAY + 600, True)
    assert agreement.otherwise == ""
    (appointment,) = shown.appointments
    assert appointment.agreed == (agreement,)
    assert [(each.who, each.came) for each in appointment.others] == [("Ada", DAY + 600)]


def test_who_stayed_away_is_told_with_what_it_did_instead() -> None:
    away = at(DAY, "Ben", "Quay", "carving"), at(DAY, "Ada", "Quay", "fishing")
    shown = told(*away, agreed=(Agreed(400, "Ben", INN),))
    (agreement,) = shown.moments[0].agreed
    assert (agreement.came, agreement.instead, agreement.counts) == (None, "carving, Quay, hall", False)
    (performer,) = shown.appointments[0].others
    assert (performer.came, performer.instead) == (None, "fishing, Quay, hall")


def test_an_agreement_that_the_two_noted_differently_is_told_apart() -> None:
    later = INN.model_copy(update={"start": DAY + 720, "end": DAY + 780, "with_whom": ""})
    shown = told(agreed=(Agreed(400, "Ben", INN), Agreed(400, "Ada", later)))
    ben, ada = shown.moments[0].agreed
    assert ben.otherwise == "party, Inn, 2023-02-14 12:00 to 13:00"
    assert ada.otherwise == "party, Inn, 2023-02-14 10:00 to 11:00"
    alike = INN.model_copy(update={"activity": "our party", "with_whom": ""})
    same = told(agreed=(Agreed(400, "Ben", INN), Agreed(400, "Ada", alike)))
    assert [each.otherwise for each in same.moments[0].agreed] == ["", ""]


def test_what_the_performer_alone_noted_was_misheard() -> None:
    (agreement,) = told(agreed=(Agreed(400, "Ada", INN),)).moments[0].agreed
    assert agreement.otherwise == "nothing"


def test_who_comes_unasked_is_told_and_passing_by_is_no_coming() -> None:
    passing = at(DAY + 590, "Ada", kind="walk"), at(DAY + 700, "Ada", "Quay")
    guest = at(DAY + 600, "Cleo")
    hits = (("Cleo", 0, DAY + 600, DAY + 660),)
    shown = told(*passing, guest, agreed=(Agreed(400, "Ben", INN),), hits=hits)
    assert [(each.who, each.came) for each in shown.appointments[0].others] == [("Ada", None), ("Cleo", DAY + 600)]


def test_a_walk_is_one_stay_and_stays_leave_no_gap(finish: Finish) -> None:
    shown = two_days(finish)
    for name in shown.people:
        stays = shown.stays[name]
        assert (stays[0].start, stays[-1].end) == (START, END)
        assert all(one.end == other.start for one, other in pairwise(stays))
        assert all(one[2:] != other[2:] for one, other in pairwise(stays))


def test_the_story_of_a_played_trial_is_that_of_its_score(finish: Finish) -> None:
    shown = two_days(finish)
    assert shown.people[0] == shown.performer == "Ada Birch"
    guests = [each for each in shown.appointments[0].agreed if each.who != shown.performer]
    assert len(guests) == finish.metrics["commitments_made"]
    assert sum(each.came is not None for each in guests) == finish.metrics["commitments_kept"]
    assert len([talk for talk in shown.moments if shown.performer in talk.people]) >= finish.metrics["partners_met"]


def test_a_line_of_the_agent_names_the_turn_that_said_it(finish: Finish) -> None:
    environment = Stss()
    seen: list[str] = []
    reference = environment.reference(SAMPLE)

    def noted(conversation: str, messages: Sequence[Message]) -> Action:
        action = reference(conversation, messages)
        seen.append(action.content)
        return action

    played = asyncio.run(environment.play(SAMPLE, PolicyAgent(noted)))
    mine = [
        line for talk in two_days(played).moments for line in talk.lines if line.speaker == "Ada Birch" and line.turn
    ]
    assert len(mine) >= finish.metrics["partners_met"]
    assert all(json.loads(seen[line.turn - 1])["utterance"] == line.text for line in mine)


def test_a_run_from_before_turns_were_kept_is_told_without_them(finish: Finish) -> None:
    packed = json.loads(zlib.decompress(base64.b64decode(str(finish.detail["evidence"]))))
    packed["talks"] = [talk[:4] for talk in packed["talks"]]
    old = base64.b64encode(zlib.compress(json.dumps(packed).encode())).decode()
    shown = two_days(finish.model_copy(update={"detail": finish.detail | {"evidence": old}}))
    assert {line.turn for talk in shown.moments for line in talk.lines} == {0}


def test_nobody_covers_anybody_on_the_map(finish: Finish) -> None:
    ways = {
        name: [tuple(map(float, move.split(","))) for move in way.split()]
        for name, way in moves(two_days(finish)).items()
    }
    for minute in (START, 12 * 60, DAY + 19 * 60 + 15):
        spots = [[move[1:] for move in way if move[0] <= minute][-1] for way in ways.values()]
        for index, (x, y) in enumerate(spots):
            assert all(max(abs(x - a), abs(y - b)) >= PEOPLE_APART for a, b in spots[:index])


def test_lanes_leave_the_night_out_and_stay_in_order() -> None:
    places = [lane_x(minute) for minute in range(START, END)]
    assert places == sorted(places)
    assert lane_x(DAY + 3 * 60) == lane_x(DAY + 5 * 60)


Change = Callable[[DayTranscript], DayTranscript]


def _record(**fields: Any) -> Change:
    return lambda days: days._replace(
        event_log=days.event_log._replace(records=(days.event_log.records[0]._replace(**fields),))
    )


@pytest.mark.parametrize(
    "change",
    [
        _record(t=10 * DAY),
        _record(tile=-1),
        _record(tile=10**9),
        lambda days: days._replace(event_log=days.event_log._replace(records=days.event_log.records * 30)),
        lambda days: days._replace(event_log=days.event_log._replace(talks=days.event_log.talks * 100)),
        lambda days: days._replace(town=days.town.model_copy(update={"walls": "#"})),
        lambda days: days._replace(hits=[("Ada Birch", 0, -1, 5)]),
    ],
)
def test_days_that_no_simulation_makes_are_refused(finish: Finish, change: Change) -> None:
    evidence = pack(change(unpack(str(finish.detail["evidence"]))))
    with pytest.raises(ValueError, match="play it again"):
        two_days(finish.model_copy(update={"detail": finish.detail | {"evidence": evidence}}))


def test_a_small_text_that_unpacks_to_a_huge_one_is_refused(finish: Finish) -> None:
    bomb = base64.b64encode(zlib.compress(b"[" * 200_000_000, 9)).decode()
    with pytest.raises(ValueError, match="damaged"):
        two_days(finish.model_copy(update={"detail": finish.detail | {"evidence": bomb}}))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Finish.fault(FinishReason.TASK_ERROR, "broken"), "without a score"),
        (Finish(reason=FinishReason.COMPLETED, score=1.0, detail={"level": "language"}), "`level: action`"),
        (Finish(reason=FinishReason.COMPLETED, score=1.0, detail={}), "play it again"),
    ],
)
def test_a_trial_without_days_is_refused_with_what_to_do(given: Finish, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        two_days(given)
