"""The script of a scripted performer: its invitations and visits, made from the task and the characters' plans."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from environments.stss.appointments import HOUR
from environments.stss.characters.routine import day_plan, habits
from environments.stss.dataset import ANY, SocialTask, Town, home_of
from environments.stss.invitation import ONLINE, Leg, form_of, in_words
from environments.stss.town.schedule import DAY, Block, agenda, overlaps, read_stamp

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
    """Words, times and visits of a scripted performer."""

    activity: str
    place: str
    """The address of the activity; empty if it can be anywhere."""
    start: int
    """Start of the activity, minutes since midnight of day 2."""
    minutes: int
    legs: tuple[Leg, ...]
    """What to invite to: one thing, or the two legs of an errand."""
    late: tuple[Leg, ...]
    """The same an hour after the end of the activity."""
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
    unmet = set(wanted)
    visits: list[tuple[Visit, ...]] = []
    for day, until in enumerate((OUT[1], DAY + min(OUT[1], start - BEFORE))):
        plans = {name: day_plan(town, town.personas[name], day, sociability, seed) for name in task.others}
        agendas = {name: agenda(day, plan, day * DAY, (), home_of(town.personas[name])) for name, plan in plans.items()}
        visits.append(_tour(agendas, unmet, OUT[0] + day * DAY, until))
    after = min(start + goal.duration_in_minutes + HOUR, 22 * 60 + 30)
    return PerformerScript(
        activity=max(goal.keywords, key=len),
        place=place,
        start=start,
        minutes=min(goal.duration_in_minutes, HOUR),
        legs=_legs(task, place, start, start + min(goal.duration_in_minutes, HOUR)),
        late=_legs(task, place, after, after + HOUR),
        visits=(visits[0], visits[1]),
    )


def public_places(town: Town, task: SocialTask) -> list[str]:
    """The sectors that the performer knows and that hold no character's home."""
    homes = {home_of(persona).split(":")[0] for persona in town.personas.values()}
    return [sector for sector in town.known_places[task.performer] if sector not in homes and sector in town.world]


def _legs(task: SocialTask, place: str, start: int, end: int) -> tuple[Leg, ...]:
    """One thing to do, or the legs of an errand; the legs after the first follow it."""
    first, *rest = task.task.goal
    if task.category == "help" and rest:
        begins = Leg(_errand(first.keyword), first.location, 1, start)
        return (begins, *(Leg(_errand(goal.keyword), goal.location) for goal in rest))
    return (Leg(f"join me for {max(first.keywords, key=len)}", place or ONLINE, 1, start, end),)


def _errand(keyword: str) -> str:
    """A keyword as an errand: a single word is fetched."""
    return keyword if len(keyword.split()) > 1 else f"fetch {keyword}"


def invitation(legs: Sequence[Leg]) -> str:
    """The sentence that asks for one thing, or the lines that ask for an errand."""
    return f"Would you like to {in_words(legs)}?" if len(legs) == 1 else f"I would be very grateful: {form_of(legs)}"


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


def _tour(agendas: Mapping[str, list[Block]], unmet: set[str], begin: int, end: int) -> tuple[Visit, ...]:
    """Visits of an hour, each where most unmet characters are; the last place again if no other has more."""
    visits: list[Visit] = []
    for start in range(begin, end - HOUR // 2, HOUR):
        here = visits[-1][2] if visits else ""
        present: dict[str, set[str]] = {here: set()} if here else {}
        for name in sorted(unmet):
            for block in agendas[name]:
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
    return tuple((start % DAY, min(stop, end) % DAY, address) for start, stop, address in visits[:MAX_ROWS])
