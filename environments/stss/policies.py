"""Scripted performers, each a function of the transcript only."""

import json
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from environments.stss.agent.performer import Reply, toolset
from environments.stss.agent.script import PerformerScript, Visit, invitation
from environments.stss.characters.routine import chance
from environments.stss.dataset import ANY, SocialTask
from environments.stss.invitation import ONLINE, Leg, form_of
from environments.stss.prompt import NAMES
from environments.stss.reply import FormatError, PerformerReply, fields_of, fitted
from environments.stss.town.schedule import DATES, DAY, read_stamp, time_text
from proctor.environment import Policy
from proctor.tools import UnreadableCall, in_tools
from proctor.types import Action, Message

_CODE = re.compile(r"Request ([A-Z]\d?)\.")
_DAY_TWO = f"It is Tuesday {DATES[1]}"
_NEAR = re.compile(r"You are at .*?\. (.+?) is near:")
_SPEAKER = re.compile(r'(?:Request U\. |\n)([^\n"]+?) says: "')
_OVER = re.compile(r"The talk with (.+?) is over")
_SAYS = re.compile(r'says: "(.*?)"(?:\n|$)', re.DOTALL)
_INSTEAD = re.compile(r"How about `(when: [\d-]+ (\d\d):(\d\d) to [\d:]+)` instead")
SPARE = 2
"""Number of additional guests, since some do not come."""
NOON = 12 * 60
TIRED = 3
"""Number of own utterances in a talk after which a script ends it."""


class PerformerTurn(NamedTuple):
    """A request with its phase."""

    code: str
    text: str
    """Text of the last request."""
    phase: str
    """All requests of the phase, including the brief."""
    spoken: int
    """Number of replies in the phase."""


Handler = Callable[[PerformerTurn], object]


def _policy(**handlers: Handler) -> Policy:
    """A policy that answers each request with the JSON of the handler for its code, by default one of _THINKING."""

    def act(conversation: str, transcript: Sequence[Message]) -> Action:
        requests = [message.content for message in transcript if message.role == "user"]
        phase = "\n".join(requests)
        code = _CODE.findall(phase)[-1]
        spoken = sum(message.role == "assistant" for message in transcript)
        answer = (_THINKING | handlers)[code](PerformerTurn(code, requests[-1], phase, spoken))
        return Action(content=json.dumps(answer, ensure_ascii=False))

    return act


def called(policy: Policy) -> Policy:
    """A scripted performer's policy, in protocol `tools`."""
    return in_tools(policy, _form_of, _spelled, toolset(*NAMES))


def _form_of(reply: str) -> Reply:
    """The form of a scripted reply: only a reply of its own kind has the first field of that form."""
    try:
        fields = fields_of(reply)
    except FormatError as error:
        return UnreadableCall(str(error), "no_call")
    return next(fitted(fields, kind) for kind in NAMES if next(iter(kind.model_fields)) in fields)


def _spelled(reply: Reply) -> str:
    return reply.model_dump_json() if isinstance(reply, PerformerReply) else reply.why


def _row(start: int, end: int, activity: str, place: str) -> dict[str, str]:
    return {"start": time_text(start), "end": time_text(end), "activity": activity, "place": place}


def _plan(visits: Sequence[Visit], own: Sequence[dict[str, str]]) -> object:
    """The reply to the request for a day's plan; rows at home are added up to four rows."""
    rows = [_row(start, end, "looking for people to talk to", address) for start, end, address in visits] + list(own)
    spare = (("06:00", "06:10"), ("06:10", "06:20"), ("06:20", "06:30"), ("22:00", "22:30"))
    free = [{"start": a, "end": b, "activity": "resting", "place": "home"} for a, b in spare]
    if len(rows) < 4:
        rows = [*free[:3], *rows, *([] if rows else free[3:])]
    return {"wake": "06:00", "bed": "23:00", "schedule": rows}


_NOTHING = {"note": "", "commitment": None, "reschedule": None}
_THINKING: dict[str, Handler] = {
    "T1": lambda _: {"plan": ["Be where people are.", "Ask everybody clearly.", "Keep my appointments."]},
    "T2": lambda _: {"schedule_reminder": "Be where people are.", "checklist": ["what", "day and time", "where"]},
    "R": lambda _: {"notes": []},
    "N": lambda _: _NOTHING,
}


