"""The performer's functions in protocol `tools`: one for each kind of request, whose arguments are the reply's form."""

from functools import cache, partial

from pydantic import JsonValue

from environments.stss.reply import (
    MAX_NOTES,
    MAX_ROWS,
    UTTERANCE_WORDS,
    Day,
    Encounter,
    FirstPlan,
    Note,
    PerformerReply,
    Reminder,
    Review,
    Utterance,
    fields_of,
    fitted,
)
from proctor.tools import Arguments, Function, Toolset, UnreadableCall

NAMES: dict[type[PerformerReply], str] = {
    FirstPlan: "plan",
    Reminder: "remind",
    Day: "day",
    Encounter: "encounter",
    Utterance: "say",
    Note: "note",
    Review: "review",
}
DESCRIPTIONS: dict[type[PerformerReply], str] = {
    FirstPlan: "Makes your plan: 3 to 5 short lines.",
    Reminder: "Keeps what to remember when you plan a day, and at most 4 items that every talk must settle.",
    Day: f"Plans your day: when you wake up and go to bed, and 4 to {MAX_ROWS} rows in order, without overlaps; a row "
    "may name an object. Times are HH:MM. Between rows you are at home.",
    Encounter: "Says whether you want to talk, and if so, what you say first.",
    Utterance: f"Says something in the talk, at most {UTTERANCE_WORDS} words; with `end` the talk ends.",
    Note: "Keeps a note about the talk, and a commitment if you have promised to be somewhere, with times like "
    "`2023-02-14 15:00`. `reschedule` replaces the rest of today's schedule, by at most "
    f"{MAX_ROWS} rows with times like `15:00`; null leaves it.",
    Review: f"Keeps what you want to remember tomorrow: at most {MAX_NOTES} short lines.",
}


Reply = PerformerReply | UnreadableCall
"""A reply's form, or why it has none."""


@cache
def toolset(*kinds: type[PerformerReply]) -> Toolset[Reply]:
    """The functions of these kinds of request. A request offers the one of its own kind."""
    return Toolset(tuple(_function(kind) for kind in kinds))


def _function(kind: type[PerformerReply]) -> Function[Reply]:
    read, write = partial(fitted, kind=kind), partial(_arguments, kind)
    return _FormFunction(NAMES[kind], DESCRIPTIONS[kind], parameters_of(kind), read, write)


class _FormFunction(Function[Reply]):
    """A function whose arguments are checked by the reply's form alone, as the same object is in protocol `text`."""

    def checked(self, text: str, strict: bool) -> Arguments:
        return fields_of(text)


def _arguments(kind: type[PerformerReply], reply: Reply) -> Arguments | None:
    return reply.model_dump(mode="json") if isinstance(reply, kind) else None


def parameters_of(kind: type[PerformerReply]) -> dict[str, JsonValue]:
    """The JSON Schema of a form without references, which many servers refuse or ignore."""
    schema = kind.model_json_schema()
    definitions = schema.get("$defs", {})

    def inlined(part: JsonValue) -> JsonValue:
        if isinstance(part, list):
            return [inlined(item) for item in part]
        if not isinstance(part, dict):
            return part
        if isinstance(reference := part.get("$ref"), str):
            return inlined(definitions[reference.removeprefix("#/$defs/")])
        return {name: inlined(value) for name, value in part.items() if name not in _LEFT_OUT}

    return {name: inlined(value) for name, value in schema.items() if name not in _LEFT_OUT}


_LEFT_OUT = {"$defs", "title", "description", "default"}
"""Of pydantic's schemas: names and remarks that are about our code. No form has a field of such a name."""
