"""The two days of a finished trial as HTML, a part of the viewer's page: the map, the talks, and who came."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from environments.stss.days.transcript import Agreed, DayTranscript, EventLog, Picture, kept_from, unpack
from environments.stss.town.schedule import DATES, DAY, END, NAMES, START, stamp, time_text
from proctor.environment import TurnAddress
from proctor.observability.redaction import visible
from proctor.types import Drawing, Finish

HERE = Path(__file__).parent
MAX_PEOPLE, MAX_RECORDS, MAX_EVENTS = 60, 20_000, 1_000
PLAY_AGAIN = "the days can be drawn of a trial that this version played to its end: play it again with `proctor run`"
PARTS = {
    "strict": "score in strict",
    "compat": "score as published",
    "floor": "score of a silent performer",
    "talked_to": "talked to on day 1, of those wanted",
    "partners_met": "people talked to",
    "invitations": "talks with an invitation",
    "commitments_made": "agreements by others",
    "commitments_kept": "of them kept",
    "no_shows": "of them broken",
    "commitments_dropped": "agreed to, but impossible",
    "calls": "calls of the agent",
}
"""A finish's metric -> what the page calls it."""
WIDTH, APART, A_ROW = 60, 2.2, 3
"""Of the map, in units of its picture; how far people of one tile are drawn apart, and in rows of how many."""


class Stay(NamedTuple):
    """What a person does, and where, from minute `start` to its next stay."""

    start: int
    where: str
    doing: str


class Agreement(NamedTuple):
    """What a person agreed to in a talk, and what became of it."""

    agreed: Agreed
    words: str
    """Activity, place, date and time."""
    came: int | None
    """The minute from which it was kept; None where it was broken."""
    instead: str
    """What the person did at its start, where it was broken."""
    counts: bool
    """Whether the person then did what the goal names."""


def drawing(finish: Finish, turn_address: TurnAddress | None = None) -> Drawing:
    """The days of a finish. Raises ValueError, with what to do, where it holds none or impossible ones."""
    days, performer = _days(finish), str(finish.detail.get("performer", ""))
    log = days.event_log
    people = sorted({record.who for record in log.records}, key=lambda name: (name != performer, name))
    stays = {name: list(_stays(log, name)) for name in people}
    agreements = sorted(_agreements(days, stays), key=lambda each: each.agreed.commitment.start)
    minute = agreements[0].agreed.commitment.start if agreements else START
    body = _template("days.html").render(
        finish=finish,
        performer=performer,
        goals=list(_goals(finish, days)),
        parts=[(words, finish.metrics[name]) for name, words in PARTS.items() if name in finish.metrics],
        people=people,
        stays=stays,
        now={name: _at(found, minute) for name, found in stays.items()},
        talks=log.talks,
        agreements=agreements,
        moves=_moves(days, people),
        town=days.town,
        unit=WIDTH / days.town.width,
        walls=Markup(_walls(days.town)),
        minute=minute,
        turn_address=turn_address,
    )
    return Drawing(body=body, style=_text("days.css"), script=_text("days.js"))


def _days(finish: Finish) -> DayTranscript:
    packed = finish.detail.get("evidence")
    if finish.score is None:
        raise ValueError(f"ended as {finish.reason.value}, without a score; {PLAY_AGAIN}")
    if finish.detail.get("level") == "language":
        raise ValueError("was played at the language level, which has no days; draw a trial of `level: action`")
    if not isinstance(packed, str):
        raise ValueError(f"holds no days; {PLAY_AGAIN}")
    try:
        days = unpack(packed)
    except ValueError as error:
        raise ValueError(f"the stored days of its finish are damaged: {error}; {PLAY_AGAIN}") from error
    log, tiles = days.event_log, days.town.width * days.town.height
    long = len(log.records) > MAX_RECORDS or len(log.talks) + len(log.agreed) + len(days.hits) > MAX_EVENTS
    if long or len({record.who for record in log.records}) > MAX_PEOPLE:
        raise ValueError(f"the stored days of its finish are too long to draw; {PLAY_AGAIN}")
    minutes = [*(record.t for record in log.records), *(talk.t for talk in log.talks), *(hit[2] for hit in days.hits)]
    minutes += [minute for agreed in log.agreed for minute in (agreed.t, agreed.commitment.start)]
    inside = all(0 <= record.tile < tiles for record in log.records) and all(0 <= minute < END for minute in minutes)
    if not inside or len(days.town.walls) != tiles:
        raise ValueError(f"the stored days of its finish lie outside the two days or the town; {PLAY_AGAIN}")
    return days


