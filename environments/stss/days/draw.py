"""Draws the two days of a finished trial as one self-contained HTML page: map, times, talks, goals."""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template

from environments.stss.days.event_log import ActivityRecord, Talk, intervals
from environments.stss.days.transcript import DayTranscript, Picture, unpack
from environments.stss.town.clock import END, START, spoken, time_text
from proctor.types import Finish

PAGE = Path(__file__).with_name("page.html")
LANE, LABEL, HOUR = 18, 140, 24
"""In pixels: height of a person's lane, width of a name, width of an hour."""
PIXELS_A_TILE = 9


def page(title: str, finish: Finish) -> str:
    """The page of a finish at the action level. Raises ValueError if the finish holds no transcript."""
    packed = finish.detail.get("evidence")
    if not isinstance(packed, str):
        raise ValueError(f"{title}: holds no days to draw; only trials at the action level that were scored do")
    day_transcript = unpack(packed)
    performer = str(finish.detail.get("performer", ""))
    records = _by_person(day_transcript.event_log.records, performer)
    shown = " · ".join(f"{name} {value:.2f}" for name, value in finish.metrics.items())
    return Template(PAGE.read_text(encoding="utf-8")).substitute(
        title=escape(title),
        goal=escape(str(finish.detail.get("goal", ""))),
        facts=escape(f"{finish.reason.value} · {shown} · driven by {finish.detail.get('driver')}"),
        note=escape(str(finish.detail.get("note", ""))),
        start=START,
        end=END,
        width=day_transcript.town.width,
        height=day_transcript.town.height,
        pixels=day_transcript.town.width * PIXELS_A_TILE,
        map="\n".join(_map(day_transcript.town)),
        lanes=_lanes(records, day_transcript, performer),
        hits=_hits(day_transcript, _sub_goals(finish)),
        talks="\n".join(_talk(talk, performer) for talk in day_transcript.event_log.talks),
        data=json.dumps(_moves(records, day_transcript.town, performer)).replace("<", "\\u003c"),
    )


def _by_person(records: Sequence[ActivityRecord], performer: str) -> Mapping[str, list[ActivityRecord]]:
    """Records by person: the performer first, then the others by name."""
    names = sorted({record.who for record in records}, key=lambda name: (name != performer, name))
    return {name: [record for record in records if record.who == name] for name in names}


def _moves(records: Mapping[str, list[ActivityRecord]], town: Picture, performer: str) -> Mapping[str, object]:
    return {
        "people": [
            {
                "name": name,
                "me": name == performer,
                "moves": [[record.t, record.tile % town.width, record.tile // town.width] for record in found],
            }
            for name, found in records.items()
        ]
    }


def _map(town: Picture) -> Iterator[str]:
    for y in range(town.height):
        row, x = town.walls[y * town.width : (y + 1) * town.width], 0
        while (x := row.find("#", x)) >= 0:
            length = len(row) - x - len(row[x:].lstrip("#"))
            yield f'<rect x="{x}" y="{y}" width="{length}" height="1" fill="#8a7f6a"/>'
            x += length
    for name, (x, y, _, height) in town.sectors.items():
        yield f'<text x="{x}" y="{y + height / 2}">{escape(name)}</text>'


def _lanes(records: Mapping[str, list[ActivityRecord]], day_transcript: DayTranscript, performer: str) -> str:
    width, height = LABEL + (END - START) * HOUR // 60, LANE * (len(records) + 1)
    parts = [f'<svg viewBox="0 0 {width} {height}" width="{width}">']
    for minute in range(START, END, 120):
        parts.append(f'<text x="{_x(minute)}" y="12">{time_text(minute)}</text>')
    for lane, (name, found) in enumerate(records.items(), 1):
        y = lane * LANE
        weight = ' class="me"' if name == performer else ""
        parts.append(f'<text x="0" y="{y + 12}"{weight}>{escape(name)}</text>')
        parts += [_bar(record, until, y) for record, until in intervals(found, END)]
        for who, goal, start, end in day_transcript.hits:
            if who == name:
                parts.append(_rect((start, end), y + LANE - 6, 4, "hit", f"sub-goal {goal + 1}, {time_text(start)}"))
    return "\n".join([*parts, "</svg>"])


def _bar(record: ActivityRecord, until: int, y: int) -> str:
    where = record.talk_with or record.sector or "on the way"
    return _rect((record.t, until), y + 2, LANE - 8, record.kind, f"{time_text(record.t)} {record.activity} ({where})")


def _rect(span: tuple[int, int], y: int, height: int, kind: str, title: str) -> str:
    start, end = map(_x, span)
    size = f'x="{start}" y="{y}" width="{end - start:.1f}" height="{height}"'
    return f'<rect class="{kind}" {size}><title>{escape(title)}</title></rect>'


def _x(minute: int) -> float:
    return round(LABEL + (minute - START) * HOUR / 60, 1)


def _sub_goals(finish: Finish) -> list[str]:
    named = finish.detail.get("sub_goals")
    return [str(name) for name in named] if isinstance(named, list) else []


def _hits(day_transcript: DayTranscript, goals: Sequence[str]) -> str:
    items = [
        f"<li>{escape(who)}: {spoken(start)} to {time_text(end)}, {escape(goals[goal])}</li>"
        for who, goal, start, end in sorted(day_transcript.hits, key=lambda hit: hit[2])
    ]
    return "<ul>" + "".join(items) + "</ul>" if items else "<p>Nobody did what the goal names, there and then.</p>"


def _talk(talk: Talk, performer: str) -> str:
    lines = "".join(
        f"<blockquote><b>{escape(line.speaker)}</b>: {escape(line.text)}</blockquote>" for line in talk.lines
    )
    mark = " open" if performer in talk.people else ""
    head = escape(f"{spoken(talk.t)}: {talk.people[0]} and {talk.people[1]}")
    return f"<details{mark}><summary>{head}</summary>{lines}</details>"
