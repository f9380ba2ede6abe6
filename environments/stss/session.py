"""The performer's brief before a simulation, and the metrics after it."""

from environments.stss import prompt, published_scoring, scoring
from environments.stss.dataset import ANY, SocialTask, Town
from environments.stss.days.event_log import EventLog, kept_from
from environments.stss.town.clock import DAY
from proctor.environment import Agent
from proctor.types import Action, Observation


class Silent(Agent):
    """A performer without calls, for the floor."""

    async def act(self, observation: Observation) -> Action:
        raise AssertionError("a performer without calls is never asked")


def known_sectors(town: Town, task: SocialTask) -> list[str]:
    """The sectors in a performer's brief: those it knows, those the task adds, those of the goal."""
    added = [*task.required_spatial_mem, *task.shared_spatial_mem]
    named = [goal.location.split(":")[0] for goal in task.task.goal if goal.location != ANY]
    return [
        sector for sector in dict.fromkeys((*town.known_places[task.performer], *added, *named)) if sector in town.world
    ]


def brief(town: Town, task: SocialTask, *, tdp: bool, history: bool, form: bool) -> str:
    """The fixed part of every phase. `form`: whether the people understand one form of an invitation alone."""
    facts = town.history.get(task.performer, ()) if history else ()
    persona = town.personas[task.performer]
    return prompt.brief(persona, task, town.world, known_sectors(town, task), facts, tdp=tdp, form=form)


def metrics(event_log: EventLog, played: SocialTask, published: SocialTask) -> dict[str, float]:
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
        "strict": scoring.score(event_log, played),
        "compat": published_scoring.score(event_log, published),
        "talked_to": talked_to,
        "partners_met": float(len(met)),
        "invitations": float(sum(bool(talk.invited_to) for talk in event_log.talks if me in talk.people)),
        "commitments_made": float(len(promised)),
        "commitments_kept": float(kept),
        "commitments_dropped": float(sum(len(talk.dropped) for talk in event_log.talks)),
        "no_shows": float(len(promised) - kept),
    }
