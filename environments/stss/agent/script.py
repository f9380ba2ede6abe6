"""The script of a scripted performer: its invitations and visits, made from the task and the characters' plans."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from environments.stss.characters.read_back import HOUR
from environments.stss.characters.routine import day_plan, habits
from environments.stss.dataset import ANY, SocialTask, Town, home_of
from environments.stss.town.clock import DATES, DAY, read_stamp, time_text
from environments.stss.town.schedule import Block, agenda, overlaps

OUT = (6 * 60 + 30, 21 * 60)
"""Start and end of a day's visits, minutes since midnight."""
BEFORE = 45
"""Minutes before the activity at which the visits of day 2 end."""
MEETING = 15
"""Minutes that a character must be at a place to be met there."""
MAX_ROWS = 12
Visit = tuple[int, int, str]
"""From, to (minutes since midnight), address."""


class PerformerScript(NamedTuple):
    """Texts, times and visits of a scripted performer."""

    activity: str
    place: str
    """The address of the activity; empty if it can be anywhere."""
    start: int
    """Start of the activity, minutes since midnight of day 2."""
    minutes: int
    invitation: str
    vague: str
    """The invitation without its time."""
    late: str
    """The invitation for an hour after the end of the activity."""
    visits: tuple[tuple[Visit, ...], tuple[Visit, ...]]
    """Visits of the two days, to meet people."""


def script(town: Town, task: SocialTask, sociability: float, seed: str) -> PerformerScript:
    """The script of a task, for characters with this sociability and seed."""
    goal = task.task.goal[0]
    place = (
        "" if task.category == "online" else (goal.location if goal.location != ANY else public_places(town, task)[0])
    )
    wanted = task.task.target or task.others
    start = _best_hour(town, wanted) if goal.start_time == ANY else read_stamp(goal.start_time) % DAY
    days = [_day(town, task, day, sociability, seed) for day in (0, 1)]
    unmet = set(wanted)
    visits = tuple(tuple(_tour(days[day], unmet, OUT[0] + day * DAY, _until(day, start))) for day in (0, 1))
    after = min(start + goal.duration_in_minutes + HOUR, 22 * 60 + 30)
    return PerformerScript(
        activity=max(goal.keywords, key=len),
        place=place,
        start=start,
        minutes=min(goal.duration_in_minutes, HOUR),
        invitation=_invitation(task, place, f" on {DATES[1]} at {time_text(start)}"),
        vague=_invitation(task, place, ""),
        late=_invitation(task, place, f" on {DATES[1]} at {time_text(after)}"),
        visits=(visits[0], visits[1]),
    )


def public_places(town: Town, task: SocialTask) -> list[str]:
    """The sectors that the performer knows and that hold no character's home."""
    homes = {home_of(persona).split(":")[0] for persona in town.personas.values()}
    return [sector for sector in town.known_places[task.performer] if sector not in homes and sector in town.world]


def _until(day: int, start: int) -> int:
    return OUT[1] if day == 0 else DAY + min(OUT[1], start - BEFORE)


def _invitation(task: SocialTask, place: str, when: str) -> str:
    first, *rest = task.task.goal
    if task.category == "help" and rest:
        then = "".join(f" and then {_errand(goal.keyword)} at {goal.location}" for goal in rest)
        return f"Could you {_errand(first.keyword)} at {first.location}{when}{then}? I would be very grateful."
    where = " online" if task.category == "online" else f" at {place}"
    return f"I would like to invite you to {max(first.keywords, key=len)}{where}{when}. Please come!"


def _errand(keyword: str) -> str:
    """A keyword as an errand: a single word is fetched."""
    return keyword if len(keyword.split()) > 1 else f"fetch {keyword}"


def _best_hour(town: Town, wanted: Sequence[str]) -> int:
    """Minutes since midnight of the hour at which most of the wanted characters are awake and off work; 15:00 first."""
    own = [habits(town.personas[name], town.places) for name in wanted]

    def free(hour: int) -> int:
        return sum(
            each.wake < hour < each.bed - HOUR
            and not (each.duty and overlaps(hour, hour + HOUR, each.duty[0], each.duty[1]))
            for each in own
        )

    return max((hour * 60 for hour in (15, 16, 14, 17, 18, 13, 11, 10, 19, 20)), key=free)


def _day(town: Town, task: SocialTask, day: int, sociability: float, seed: str) -> Mapping[str, list[Block]]:
    """The agenda of every character but the performer, by name."""
    return {
        name: agenda(
            day,
            day_plan(town, town.personas[name], day, sociability, seed),
            day * DAY,
            (),
            home_of(town.personas[name]),
        )
        for name in task.others
    }


def _tour(days: Mapping[str, list[Block]], unmet: set[str], begin: int, end: int) -> Iterator[Visit]:
    """Visits of an hour, each where most unmet characters are; the last place again if no other has more."""
    visits: list[Visit] = []
    for start in range(begin, end - HOUR // 2, HOUR):
        here = visits[-1][2] if visits else ""
        present: dict[str, set[str]] = {here: set()} if here else {}
        for name in sorted(unmet):
            for block in days[name]:
                long = min(block.end, start + HOUR) - max(block.start, start + MEETING)
                if block.kind == "act" and long >= MEETING:
                    present.setdefault(":".join(block.address.split(":")[:2]), set()).add(name)
        if not present:
            continue
        best = max(present, key=lambda address: (len(present[address]), address == here, address))
        unmet -= present[best]
        if best == here:
            visits[-1] = (visits[-1][0], start + HOUR, best)
        else:
            visits.append((start, start + HOUR, best))
    return iter((start % DAY, min(stop, end) % DAY, address) for start, stop, address in visits[:MAX_ROWS])
