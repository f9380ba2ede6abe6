"""The page of two days: all is in it without JavaScript, nothing from elsewhere, and every text stays text."""

import asyncio
import re
from html.parser import HTMLParser

import pytest

from environments.stss.days.transcript import ActivityRecord, Agreed, EventLog, Talk, pack, unpack
from environments.stss.drawing.page import drawing
from environments.stss.environment import Stss
from environments.stss.invitation import SpokenLine
from environments.stss.town.schedule import DAY, Commitment
from proctor.session.play import PolicyAgent
from proctor.types import Finish

SAMPLE = "fernmouth_birthday"
SCRIPT = "</script><script>alert(1)</script>\x1b[31m' onload=\""


class Elements(HTMLParser):
    """The elements of a page, their addresses and their texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not {name for name, _ in attrs if name in ("src", "style") or name.startswith("on")}
        self.addresses += [value or "" for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def finish() -> Finish:
    environment = Stss()
    return asyncio.run(environment.play(SAMPLE, PolicyAgent(environment.reference(SAMPLE))))


def test_without_javascript_a_page_says_who_talked_what_was_agreed_and_who_came(finish: Finish) -> None:
    elements = Elements(drawing(finish).body)
    days = unpack(str(finish.detail["evidence"]))
    shown = " ".join(" ".join(elements.texts).split())
    for name in Stss().task(SAMPLE).all_chars:
        assert name in shown
    for talk in days.event_log.talks:
        assert all(line.text in shown for line in talk.lines)
    agreed = "Grace Obi agreed: join me for birthday party, Anchor Inn, 2023-02-14 19:00 to 20:00. ✓ came at 19:01"
    assert agreed in shown
    assert {"script", "style", "link", "img", "base"}.isdisjoint(elements.tags)


def test_a_line_links_to_its_turn_where_the_page_knows_the_viewer(finish: Finish) -> None:
    linked = Elements(drawing(finish, lambda turn: f"/runs/r/trials/0?turn={turn}#turn-{turn}").body)
    alone = Elements(drawing(finish).body)
    assert any(re.fullmatch(r"/runs/r/trials/0\?turn=(\d+)#turn-\1", address) for address in linked.addresses)
    assert all(address.startswith("#moment-") for address in alone.addresses)
    assert "turn 4" in " ".join(alone.texts)


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
    text = drawing(finish.model_copy(update={"detail": detail}), lambda turn: SCRIPT).body
    elements = Elements(text)
    assert "script" not in elements.tags
    assert sum("alert(1)" in each for each in elements.texts) > 10
    assert "\x1b" not in text


def test_long_texts_are_cut(finish: Finish) -> None:
    days, long = unpack(str(finish.detail["evidence"])), "so " * 10_000
    lines = (SpokenLine("Ada Birch", long),) * 200
    talk = Talk(400, 1, ("Ada Birch", "Ben Osei"), lines, dropped=(long[:1_000],) * 2_000)
    evidence = pack(days._replace(event_log=days.event_log._replace(talks=(talk,))))
    detail = finish.detail | {"evidence": evidence, "goal": long, "note": long, "sub_goals": [long] * 1_000}
    assert len(drawing(finish.model_copy(update={"detail": detail})).body) < 400_000
