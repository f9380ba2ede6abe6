"""How requests are put to the performer and how its replies are read: as text or as function calls."""

from functools import cache, partial

from pydantic import JsonValue

from environments.stss import prompt
from environments.stss.reply import FormatError, PerformerReply, fields_of, fitted, read
from proctor.tools import Arguments, CallReader, Function, TextReader, Toolset, UnreadableCall
from proctor.types import Message

Reply = PerformerReply | UnreadableCall
"""A reply's form, or why it has none."""
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