def _stays(log: EventLog, who: str) -> Iterator[Stay]:
    """The records of a person, those of one walk or one activity as one."""
    stays = (
        Stay(
            record.t,
            "on the way" if record.kind == "walk" else ", ".join(filter(None, (record.sector, record.arena))),
            f"talks with {record.talk_with}" if record.kind == "talk" else record.activity,
        )
        for record in log.of(who)
    )
    return (next(same) for _, same in groupby(stays, key=lambda stay: stay[1:]))


def _at(stays: Sequence[Stay], minute: int) -> Stay:
    """The stay of a minute."""
    return [stay for stay in stays if stay.start <= minute or stay is stays[0]][-1]


def _agreements(days: DayTranscript, stays: Mapping[str, Sequence[Stay]]) -> Iterator[Agreement]:
    for agreed in days.event_log.agreed:
        promise, came = agreed.commitment, kept_from(days.event_log, agreed)
        instead = _at(stays[agreed.who], promise.start) if agreed.who in stays else Stay(START, "", "")
        counts = any(
            who == agreed.who and since < promise.end and promise.start < end for who, _, since, end in days.hits
        )
        words = f"{promise.activity}, {promise.address}, {stamp(promise.start)} to {time_text(promise.end)}"
        yield Agreement(agreed, words, came, f"{instead.doing}, {instead.where}", counts)


def _goals(finish: Finish, days: DayTranscript) -> Iterator[tuple[str, list[str]]]:
    """Each part of the goal, and who did it, from when on the first time."""
    named = finish.detail.get("sub_goals")
    for number, name in enumerate(named if isinstance(named, list) else []):
        hits = sorted((hit for hit in days.hits if hit[1] == number), key=lambda hit: -hit[2])
        yield str(name), [f"{who} ({stamp(start)})" for who, start in {hit[0]: hit[2] for hit in hits}.items()]


def _walls(town: Picture) -> str:
    """The walls as the data of an SVG path, in tiles."""
    tiles = enumerate(town.walls)
    return "".join(f"M{at % town.width} {at // town.width}h1v1h-1z" for at, tile in tiles if tile == "#")


def _moves(days: DayTranscript, people: Sequence[str]) -> dict[str, list[tuple[int, float, float]]]:
    """For each person minute, x and y wherever it goes; who comes to a tile with others on it stands beside them."""
    width, unit = days.town.width, WIDTH / days.town.width
    stands: dict[str, tuple[int, int]] = {}  # the tile of each person, and its place among those who are there
    found: dict[str, list[tuple[int, float, float]]] = {name: [] for name in people}
    for t, who, tile, *_ in days.event_log.records:
        taken = {spot for name, spot in stands.items() if name != who}
        place = next(place for place in range(len(people)) if (tile, place) not in taken)
        stands[who] = tile, place
        x = (tile % width + 0.5) * unit + APART * (place % A_ROW)
        y = (tile // width + 0.5) * unit + APART * (place // A_ROW)
        found[who].append((t, round(x, 2), round(y, 2)))
    return found


@lru_cache
def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


@lru_cache
def _template(name: str) -> Template:
    made = Environment(loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, finalize=_plain)
    made.trim_blocks = made.lstrip_blocks = True
    days = [f"{weekday} {date}" for weekday, date in zip(NAMES, DATES, strict=True)]
    made.globals.update(DAYS=days, DAY=DAY, START=START, END=END, time_text=time_text)
    return made.get_template(name)


def _plain(value: object) -> object:
    """Texts with their control characters as escapes."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
