"""Scores an event log: in `strict` by actual positions and times, and by the rules of the published code."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from environments.stss.dataset import ANY, Category, SocialTask, SubGoal
from environments.stss.days.transcript import ActivityRecord, EventLog, intervals, kept_from
from environments.stss.town.schedule import DAY, END, overlaps, read_stamp

TALK = "conversing about"


class Stretch(NamedTuple):
    """A person's activity at one place, from minute `start` to before `end`."""

    start: int
    end: int
    activity: str
    place: str


def score(event_log: EventLog, task: SocialTask) -> float:
    """The score in `strict`, from 0 to 1, by the task's category."""
    found = hits(event_log, task)
    if task.category == "help":
        return max((_errand(found[name]) for name in task.others), default=0.0)
    return _of_one_goal({name: goals[0] for name, goals in found.items()}, task)


def published_score(event_log: EventLog, task: SocialTask) -> float:
    """The score, from 0 to 1, by the published rules, including their errors. `task` must be the unrepaired one."""
    events = {name: _events(event_log, name) for name in dict.fromkeys(task.all_chars)}
    if task.category == "help":
        return _published_errand(events, task)
    fits = _FITS[task.category]
    found = {name: [event for event in events[name] if fits(event, task.task.goal[0])] for name in events}
    rooms = {name: [each._replace(place=each.place.rpartition(":")[0]) for each in found[name]] for name in found}
    return _of_one_goal(rooms, task)


def _of_one_goal(found: Mapping[str, Sequence[Stretch]], task: SocialTask) -> float:
    """The score of a task that is no errand, by who has done its goal and in which room."""
    mine, others = found[task.performer], [found[name] for name in task.others]
    if task.category == "appointment":
        return _meeting(mine, [each for name in task.task.target for each in found[name]])
    present = _together(mine, others) if task.category == "companions" else sum(map(bool, others))
    return min(present / max(1, task.task.target_num - 1), 1.0)


def hits(event_log: EventLog, task: SocialTask) -> Mapping[str, list[list[Stretch]]]:
    """Stretches that do a sub-goal, in order of time, by name and then by sub-goal, for the whole cast."""
    return {
        name: [_hits(event_log.of(name), goal) for goal in task.task.goal] for name in dict.fromkeys(task.all_chars)
    }


def reached(event_log: EventLog, task: SocialTask) -> list[tuple[str, int, int, int]]:
    """All hits, for drawing: name, sub-goal, start, end."""
    return [
        (name, index, hit.start, hit.end)
        for name, goals in hits(event_log, task).items()
        for index, found in enumerate(goals)
        for hit in found
    ]


def _hits(records: Sequence[ActivityRecord], goal: SubGoal) -> list[Stretch]:
    """The stretches that do a sub-goal in its time; its time is all of day 2 if it names none."""
    start, end = DAY, 2 * DAY
    if goal.start_time != ANY:
        start = read_stamp(goal.start_time)
        end = start + goal.duration_in_minutes
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in goal.keywords), re.IGNORECASE)
    return [
        Stretch(max(record.t, start), min(until, end), record.activity, f"{record.sector}:{record.arena}")
        for record, until in intervals(records, END)
        if record.kind == "act"
        and min(until, end) > max(record.t, start)
        and goal.location in (ANY, record.sector, f"{record.sector}:{record.arena}")
        and pattern.search(record.activity)
    ]


def _errand(goals: Sequence[Sequence[Stretch]]) -> float:
    """Fraction of sub-goals done; 0.5 if all are done but in the wrong order.

    In order means that a hit of each sub-goal is not over before the one before it begins.
    """
    done, minute = sum(map(bool, goals)) / len(goals), 0
    for found in goals if done == 1 else ():
        later = [max(hit.start, minute) for hit in found if hit.end > minute]
        if not later:
            return 0.5
        minute = min(later)
    return done


def _meeting(mine: Sequence[Stretch], theirs: Sequence[Stretch]) -> float:
    """1 if two stretches share a minute and the place, 0.5 if only a minute, else 0."""
    at_once = [(a.place, b.place) for a in mine for b in theirs if overlaps(a.start, a.end, b.start, b.end)]
    return max((1.0 if place == other else 0.5 for place, other in at_once), default=0.0)


