"""What a page tells of a stored trial's two days: who met whom, what was agreed, who came; every text stays text."""

import asyncio
import base64
import json
import re
import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, cast

import pytest
from lxml import etree

from environments.stss.days.transcript import (
    ActivityRecord,
    Agreed,
    DayTranscript,
    EventLog,
    Picture,
    Talk,
    pack,
    unpack,
)
from environments.stss.drawing.page import drawing
from environments.stss.environment import Stss
from environments.stss.invitation import SpokenLine
from environments.stss.town.schedule import DAY, START, Commitment
from proctor.session.play import PolicyAgent
from proctor.types import Action, Finish, FinishReason, Message

SAMPLE = "fernmouth_birthday"
INN = Commitment(activity="party", address="Inn", start=DAY + 600, end=DAY + 660, with_whom="Ada")
PARTY = "party, Inn, 2023-02-14 10:00 to 11:00"
TOWN = Picture(width=10, height=4, walls="." * 40, sectors={"Inn": (0, 0, 3, 3)})


SCRIPT = "</script><script>alert(1)</script>\x1b[31m' onload=\""


class Shown:
    """A page as its reader sees it, which needs no JavaScript and loads nothing from elsewhere."""

    def __init__(self, finish: Finish, *links: Callable[[int], str]) -> None:
        self.body = drawing(finish, *links).body
        self._page = etree.fromstring(self.body, etree.HTMLParser())
        assert not self._all("//script | //style | //link | //img | //base")
        assert not self._all("//@src | //@style | //@*[starts-with(name(), 'on')]")

    @property
    def text(self) -> str:
        return " ".join(self._texts("/html"))

    @property
    def addresses(self) -> list[str]:
        return self._all("//@href")

    def _all(self, path: str) -> list[Any]:
        return cast(list[Any], self._page.xpath(path))

    def _texts(self, path: str) -> list[str]:
        return [" ".join("".join(found.itertext()).split()) for found in self._all(path)]

    def _rows(self, table: str) -> list[tuple[str, ...]]:
        count = len(self._all(f"{table}/tbody/tr"))
        return [tuple(self._texts(f"({table}/tbody/tr)[{row}]/*")) for row in range(1, count + 1)]

    @property
    def outcomes(self) -> list[tuple[str, ...]]:
        """Who agreed, to what, and what came of it."""
        return self._rows("//section[h2='Who came']//table")

    @property
    def goals(self) -> list[str]:
        return self._texts("//ul[@class='days-goals']/li")

    @property
    def under_talks(self) -> list[str]:
        """What stands under the talks."""
        return self._texts("//ol[@class='days-moments']//p[contains(@class, 'days-agreed')]")

    @property
    def lines(self) -> list[tuple[str, str, str]]:
        """Who speaks, in which turn of the trial if that is known, and what is said."""
        found = self._all("//div[@class='days-lines']/p")
        return [(line.findtext("b"), line.findtext("small", ""), line.find("br").tail) for line in found]

    def stays(self, name: str) -> list[tuple[str, ...]]:
        """From when, where, and what a person does."""
        return self._rows(f"//details[summary='{name}']//table")

    @property
    def people(self) -> list[str]:
        return self._texts("//table[@class='days-now']/tbody/tr/th")

    @property
    def ways(self) -> dict[str, list[tuple[float, ...]]]:
        """For each person on the map minute, x and y wherever it goes."""
        people = self.people
        dots = {people[int(dot.get("data-person"))]: dot for dot in self._all("//*[@data-moves]")}
        return {
            name: [tuple(map(float, move.split(","))) for move in dot.get("data-moves").split()]
            for name, dot in dots.items()
        }


@pytest.fixture(scope="module")
def finish() -> Finish:
    environment = Stss()
    return asyncio.run(environment.play(SAMPLE, PolicyAgent(environment.reference(SAMPLE))))


def at(t: int, who: str, sector: str = "Inn", activity: str = "party", *, walks: bool = False) -> ActivityRecord:
    return ActivityRecord(t, who, 0, sector, "hall", activity, f"town:{sector}:hall", "walk" if walks else "act")


def told(
    *records: ActivityRecord,
    agreed: tuple[Agreed, ...] = (),
    hits: tuple[tuple[str, int, int, int], ...] = (),
    dropped: tuple[str, ...] = (),
) -> Shown:
    """The page of a trial with a talk of Ada and Ben at 400."""
    lines = (SpokenLine("Ada", "Come to my party!"), SpokenLine("Ben", "Gladly."))
    talk = Talk(400, 2, ("Ada", "Ben"), lines, (7, 0), "party", dropped)
    log = EventLog((at(START, "Ada"), at(START, "Ben"), *records), (talk,), agreed)
    detail = {"evidence": pack(DayTranscript(log, TOWN, hits)), "performer": "Ada", "level": "action"}
    done = Finish(reason=FinishReason.COMPLETED, score=0.5, detail=detail | {"sub_goals": ["a party", "a speech"]})
    return Shown(done)


