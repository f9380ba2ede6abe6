"""Scores an event log in `strict`: by people's activities, actual positions and times."""

import re
from collections.abc import Mapping, Sequence


from environments.stss import published_scoring
from environments.stss.dataset import ANY, SocialTask, SubGoal
from environments.stss.days.event_log import ActivityRecord, EventLog, intervals, kept_from
from environments.stss.published_scoring import Stretch, meeting, together
from environments.stss.town.clock import DAY, END, read_stamp


def score(event_log: EventLog, task: SocialTask) -> float:
    """The score, from 0 to 1, by the task's category."""
    found = hits(event_log, task)
    wanted = max(1, task.task.target_num - 1)
    match task.category:
        case "public" | "online":
            return min(sum(bool(found[name][0]) for name in task.others) / wanted, 1.0)
        case "appointment":
            return meeting(found[task.performer][0], [hit for name in task.task.target for hit in found[name][0]])
        case "companions":
            return min(together(found[task.performer][0], [found[name][0] for name in task.others]) / wanted, 1.0)
        case "help":
            return max((_errand(found[name]) for name in task.others), default=0.0)


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


def window(goal: SubGoal) -> tuple[int, int]:
    """First minute and end (exclusive) of a sub-goal's time; all of day 2 if it names none."""
    if goal.start_time == ANY:
        return DAY, 2 * DAY
    start = read_stamp(goal.start_time)
    return start, start + goal.duration_in_minutes


def _hits(records: Sequence[ActivityRecord], goal: SubGoal) -> list[Stretch]:
    start, end = window(goal)
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in goal.keywords), re.IGNORECASE)
    return [
        Stretch(max(record.t, start), min(until, end), record.activity, f"{record.sector}:{record.arena}")
        for record, until in intervals(records, END)
        if record.kind == "act"
        and min(until, end) > max(record.t, start)
        and inside(record, goal.location)
        and pattern.search(record.activity)
    ]


def inside(record: ActivityRecord, location: str) -> bool:
    """Whether a record's position is in a location: a sector, `sector:arena`, or ANY."""
    return location in (ANY, record.sector, f"{record.sector}:{record.arena}")


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
        "compat": published_scoring.score(event_log, published),
        "talked_to": talked_to,
        "partners_met": float(len(met)),
        "invitations": float(sum(bool(talk.invited_to) for talk in event_log.talks if me in talk.people)),
        "commitments_made": float(len(promised)),
        "commitments_kept": float(kept),
        "commitments_dropped": float(sum(len(talk.dropped) for talk in event_log.talks)),
        "no_shows": float(len(promised) - kept),
    }