def ideal_inviter(task: SocialTask, script: PerformerScript) -> Policy:
    """Visits busy places, invites everyone needed with activity, time and place, and keeps its own commitments.

    It waits for nobody's wording: who neither asks nor is sorry has agreed.
    """
    wanted = task.task.target_num - 1 + SPARE if task.category in ("public", "online", "companions") else 1
    own_time = task.category in ("public", "online")
    end = min(script.start + script.minutes, 22 * 60 + 30)
    own = [_row(script.start, end, script.activity, script.place or "home")] if own_time else []
    invites = invitation(script.legs)

    def needed(partner: re.Match[str] | None) -> bool:
        return not task.task.target or (partner is not None and partner[1] in task.task.target)

    def encounter(turn: PerformerTurn) -> object:
        if not needed(_NEAR.search(turn.text)) or turn.phase.count(": agreed") >= wanted:
            return {"talk": False}
        return {"talk": True, "utterance": invites}

    def note(turn: PerformerTurn) -> object:
        promise, moved = None, _INSTEAD.findall(turn.phase)
        alone = moved and task.category == "companions"  # who comes at another hour
        if alone or _refuses(_partner_text(turn.phase)) or not needed(_OVER.search(turn.text)):
            return _NOTHING
        if task.category in ("appointment", "companions") and "- Committed:" not in turn.phase:
            start = int(moved[-1][1]) * 60 + int(moved[-1][2]) if moved else script.start
            row = _row(start, start + script.minutes, script.activity, script.place)
            promise = row | {"start": f"{DATES[1]} {row['start']}", "end": f"{DATES[1]} {row['end']}"}
        return {"note": "agreed", "commitment": promise, "reschedule": None}

    def utterance(turn: PerformerTurn) -> object:
        latest, begun = _partner_text(turn.text), "Request U. It is" in turn.text
        if not needed(_SPEAKER.search(turn.text)):
            return {"utterance": "I am well, thank you. Goodbye!", "end": True}
        if begun:
            return {"utterance": invites, "end": False}
        proposed = _INSTEAD.search(latest)
        if proposed and task.category in ("appointment", "help", "companions"):
            return {"utterance": proposed[1], "end": False}
        if proposed or _refuses(latest):
            return {"utterance": "What a pity. Goodbye!", "end": True}
        if _asks(latest) and turn.spoken < TIRED:
            return {"utterance": form_of(script.legs), "end": False}
        return {"utterance": "Thank you, see you then!", "end": True}

    def day(turn: PerformerTurn) -> object:
        second = _DAY_TWO in turn.text
        return _plan(script.visits[second], own if second else [])

    return _policy(D=day, E=encounter, U=utterance, N=note)


def _partner_text(text: str) -> str:
    """The last thing that a partner says in a request or a phase."""
    found = _SAYS.findall(text)
    return found[-1] if found else ""


def _refuses(said: str) -> bool:
    return "sorry" in said.lower()


def _asks(said: str) -> bool:
    return "?" in said or "Please say" in said


def _talker(
    opening: str, filled: str, visits: tuple[Sequence[Visit], Sequence[Visit]], *, agrees: bool = True
) -> Policy:
    """Makes the visits, invites everybody, fills the form once when asked, and records no commitments.

    `agrees`: whether it accepts other times that are proposed.
    """

    def utterance(turn: PerformerTurn) -> object:
        latest = _partner_text(turn.text)
        if proposed := _INSTEAD.search(latest):
            return {"utterance": proposed[1] if agrees else "No, that does not suit me.", "end": not agrees}
        if "Request U. It is" in turn.text:
            return {"utterance": opening, "end": False}
        asked = _asks(latest) and turn.spoken == 1
        return {"utterance": filled if asked else "See you then!", "end": not asked}

    return _policy(
        D=lambda turn: _plan(visits[_DAY_TWO in turn.text], []),
        E=lambda _: {"talk": True, "utterance": opening},
        U=utterance,
    )


def vague_inviter(script: PerformerScript) -> Policy:
    """Invites everybody it meets without a time; asked for the form, it names noon."""
    untimed = tuple(leg._replace(day=None, start=None, end=None) for leg in script.legs)
    first, *rest = untimed
    return _talker(invitation(untimed), form_of([first._replace(day=1, start=NOON), *rest]), script.visits)


def late(script: PerformerScript) -> Policy:
    """Invites everybody for an hour after the end of the activity."""
    return _talker(invitation(script.late), form_of(script.late), script.visits, agrees=False)


def liar(script: PerformerScript) -> Policy:
    """Invites everybody, agrees to every proposal, and stays at home on day 2."""
    return _talker(invitation(script.legs), form_of(script.legs), (script.visits[0], ()))


def goal_repeater(task: SocialTask, places: Sequence[str]) -> Policy:
    """Stays at one public place all day and repeats its goal; asked for the form, it fills in what the goal names."""
    visit = ((9 * 60, 20 * 60, places[0]),)
    legs = []
    for goal in task.task.goal:
        day, start = (None, None) if goal.start_time == ANY else divmod(read_stamp(goal.start_time), DAY)
        place = ONLINE if task.category == "online" else None if goal.location == ANY else goal.location
        legs.append(Leg(goal.keyword, place, day, start))
    return _talker(f"{task.FPG} Will you join?", form_of(legs), (visit, visit))


def silent() -> Policy:
    """Stays at home and never talks."""
    spoken = {"utterance": "...", "end": True}
    return _policy(D=lambda _: _plan((), []), E=lambda _: {"talk": False}, U=lambda _: spoken)


def random_performer(task: SocialTask, places: Sequence[str], seed: int) -> Policy:
    """Random well-formed replies: random places, small talk, or an invitation to a walk at a random time."""

    def dice(turn: PerformerTurn) -> object:
        roll = chance(task.env_name, seed, turn.phase, turn.spoken)
        if turn.code == "D":
            starts = sorted(roll.sample(range(7, 21), 4))
            return _plan([(hour * 60, hour * 60 + 60, roll.choice(places)) for hour in starts], [])
        legs = [Leg("go for a walk", roll.choice(places), 1, 60 * roll.randrange(8, 20))]
        if turn.code == "E":
            return {"talk": roll.random() < 0.5, "utterance": invitation(legs)}
        words = roll.choice(["Hello!", "How are you?", form_of(legs)])
        return {"utterance": words, "end": roll.random() < 0.5}

    return _policy(**dict.fromkeys("DEU", dice))