def test_who_agreed_and_came_is_told_with_the_time() -> None:
    shown = told(agreed=(Agreed(400, "Ben", INN),), hits=(("Ben", 0, DAY + 600, DAY + 660),))
    assert shown.outcomes == [("Ben", PARTY, "✓ came at 10:00")]
    assert shown.under_talks == [f"Ben agreed: {PARTY}. ✓ came at 10:00"]


def test_who_stayed_away_is_told_with_what_it_did_instead() -> None:
    away = at(DAY, "Ben", "Quay", "carving"), at(DAY, "Ada", "Quay", "fishing")
    shown = told(*away, agreed=(Agreed(400, "Ben", INN),))
    assert shown.outcomes == [("Ben", PARTY, "✗ did not come: carving, Quay, hall")]
    assert shown.under_talks == [f"Ben agreed: {PARTY}. ✗ did not come: carving, Quay, hall"]


def test_who_came_to_what_the_goal_does_not_name_is_told_apart() -> None:
    ((_, _, outcome),) = told(agreed=(Agreed(400, "Ben", INN),)).outcomes
    assert outcome == "○ came at 10:00, but what, where or when is not what the goal names"


def test_what_the_two_noted_is_told_as_each_of_them_noted_it_in_the_order_of_time() -> None:
    later = INN.model_copy(update={"start": DAY + 720, "end": DAY + 780, "with_whom": ""})
    shown = told(agreed=(Agreed(400, "Ada", later), Agreed(400, "Ben", INN)))
    assert [row[:2] for row in shown.outcomes] == [("Ben", PARTY), ("Ada", "party, Inn, 2023-02-14 12:00 to 13:00")]


def test_passing_by_is_no_coming() -> None:
    passing = at(DAY + 590, "Ada", walks=True), at(DAY + 700, "Ada", "Quay")
    ((who, _, outcome),) = told(*passing, agreed=(Agreed(400, "Ada", INN),)).outcomes
    assert (who, outcome) == ("Ada", "✗ did not come: party, on the way")


def test_who_did_what_the_goal_names_is_told_even_of_those_who_come_unasked() -> None:
    hits = (("Cleo", 0, DAY + 600, DAY + 630), ("Cleo", 0, DAY + 640, DAY + 660), ("Ben", 0, DAY + 610, DAY + 660))
    shown = told(at(DAY + 600, "Cleo"), agreed=(Agreed(400, "Ben", INN),), hits=hits)
    first, second = shown.goals
    assert first.startswith("a party: ✓ done by ")
    assert {*first.removeprefix("a party: ✓ done by ").split("; ")} == {
        "Cleo (2023-02-14 10:00)",
        "Ben (2023-02-14 10:10)",
    }
    assert second == "a speech: ✗ done by nobody"


def test_what_was_agreed_to_and_cannot_be_kept_is_told_with_the_reason() -> None:
    assert told(dropped=("tea, Moon: no such place or time",)).under_talks == [
        "Nothing was agreed.",
        "Agreed to, but it can't be kept: tea, Moon: no such place or time",
    ]


def test_a_walk_is_one_stay_and_each_stay_differs_from_the_one_before(finish: Finish) -> None:
    shown = Shown(finish)
    assert {"on the way"} < {where for name in shown.people for _, where, _ in shown.stays(name)}
    for name in shown.people:
        stays = shown.stays(name)
        assert stays[0][0] == "Mon 06:00"
        assert [since for since, _, _ in stays] == sorted(since for since, _, _ in stays)
        assert all(one[1:] != other[1:] for one, other in pairwise(stays))


def test_the_story_of_a_played_trial_is_that_of_its_score(finish: Finish) -> None:
    shown = Shown(finish)
    assert shown.people[0] == "Ada Birch"
    assert {*shown.people} == {*Stss().task(SAMPLE).all_chars}
    guests = [outcome for who, _, outcome in shown.outcomes if who != "Ada Birch"]
    assert len(guests) == finish.metrics["commitments_made"]
    assert sum("came at" in outcome for outcome in guests) == finish.metrics["commitments_kept"]


def test_a_line_of_the_agent_names_the_turn_that_said_it(finish: Finish) -> None:
    environment = Stss()
    seen: list[str] = []
    reference = environment.reference(SAMPLE)

    def noted(conversation: str, messages: Sequence[Message]) -> Action:
        action = reference(conversation, messages)
        seen.append(action.content)
        return action

    played = asyncio.run(environment.play(SAMPLE, PolicyAgent(noted)))
    mine = [(int(turn.removeprefix("turn ")), text) for _, turn, text in Shown(played).lines if turn]
    assert len(mine) >= finish.metrics["partners_met"]
    assert all(json.loads(seen[turn - 1])["utterance"] == text for turn, text in mine)


