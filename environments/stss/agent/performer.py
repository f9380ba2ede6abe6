"""The evaluated agent as a character: puts requests as text or as functions, reads replies, and asks again once."""

from collections.abc import Callable
from functools import cache, partial
from typing import TypeVar, cast

from pydantic import JsonValue

from environments.stss import prompt
from environments.stss.appointments import ActionError
from environments.stss.reply import FirstPlan, FormatError, PerformerReply, Reminder, fields_of, fitted, read
from environments.stss.town.schedule import Commitment
from proctor.environment import Agent, AgentStopped
from proctor.tools import Arguments, CallReader, Function, ParsedReply, TextReader, Toolset, UnreadableCall
from proctor.types import Action, FinishReason, Message, Observation

MAX_INVALID = 10
"""A session with more invalid replies ends with an invalid finish reason."""
Kind = TypeVar("Kind", bound=PerformerReply)
Result = TypeVar("Result")
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


class Performer:
    """The agent with its memory and its remaining calls. Each phase is a new dialogue."""

    def __init__(self, agent: Agent, forms: Forms, brief: str, max_calls: int) -> None:
        self._agent, self._forms, self._brief, self._left = agent, forms, brief, max_calls
        self._last = ParsedReply[Reply](())
        self.calls = 0
        self.format_errors = 0
        self.action_errors = 0
        self.valid = 0
        self.stopped: FinishReason | None = None
        """Why the agent gets no more requests; None while it gets them."""
        self.plan: tuple[str, ...] = ()
        self.reminder = ""
        self.checklist: tuple[str, ...] = ()
        self.notes: list[str] = []
        self.commitments: list[Commitment] = []

    @property
    def reason(self) -> FinishReason:
        """The finish reason at the end of the simulated time."""
        if self.stopped is not None:
            return self.stopped
        invalid = self.format_errors + self.action_errors
        if invalid > MAX_INVALID or (invalid and not self.valid):
            return (
                FinishReason.INVALID_FORMAT if self.format_errors >= self.action_errors else FinishReason.INVALID_ACTION
            )
        return FinishReason.COMPLETED

    def counts(self) -> dict[str, float]:
        """Numbers of replies, of those that can't be parsed, and of those that ask for something not allowed.

        In protocol `tools` also those of its reader.
        """
        counts = {"calls": self.calls, "format_errors": self.format_errors, "action_errors": self.action_errors}
        return self._forms.metrics() | {name: float(count) for name, count in counts.items()}

    async def think(self) -> None:
        """Target-driven planning: asks for the first plan and for the reminder."""
        self.plan = await self.ask(prompt.FIRST_PLAN, FirstPlan, lambda reply: reply.plan, begins=True) or ()
        reply = await self.ask(prompt.REMINDER, Reminder, lambda reply: reply)
        if reply is not None:
            self.reminder, self.checklist = reply.schedule_reminder, reply.checklist

    async def ask(
        self, text: str, kind: type[Kind], check: Callable[[Kind], Result], *, begins: bool = False
    ) -> Result | None:
        """The result of `check` on the agent's reply; None if two replies are invalid or the agent is stopped.

        `begins` starts a phase. `check` raises ActionError for a reply that asks for something not allowed.
        """
        text = self._forms.request(text, kind)
        for attempt in range(2):
            reply = await self._reply(text, begins=begins and attempt == 0)
            if reply is None:
                return None
            if isinstance(reply, UnreadableCall):
                unknown = reply.kind == "unknown_function"
                self.action_errors += unknown
                self.format_errors += not unknown
                text = reply.why
                continue
            try:
                result = check(cast(Kind, reply))
            except ActionError as error:
                self.action_errors += 1
                text = self._forms.repair(error)
            else:
                self.valid += 1
                return result
        return None

    async def _reply(self, text: str, *, begins: bool) -> Reply | None:
        """The agent's reply to a request; None if it is stopped."""
        if self.stopped is None and self._left == 0:
            self.stopped = self._forms.limit_reason()
        if self.stopped is not None:
            return None
        self._left -= 1
        memory = prompt.digest(self.plan, self.commitments, self.notes)
        messages = self._forms.opening(self._brief, memory, text) if begins else self._last.answered([text])
        observation = Observation(messages=messages, tools=self._forms.tools, conversation="performer", fresh=begins)
        try:
            action = await self._agent.act(observation)
        except AgentStopped as stopped:
            self.stopped = stopped.reason
            return None
        self.calls += 1
        self._last = self._forms.read(action)
        return self._last.actions[0]


class Silent(Agent):
    """A performer without calls, for the floor."""

    async def act(self, observation: Observation) -> Action:
        raise AssertionError("a performer without calls is never asked")
