"""The evaluated agent as a character: sends requests, asks again once after an invalid reply, and counts replies."""

from collections.abc import Callable
from typing import TypeVar, cast

from environments.stss import prompt
from environments.stss.agent.forms import Forms, Reply
from environments.stss.appointments import ActionError
from environments.stss.reply import FirstPlan, PerformerReply, Reminder
from environments.stss.town.schedule import Commitment
from proctor.environment import Agent, AgentStopped
from proctor.tools import ParsedReply, UnreadableCall
from proctor.types import Action, FinishReason, Observation

MAX_INVALID = 10
"""A session with more invalid replies ends with an invalid finish reason."""
Kind = TypeVar("Kind", bound=PerformerReply)
Result = TypeVar("Result")


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
