"""The requests to the performer, in our own words. Each begins with a code that scripted performers recognize."""

from collections.abc import Sequence

from environments.stss import reply
from environments.stss.dataset import ANY, SocialTask, Town
from environments.stss.invitation import FORM_RULE
from environments.stss.town.schedule import Commitment, Row, spoken, time_text

DIGEST_LINES = 12
LINE_CHARS = 180

_RULES = f"""\
Rules
- Two days are simulated: Monday 2023-02-13 is for making arrangements, on Tuesday 2023-02-14 things are done. The end
  is Tuesday 22:40.
- You decide where you spend the day, whom you talk to and what you say. Walking, sleeping and handling things happen by
  themselves. To meet people, be where people are.
- What counts is what people do: who is really there, at the right time, doing what the goal names. So say what it is,
  the date, the time and the place, in clear words, and keep your own appointments.
- You may talk to each person once a day. An utterance has at most {reply.UTTERANCE_WORDS} words.
- Times are HH:MM, 24-hour clock. A place is one of the list, such as `Sector` or `Sector:room`, or `home`."""
JSON_RULE = "- Answer every request with exactly one JSON object and nothing else."
CALL_RULE = (
    "- Answer every request by calling the function that it names, exactly once. You may think first, but a reply\n"
    "  without a call answers nothing."
)
RULES = f"{_RULES}\n{JSON_RULE}"
ANSWERS: dict[type[reply.PerformerReply], str] = {
    reply.FirstPlan: '{"plan": ["...", "..."]} with 3 to 5 short lines.',
    reply.Reminder: '{"schedule_reminder": "...", "checklist": ["..."]} with at most 4 items.',
    reply.Day: '{"wake": "07:00", "bed": "23:00", "schedule": [{"start": "08:00", "end": "09:30", "activity": "...",'
    ' "place": "..."}, ...]} with 4 to 14 rows in order, without overlaps; a row may name an "object". Between rows'
    " you are at home.",
    reply.Encounter: '{"talk": true, "utterance": "what you say first"} or {"talk": false}.',
    reply.Utterance: '{"utterance": "...", "end": false}; "end": true ends the talk with it.',
    reply.Note: '{"note": "...", "commitment": null or {"activity": "...", "place": "...", "start": "2023-02-14 15:00",'
    ' "end": "2023-02-14 16:00"}, "reschedule": null or at most 14 new rows for the rest of today}.',
    reply.Review: f'{{"notes": ["...", "..."]}} with at most {reply.MAX_NOTES} short lines.',
}
"""What protocol `text` says about the reply to each kind of request."""
NAMES = dict(zip(ANSWERS, ("plan", "remind", "day", "encounter", "say", "note", "review"), strict=True))
"""Protocol `tools` has a function for each kind of request."""
DESCRIPTIONS: dict[type[reply.PerformerReply], str] = {
    reply.FirstPlan: "Makes your plan: 3 to 5 short lines.",
    reply.Reminder: "Keeps what to remember when you plan a day, and at most 4 items that every talk must settle.",
    reply.Day: f"Plans your day: when you wake up and go to bed, and 4 to {reply.MAX_ROWS} rows in order, without "
    "overlaps; a row may name an object. Times are HH:MM. Between rows you are at home.",
    reply.Encounter: "Says whether you want to talk, and if so, what you say first.",
    reply.Utterance: f"Says something in the talk, at most {reply.UTTERANCE_WORDS} words; with `end` the talk ends.",
    reply.Note: "Keeps a note about the talk, and a commitment if you have promised to be somewhere, with times like "
    "`2023-02-14 15:00`. `reschedule` replaces the rest of today's schedule, by at most "
    f"{reply.MAX_ROWS} rows with times like `15:00`; null leaves it.",
    reply.Review: f"Keeps what you want to remember tomorrow: at most {reply.MAX_NOTES} short lines.",
}
REPAIR = "Your answer can't be used: {}. Give the answer to the same request again, as one JSON object."
"""The message after an invalid reply."""
CALL_REPAIR = "Your call can't be used: {}. Call the same function again."
"""The result of a call that asks for something not allowed."""
FIRST_PLAN = (
    "Request T1. How will you reach the goal? Think of whom to ask, where to meet them, and what must be agreed."
)
REMINDER = (
    "Request T2. Turn the plan into what to keep in mind when you plan a day, and into a list of what every talk"
    " must settle."
)
"""Asks for the reminder for planning a day, and the checklist for talks."""
REVIEW = "Request R. The day is nearly over. What do you want to remember tomorrow?"
"""Asks for notes at the end of day 1."""


