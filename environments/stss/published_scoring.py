"""Scores an event log by the rules of the published code, including their errors."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from environments.stss.dataset import ANY, SocialTask, SubGoal
from environments.stss.days.event_log import EventLog, intervals
from environments.stss.town.clock import DAY, END, read_stamp
from environments.stss.town.schedule import overlaps

TALK = "conversing about"


class ScoredEvent(NamedTuple):
    """A maximal interval with one action at one declared place."""

    start: int
    end: int
    action: str
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
            return _appointment(events, task, goal)
        case "companions":
            return min(_companions(events, task, goal) / wanted, 1.0)
        case "help":
            return _help(events, task)


def _events(event_log: EventLog, name: str) -> list[ScoredEvent]:
    events: list[ScoredEvent] = []
    for record, end in intervals(event_log.of(name), END):
        last = events[-1] if events else None
        if last is not None and (last.action, last.place) == (record.activity, record.address):
            events[-1] = last._replace(end=end)
        elif end > record.t:
            events.append(ScoredEvent(record.t, end, record.activity, record.address))
    return events


def _names_goal(event: ScoredEvent, goal: SubGoal) -> bool:
    return any(word.lower() in event.action.lower() for word in goal.keywords)


def _is_there(event: ScoredEvent, goal: SubGoal) -> bool:
    return goal.location == ANY or goal.location in event.place


def _starts_within(event: ScoredEvent, goal: SubGoal) -> bool:
    """Whether an event fits a sub-goal; times are compared without their dates, both ends inclusive."""
    if not (_names_goal(event, goal) and _is_there(event, goal)):
        return False
    if goal.start_time == ANY:
        return True
    start = read_stamp(goal.start_time) % DAY
    return start <= event.start % DAY <= start + goal.duration_in_minutes


def _appointment(events: Mapping[str, Sequence[ScoredEvent]], task: SocialTask, goal: SubGoal) -> float:
    best = 0.0
    for mine in events[task.performer]:
        for theirs in (event for name in task.task.target for event in events[name]):
            meet = overlaps(mine.start, mine.end, theirs.start, theirs.end)
            if meet and all(_names_goal(event, goal) and TALK not in event.action for event in (mine, theirs)):
                same = mine.place.rpartition(":")[0] == theirs.place.rpartition(":")[0]
                best = max(best, 1.0 if same else 0.5)
    return best


def _companions(events: Mapping[str, Sequence[ScoredEvent]], task: SocialTask, goal: SubGoal) -> int:
    """The largest number of others that qualify at the same minute as the performer."""
    qualified = {
        name: [event for event in events[name] if _names_goal(event, goal) and _near(event, goal)] for name in events
    }
    starts = {event.start for found in qualified.values() for event in found}

    def at(name: str, minute: int) -> bool:
        return any(event.start <= minute < event.end for event in qualified[name])

    counts = (sum(at(name, minute) for name in task.others) for minute in starts if at(task.performer, minute))
    return max(counts, default=0)


def _near(event: ScoredEvent, goal: SubGoal) -> bool:
    return _is_there(event, goal) or goal.location.lower() in event.action.lower()


def _help(events: Mapping[str, Sequence[ScoredEvent]], task: SocialTask) -> float:
    """A sub-goal that a person did also counts for every later person; only the order is each person's own."""
    goals, done, best = task.task.goal, set[int](), 0.0
    for name in task.others:
        in_order = 0
        for event in events[name]:
            for index, goal in enumerate(goals):
                if (
                    TALK not in event.action
                    and _names_goal(event, goal)
                    and _is_there(event, goal)
                    and _strictly(event, goal)
                ):
                    done.add(index)
                    in_order += index == in_order
        reached = len(done) / len(goals)
        best = max(best, reached if reached < 1 else (1.0 if in_order == len(goals) else 0.5))
    return best


def _strictly(event: ScoredEvent, goal: SubGoal) -> bool:
    if goal.start_time == ANY:
        return True
    start = read_stamp(goal.start_time)
    return start < event.start < start + goal.duration_in_minutes