def _together(mine: Sequence[Stretch], others: Sequence[Sequence[Stretch]]) -> int:
    """The largest number of others at the same minute as the performer; only starts of stretches are checked."""
    starts = {each.start for found in (mine, *others) for each in found}
    return max((sum(_at(found, minute) for found in others) for minute in starts if _at(mine, minute)), default=0)


def _at(found: Sequence[Stretch], minute: int) -> bool:
    return any(each.start <= minute < each.end for each in found)


def _events(event_log: EventLog, name: str) -> list[Stretch]:
    """The maximal stretches with one activity at one declared place."""
    events: list[Stretch] = []
    for record, end in intervals(event_log.of(name), END):
        last = events[-1] if events else None
        if last is not None and (last.activity, last.place) == (record.activity, record.address):
            events[-1] = last._replace(end=end)
        elif end > record.t:
            events.append(Stretch(record.t, end, record.activity, record.address))
    return events


def _names_goal(event: Stretch, goal: SubGoal) -> bool:
    return any(word.lower() in event.activity.lower() for word in goal.keywords)


def _is_there(event: Stretch, goal: SubGoal) -> bool:
    return goal.location == ANY or goal.location in event.place


def _starts_within(event: Stretch, goal: SubGoal) -> bool:
    """Whether an event fits a sub-goal; times are compared without their dates, both ends inclusive."""
    start = 0 if goal.start_time == ANY else read_stamp(goal.start_time) % DAY
    timely = goal.start_time == ANY or start <= event.start % DAY <= start + goal.duration_in_minutes
    return timely and _names_goal(event, goal) and _is_there(event, goal)


def _untold(event: Stretch, goal: SubGoal) -> bool:
    return _names_goal(event, goal) and TALK not in event.activity


def _near(event: Stretch, goal: SubGoal) -> bool:
    return _names_goal(event, goal) and (_is_there(event, goal) or goal.location.lower() in event.activity.lower())


_TIMED: Mapping[Category, Callable[[Stretch, SubGoal], bool]] = {"public": _starts_within, "online": _starts_within}
_FITS = {**_TIMED, "appointment": _untold, "companions": _near}
"""By which the published code takes an event for the goal of a task that is no errand."""


def _published_errand(events: Mapping[str, Sequence[Stretch]], task: SocialTask) -> float:
    """A sub-goal that a person did also counts for every later person; only the order is each person's own."""
    goals, done, best = task.task.goal, set[int](), 0.0
    for name in task.others:
        in_order = 0
        for event in events[name]:
            for index, goal in enumerate(goals):
                if _untold(event, goal) and _is_there(event, goal) and _strictly(event, goal):
                    done.add(index)
                    in_order += index == in_order
        reached = len(done) / len(goals)
        best = max(best, reached if reached < 1 else (1.0 if in_order == len(goals) else 0.5))
    return best


def _strictly(event: Stretch, goal: SubGoal) -> bool:
    """Whether an event starts within a sub-goal's time; both ends are exclusive."""
    start = 0 if goal.start_time == ANY else read_stamp(goal.start_time)
    return goal.start_time == ANY or start < event.start < start + goal.duration_in_minutes


def day_metrics(event_log: EventLog, played: SocialTask, published: SocialTask) -> dict[str, float]:
    """The scores of both profiles, and counts of talks, invitations and commitments.

    `played` is the repaired task, `published` the unrepaired one.
    """
    me = played.performer
    met = {name for talk in event_log.talks if me in talk.people for name in talk.people} - {me}
    early = {name for talk in event_log.talks if me in talk.people and talk.t < DAY for name in talk.people} - {me}
    promised = [agreed for agreed in event_log.agreed if agreed.who != me]
    kept = sum(kept_from(event_log, agreed) is not None for agreed in promised)
    if played.category == "appointment":
        talked_to = float(bool(early & set(played.task.target)))
    else:
        talked_to = len(early) / max(1, played.task.target_num - 1)
    return {
        "strict": score(event_log, played),
        "compat": published_score(event_log, published),
        "talked_to": talked_to,
        "partners_met": float(len(met)),
        "invitations": float(sum(bool(talk.invited_to) for talk in event_log.talks if me in talk.people)),
        "commitments_made": float(len(promised)),
        "commitments_kept": float(kept),
        "commitments_dropped": float(sum(len(talk.dropped) for talk in event_log.talks)),
        "no_shows": float(len(promised) - kept),
    }
