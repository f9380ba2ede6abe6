"""Scores an event log in `strict`: by people's activities, actual positions and times."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from environments.stss.dataset import ANY, SocialTask, SubGoal
from environments.stss.days.event_log import ActivityRecord, EventLog, intervals
from environments.stss.town.clock import DAY, END, read_stamp
from environments.stss.town.schedule import overlaps


class GoalHit(NamedTuple):
    """A person does the activity of a sub-goal, from minute `start` to before `end`."""

    start: int
    end: int
    sector: str
    arena: str


def score(event_log: EventLog, task: SocialTask) -> float:
    """The score, from 0 to 1, by the task's category."""
    found = hits(event_log, task)
    wanted = max(1, task.task.target_num - 1)
    match task.category:
        case "public" | "online":
            return min(sum(bool(found[name][0]) for name in task.others) / wanted, 1.0)
        case "appointment":
            return _appointment(found[task.performer][0], [hit for name in task.task.target for hit in found[name][0]])
        case "companions":
            together = _together(found[task.performer][0], [found[name][0] for name in task.others])
            return min(together / wanted, 1.0)
        case "help":
            return max((_errand(found[name]) for name in task.others), default=0.0)


def hits(event_log: EventLog, task: SocialTask) -> Mapping[str, list[list[GoalHit]]]:
    """Hits in order of time, by name and then by sub-goal, for the whole cast."""
    return {
        name: [_hits(event_log.of(name), goal) for goal in task.task.goal] for name in dict.fromkeys(task.all_chars)
    }


def reached(event_log: EventLog, task: SocialTask) -> list[tuple[str, int, GoalHit]]:
    """All hits with name and sub-goal, for drawing."""
    return [
        (name, index, hit)
        for name, goals in hits(event_log, task).items()
        for index, found in enumerate(goals)
        for hit in found
    ]


def window(goal: SubGoal) -> tuple[int, int]:
    """First minute and end (exclusive) of a sub-goal's time; all of day 2 if it names none."""
    if goal.start_time == ANY:
        return DAY, 2 * DAY
    start = read_stamp(goal.start_time)
    return start, start + goal.duration_in_minutes


def _hits(records: Sequence[ActivityRecord], goal: SubGoal) -> list[GoalHit]:
    start, end = window(goal)
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in goal.keywords), re.IGNORECASE)
    return [
        GoalHit(max(record.t, start), min(until, end), record.sector, record.arena)
        for record, until in intervals(records, END)
        if record.kind == "act"
        and min(until, end) > max(record.t, start)
        and inside(record, goal.location)
        and pattern.search(record.activity)
    ]


def inside(record: ActivityRecord, location: str) -> bool:
    """Whether a record's position is in a location: a sector, `sector:arena`, or ANY."""
    return location in (ANY, record.sector, f"{record.sector}:{record.arena}")


def _appointment(mine: Sequence[GoalHit], theirs: Sequence[GoalHit]) -> float:
    best = 0.0
    for one in mine:
        for other in theirs:
            if overlaps(one.start, one.end, other.start, other.end):
                same = (one.sector, one.arena) == (other.sector, other.arena)
                best = max(best, 1.0 if same else 0.5)
    return best


def _together(mine: Sequence[GoalHit], others: Sequence[Sequence[GoalHit]]) -> int:
    """The largest number of others with a hit at the same minute as the performer; only starts of hits are checked."""
    starts = {hit.start for hit in mine} | {hit.start for found in others for hit in found}
    return max((sum(_at(found, minute) for found in others) for minute in starts if _at(mine, minute)), default=0)


def _at(found: Sequence[GoalHit], minute: int) -> bool:
    return any(hit.start <= minute < hit.end for hit in found)


def _errand(goals: Sequence[Sequence[GoalHit]]) -> float:
    """Fraction of sub-goals done; 0.5 if all are done but in the wrong order."""
    done = sum(map(bool, goals)) / len(goals)
    return 1.0 if done == 1 and _in_order(goals) else (0.5 if done == 1 else done)


def _in_order(goals: Sequence[Sequence[GoalHit]]) -> bool:
    """Whether hits of the sub-goals exist in order, each not over before the one before it begins."""
    minute = 0
    for found in goals:
        later = [max(hit.start, minute) for hit in found if hit.end > minute]
        if not later:
            return False
        minute = min(later)
    return True