def test_everybody_is_drawn_at_its_tile_or_a_little_beside_it(finish: Finish) -> None:
    days, ways = unpack(str(finish.detail["evidence"])), Shown(finish).ways
    unit = 60 / days.town.width
    assert {*ways} == {*Stss().task(SAMPLE).all_chars}
    for name, way in ways.items():
        for (minute, x, y), record in zip(way, days.event_log.of(name), strict=True):
            row, column = divmod(record.tile, days.town.width)
            assert minute == record.t
            assert 0 <= x - (column + 0.5) * unit < 10
            assert 0 <= y - (row + 0.5) * unit < 10


def test_nobody_covers_anybody_on_the_map(finish: Finish) -> None:
    ways = Shown(finish).ways.values()
    for minute in range(START, DAY + 22 * 60, 15):
        spots = [[move[1:] for move in way if move[0] <= minute][-1] for way in ways]
        assert len({*spots}) == len(spots), minute


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
        drawing(finish.model_copy(update={"detail": finish.detail | {"evidence": evidence}}))


def test_a_small_text_that_unpacks_to_a_huge_one_is_refused(finish: Finish) -> None:
    bomb = base64.b64encode(zlib.compress(b"[" * 200_000_000, 9)).decode()
    with pytest.raises(ValueError, match="damaged"):
        drawing(finish.model_copy(update={"detail": finish.detail | {"evidence": bomb}}))


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
        drawing(given)


@pytest.mark.parametrize("index", [-1, 10**6])
def test_days_whose_rows_name_no_text_are_damaged(finish: Finish, index: int) -> None:
    packed = json.loads(zlib.decompress(base64.b64decode(str(finish.detail["evidence"]))))
    packed["rows"][0][-1] = index
    with pytest.raises(ValueError, match="not a packed transcript"):
        unpack(base64.b64encode(zlib.compress(json.dumps(packed).encode())).decode())


def test_without_javascript_a_page_says_who_talked_what_was_agreed_and_who_came(finish: Finish) -> None:
    page = Shown(finish)
    for name in Stss().task(SAMPLE).all_chars:
        assert name in page.text
    for talk in unpack(str(finish.detail["evidence"])).event_log.talks:
        assert all(line.text in page.text for line in talk.lines)
    agreed = "Grace Obi agreed: join me for birthday party, Anchor Inn, 2023-02-14 19:00 to 20:00. ✓ came at 19:01"
    assert agreed in page.text


def test_a_line_links_to_its_turn_where_the_page_knows_the_viewer(finish: Finish) -> None:
    linked = Shown(finish, lambda turn: f"/runs/r/trials/0?turn={turn}#turn-{turn}")
    alone = Shown(finish)
    assert any(re.fullmatch(r"/runs/r/trials/0\?turn=(\d+)#turn-\1", address) for address in linked.addresses)
    assert all(address.startswith("#moment-") for address in alone.addresses)
    assert "turn 4" in alone.text


def test_what_people_say_cannot_break_out_of_the_page(finish: Finish) -> None:
    days = unpack(str(finish.detail["evidence"]))
    records = tuple(
        ActivityRecord(t, SCRIPT, 0, SCRIPT, SCRIPT, SCRIPT, SCRIPT, "act") for t in (400, DAY + 600, DAY + 700)
    )
    talk = Talk(400, 1, (SCRIPT, SCRIPT), (SpokenLine(SCRIPT, SCRIPT),), (3,), SCRIPT, (SCRIPT,))
    promise = Commitment(activity=SCRIPT, address=SCRIPT, start=DAY + 600, end=DAY + 660, with_whom=SCRIPT)
    town = days.town.model_copy(update={"sectors": {SCRIPT: (1, 1, 3, 3)}})
    log = EventLog(records, (talk,), (Agreed(400, SCRIPT, promise),))
    evil = pack(days._replace(event_log=log, town=town, hits=[(SCRIPT, 0, DAY + 600, DAY + 660)]))
    named = ("goal", "performer", "driver", "note")
    detail = finish.detail | dict.fromkeys(named, SCRIPT) | {"evidence": evil, "sub_goals": [SCRIPT]}
    page = Shown(finish.model_copy(update={"detail": detail}), lambda turn: SCRIPT)
    assert page.text.count("alert(1)") > 10
    assert "\x1b" not in page.body


def test_long_texts_are_cut(finish: Finish) -> None:
    days, long = unpack(str(finish.detail["evidence"])), "so " * 10_000
    lines = (SpokenLine("Ada Birch", long),) * 200
    talk = Talk(400, 1, ("Ada Birch", "Ben Osei"), lines, dropped=(long[:1_000],) * 2_000)
    evidence = pack(days._replace(event_log=days.event_log._replace(talks=(talk,))))
    detail = finish.detail | {"evidence": evidence, "goal": long, "note": long, "sub_goals": [long] * 1_000}
    assert len(drawing(finish.model_copy(update={"detail": detail})).body) < 400_000
