"""Scores an event log by the rules of the published code, including their errors."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from environments.stss.dataset import ANY, SocialTask, SubGoal
from environments.stss.days.event_log import EventLog, intervals
from environments.stss.town.clock import DAY, END, read_stamp
from environments.stss.town.schedule import overlaps

TALK = "conversing about"


class Stretch(NamedTuple):
    """A person's activity at one place, from minute `start` to before `end`."""

    start: int
    end: int
    activity: str
    place: str


def score(event_log: EventLog, task: SocialTask) -> float:
    """The score, from 0 to 1, by the task's category. `task` must be the unrepaired one."""
    events = {name: _events(event_log, name) for name in dict.fromkeys(task.all_chars)}
    wanted = max(1, task.task.target_num - 1)
    goal = task.task.goal[0]
    match task.category:
        case "public" | "online":
            present = sum(any(_starts_within(event, goal) for event in events[name]) for name in task.others)
            return min(present / wanted, 1.0)
        case "appointment":
            met = {
                name: [
                    event._replace(place=event.place.rpartition(":")[0])
                    for event in events[name]
                    if _names_goal(event, goal) and TALK not in event.activity
                ]
                for name in (task.performer, *task.task.target)
            }
            return meeting(met[task.performer], [event for name in task.task.target for event in met[name]])
        case "companions":
            near = {
                name: [event for event in events[name] if _names_goal(event, goal) and _near(event, goal)]
                for name in events
            }
            return min(together(near[task.performer], [near[name] for name in task.others]) / wanted, 1.0)
        case "help":
            return _help(events, task)


def meeting(mine: Sequence[Stretch], theirs: Sequence[Stretch]) -> float:
    """1 if two stretches share a minute and the place, 0.5 if only a minute, else 0."""
    at_once = [(a.place, b.place) for a in mine for b in theirs if overlaps(a.start, a.end, b.start, b.end)]
    return max((1.0 if place == other else 0.5 for place, other in at_once), default=0.0)


def together(mine: Sequence[Stretch], others: Sequence[Sequence[Stretch]]) -> int:
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
    if not (_names_goal(event, goal) and _is_there(event, goal)):
        return False
    if goal.start_time == ANY:
        return True
    start = read_stamp(goal.start_time) % DAY
    return start <= event.start % DAY <= start + goal.duration_in_minutes


def _near(event: Stretch, goal: SubGoal) -> bool:
    return _is_there(event, goal) or goal.location.lower() in event.activity.lower()


def _help(events: Mapping[str, Sequence[Stretch]], task: SocialTask) -> float:
    """A sub-goal that a person did also counts for every later person; only the order is each person's own."""
    goals, done, best = task.task.goal, set[int](), 0.0
    for name in task.others:
        in_order = 0
        for event in events[name]:
            for index, goal in enumerate(goals):
                fits = _names_goal(event, goal) and _is_there(event, goal) and _strictly(event, goal)
                if fits and TALK not in event.activity:
                    done.add(index)
                    in_order += index == in_order
        reached = len(done) / len(goals)
        best = max(best, reached if reached < 1 else (1.0 if in_order == len(goals) else 0.5))
    return best


def _strictly(event: Stretch, goal: SubGoal) -> bool:
    start = 0 if goal.start_time == ANY else read_stamp(goal.start_time)
    return goal.start_time == ANY or start < event.start < start + goal.duration_in_minutes