def brief(town: Town, task: SocialTask, *, tdp: bool, history: bool, form: bool) -> str:
    """The fixed part of every phase: the performer's persona, the goal, how it is judged, the places, the rules.

    `form`: whether the one form that people driven by rules understand is among the rules. JSON_RULE or CALL_RULE ends
    the part.
    """
    persona, facts = town.personas[task.performer], town.history.get(task.performer, ()) if history else ()
    goal = "" if tdp else f" {task.FPG.rstrip('.')}."
    card = [
        f"You are {persona.name}, {persona.age} years old: {persona.innate}.",
        f"{persona.learned} {persona.currently}{goal} {persona.lifestyle}",
    ]
    if facts:
        card.append("You know: " + "; ".join(facts))
    aim = [f"Your goal: {task.FPG}"] if tdp else []
    people = f"People in town: {', '.join(task.others)}."
    return "\n".join(
        [*card, *aim, f"How it is judged: {task.Description}", _places(town, task), people, "", _RULES]
        + ([FORM_RULE] if form else [])
    )


def _places(town: Town, task: SocialTask) -> str:
    """The sectors that the performer knows, those that the task adds, and those of the goal, with their rooms."""
    added = [*task.required_spatial_mem, *task.shared_spatial_mem]
    named = [goal.location.split(":")[0] for goal in task.task.goal if goal.location != ANY]
    lines = ["Places (sector: rooms)"]
    for sector in dict.fromkeys((*town.known_places[task.performer], *added, *named)):
        rooms = [address.partition(":")[2] for address in town.world.arenas if address.startswith(f"{sector}:")]
        if sector in town.world:
            lines.append(f"- {sector}" + (f": {', '.join(rooms)}" if rooms else ""))
    return "\n".join(lines)


def digest(plan: Sequence[str], commitments: Sequence[Commitment], notes: Sequence[str]) -> str:
    """The performer's memory in at most twelve lines: plan, commitments, latest notes."""
    kept = [f"- Plan: {line}" for line in plan] + [f"- Committed: {promise.line()}" for promise in commitments]
    kept = kept[: DIGEST_LINES - 3]
    latest = [f"- {note}" for note in notes][-(DIGEST_LINES - len(kept)) :]
    lines = [line if len(line) <= LINE_CHARS else line[: LINE_CHARS - 3] + "..." for line in (*kept, *latest)]
    return "\n".join(["Your memory", *(lines or ["- nothing yet"])])


def day(now: int, reminded: str, commitments: Sequence[Commitment]) -> str:
    """Request D: the plan of a day."""
    kept = "".join(f"\nAlready committed: {promise.line()}" for promise in commitments)
    remember = f"\nKeep in mind: {reminded}" if reminded else ""
    return f"Request D. It is {spoken(now)}. Plan your day.{remember}{kept}"


def encounter(now: int, place: str, partner: str, doing: str, checklist: Sequence[str]) -> str:
    """Request E: whether to talk to somebody nearby."""
    return (
        f"Request E. It is {spoken(now)}. You are at {place}. {partner} is near: {doing}.{_settle(checklist)} Do you"
        " want to talk?"
    )


def approached(now: int, place: str, partner: str, text: str, checklist: Sequence[str]) -> str:
    """Request U: the first utterance in a talk that the partner began."""
    return (
        f"Request U. It is {spoken(now)}. You are at {place}. {partner} comes up to you.{_settle(checklist)}\n"
        f"{partner_line(partner, text)}"
    )


def partner_line(partner: str, text: str) -> str:
    """The part of a request U with the partner's utterance."""
    return f'{partner} says: "{text}"'


def answered(partner: str, text: str) -> str:
    """Request U: the next utterance in a talk."""
    return f"Request U. {partner_line(partner, text)}"


def note(partner: str, last: str | None, rows: Sequence[Row]) -> str:
    """Request N: note, commitment and changed schedule after a talk."""
    quote = f"{partner_line(partner, last)}\n" if last is not None else ""
    remaining = (f"{time_text(row.start)}-{time_text(row.end)} {row.activity}, {row.address}" for row in rows)
    left = "; ".join(remaining) or "nothing"
    return (
        f"{quote}Request N. The talk with {partner} is over. What do you note? If you have promised to be somewhere,"
        f" make it a commitment. Left of today's schedule: {left}."
    )


def _settle(checklist: Sequence[str]) -> str:
    return f" To be settled: {'; '.join(checklist)}." if checklist else ""
