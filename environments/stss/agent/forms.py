"""How requests are put to the performer and how its replies are read: as text, as plain words, or as function calls."""

import re
from collections.abc import Callable, Mapping
from functools import cache, partial

from pydantic import Field, JsonValue, ValidationError

from environments.stss import prompt
from environments.stss.reply import (
    MAX_NOTES,
    Encounter,
    FirstPlan,
    FormatError,
    Line,
    PerformerReply,
    Reminder,
    Review,
    Utterance,
    fields_of,
    fitted,
    read,
)
from environments.stss.town.files import first_problem
from proctor.tools import Arguments, CallReader, Function, TextReader, Toolset, UnreadableCall
from proctor.types import Message

Reply = PerformerReply | UnreadableCall
"""A reply's form, or why it has none."""
NOBODY = "no"
"""The whole reply in words of a performer that does not want to talk."""
NOTHING = "nothing"
"""The whole reply in words of a performer without notes."""
_BULLET = re.compile(r"^\s*(?:[-*•]+|\d+[.):])\s*")
_MARKS = ' \t\n"“”.!*'
"""What may stand around a reply of one word."""
_LEFT_OUT = {"$defs", "title", "description", "default"}
"""Of pydantic's schemas: names and remarks that are about our code. No form has a field of such a name."""


class Forms(TextReader[Reply]):
    """Puts requests that are answered with a JSON object, and reads the replies; base of the other protocols' forms.

    A session makes its own, since it reads replies to the latest request and counts what it reads.
    """

    rule, repair_text = prompt.JSON_RULE, prompt.REPAIR
    kind: type[PerformerReply]
    """The kind of the latest request."""

    def __init__(self) -> None:
        super().__init__(self._parsed)

    def opening(self, brief: str, memory: str, request: str) -> tuple[Message, ...]:
        """The first messages of a phase."""
        return (Message(role="user", content=f"{brief}\n{self.rule}\n\n{memory}\n\n{request}"),)

    def request(self, text: str, kind: type[PerformerReply]) -> str:
        """A request's text, with how to answer it; from now on replies of its kind are read."""
        self.kind = kind
        return f"{text}\nAnswer: {prompt.ANSWERS[kind]}"

    def _parsed(self, reply: str) -> Reply:
        try:
            return read(reply, self.kind)
        except FormatError as error:
            return UnreadableCall(self.repair(error), "bad_arguments")

    def repair(self, error: Exception) -> str:
        """The answer to a reply that can't be used."""
        return self.repair_text.format(error)


class PlainForms(Forms):
    """Requests in words, as the published code puts them to weak models; only days and notes are JSON objects."""

    rule = prompt.PLAIN_RULE

    def request(self, text: str, kind: type[PerformerReply]) -> str:
        in_json = super().request(text, kind)
        return f"{text}\nAnswer: {prompt.PLAIN_ANSWERS[kind]}" if kind in READERS else in_json

    def _parsed(self, reply: str) -> Reply:
        if self.kind not in READERS:
            return super()._parsed(reply)
        try:
            return READERS[self.kind](reply)
        except ValidationError as error:
            why = prompt.PLAIN_REPAIR.format("{}: {}".format(*first_problem(error)))
            return UnreadableCall(why, "bad_arguments")


class CallForms(CallReader[Reply], Forms):
    """Requests that offer one function each, to be called. It counts over all functions of a session."""

    repair_text = prompt.CALL_REPAIR

    def __init__(self, *, strict: bool) -> None:
        super().__init__(toolset(*prompt.NAMES), strict=strict)

    def opening(self, brief: str, memory: str, request: str) -> tuple[Message, ...]:
        rules = Message(role="system", content=f"{brief}\n{prompt.CALL_RULE}")
        return (rules, Message(role="user", content=f"{memory}\n\n{request}"))

    def request(self, text: str, kind: type[PerformerReply]) -> str:
        self._toolset = toolset(kind)
        self.tools = self._toolset.tools()
        return f"{text}\nCall `{prompt.NAMES[kind]}`."


# Functions: one for each kind of request, whose arguments are the reply's form.


@cache
def toolset(*kinds: type[PerformerReply]) -> Toolset[Reply]:
    """The functions of these kinds of request. A request offers the one of its own kind."""
    return Toolset(tuple(map(_function, kinds)))


class _FormFunction(Function[Reply]):
    """A function whose arguments are checked by the reply's form alone, as the same object is in protocol `text`."""

    def checked(self, text: str, strict: bool) -> Arguments:
        return fields_of(text)


def _function(kind: type[PerformerReply]) -> Function[Reply]:
    def write(reply: Reply) -> Arguments | None:
        return reply.model_dump(mode="json") if isinstance(reply, kind) else None

    name, description = prompt.NAMES[kind], prompt.DESCRIPTIONS[kind]
    return _FormFunction(name, description, _parameters(kind), partial(fitted, kind=kind), write)


def _parameters(kind: type[PerformerReply]) -> dict[str, JsonValue]:
    """The JSON Schema of a form without references, which many servers refuse or ignore."""
    schema = kind.model_json_schema()

    def inlined(part: JsonValue) -> JsonValue:
        if isinstance(part, list):
            return [inlined(item) for item in part]
        if not isinstance(part, dict):
            return part
        if isinstance(reference := part.get("$ref"), str):
            return inlined(schema["$defs"][reference.removeprefix("#/$defs/")])
        return {name: inlined(value) for name, value in part.items() if name not in _LEFT_OUT}

    return {name: inlined(value) for name, value in schema.items() if name not in _LEFT_OUT}


# Replies in plain words, for models that fail at JSON: how they are read, and how scripted performers write them.


class PlainPlan(FirstPlan):
    """A first plan in lines; a weak model's may be short."""

    plan: tuple[Line, ...] = Field(min_length=1, max_length=5)


def said(reply: str) -> str:
    """The words of a reply: without a paragraph before them that announces them, and without quotes around them.

    The published code takes the second paragraph where the first one ends like an announcement.
    """
    paragraphs = [part.strip() for part in reply.strip().split("\n\n") if part.strip()]
    if len(paragraphs) > 1 and paragraphs[0].endswith(":"):
        paragraphs = [paragraphs[1]]
    words = "\n\n".join(paragraphs)
    return words[1:-1] if len(words) > 1 and words[0] + words[-1] in ('""', "“”") else words


def _lines(reply: str) -> list[str]:
    """The lines that say something, without bullets; a first one that announces the others is left out."""
    lines = [text for text in (_BULLET.sub("", line).strip() for line in reply.splitlines()) if text]
    return lines[1:] if len(lines) > 1 and lines[0].endswith(":") else lines


def _is(reply: str, word: str) -> bool:
    return reply.strip(_MARKS).lower() in ("", word)


def _reminder(reply: str) -> Reminder:
    lines = _lines(reply)
    return Reminder(schedule_reminder=" ".join(lines[:1]), checklist=tuple(lines[1:5]))


READERS: Mapping[type[PerformerReply], Callable[[str], PerformerReply]] = {
    FirstPlan: lambda reply: PlainPlan(plan=tuple(_lines(reply)[:5])),
    Reminder: _reminder,
    Encounter: lambda reply: Encounter(talk=not _is(reply, NOBODY), utterance=said(reply)),
    Utterance: lambda reply: Utterance(utterance=said(reply)),
    Review: lambda reply: Review(notes=() if _is(reply, NOTHING) else tuple(_lines(reply)[:MAX_NOTES])),
}
"""By kind of request, for those that are answered in words. As published, an utterance never ends a talk."""


def spelled(reply: PerformerReply) -> str:
    """A scripted reply in the form asked for: words, or a JSON object for kinds without a reader."""
    match reply:
        case FirstPlan():
            return "\n".join(reply.plan)
        case Reminder():
            return "\n".join((reply.schedule_reminder, *reply.checklist))
        case Encounter():
            return reply.utterance if reply.talk else NOBODY
        case Utterance():
            return reply.utterance
        case Review():
            return "\n".join(reply.notes) or NOTHING
        case _:
            return reply.model_dump_json()
