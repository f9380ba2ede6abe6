"""The evaluated agent as a character: sends requests, asks again once after an invalid reply, and counts replies."""

from collections.abc import Callable
from typing import TypeVar

from environments.stss import prompt
from environments.stss.reply import ActionError, FirstPlan, FormatError, PerformerReply, Reminder, read
from environments.stss.town.schedule import Commitment
from proctor.environment import Agent, AgentStopped
from proctor.types import FinishReason, Message, Observation

MAX_INVALID = 10
"""A session with more invalid replies ends with an invalid finish reason."""
Kind = TypeVar("Kind", bound=PerformerReply)
Result = TypeVar("Result")


class Performer:
    """The agent with its memory and its remaining calls. Each phase is a new dialogue."""

    def __init__(self, agent: Agent, brief: str, max_calls: int) -> None:
        self._agent, self._brief, self._left = agent, brief, max_calls
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
        """Number of replies, of replies that can't be parsed, and of replies that ask for something not allowed."""
        counts = {"calls": self.calls, "format_errors": self.format_errors, "action_errors": self.action_errors}
        return {name: float(count) for name, count in counts.items()}

    async def think(self) -> None:
        """Target-driven planning: asks for the first plan and for the reminder."""
        self.plan = await self.ask(prompt.first_plan(), FirstPlan, lambda reply: reply.plan, begins=True) or ()
        reply = await self.ask(prompt.reminder(), Reminder, lambda reply: reply)
        if reply is not None:
            self.reminder, self.checklist = reply.schedule_reminder, reply.checklist

    async def ask(
        self, text: str, kind: type[Kind], check: Callable[[Kind], Result], *, begins: bool = False
    ) -> Result | None:
        """The result of `check` on the agent's reply; None if two replies are invalid or the agent is stopped.

        `begins` starts a phase. `check` raises ActionError for a reply that asks for something not allowed.
        """
        if begins:
            digest = prompt.digest(self.plan, self.commitments, self.notes)
            text = f"{self._brief}\n\n{digest}\n\n{text}"
        for attempt in range(2):
            reply = await self._request(text, fresh=begins and attempt == 0)
            if reply is None:
                return None
            try:
                result = check(read(reply, kind))
            except FormatError as error:
                self.format_errors += 1
                text = prompt.repair(error)
            except ActionError as error:
                self.action_errors += 1
                text = prompt.repair(error)
            else:
                self.valid += 1
                return result
        return None

    async def _request(self, text: str, *, fresh: bool) -> str | None:
        """The agent's reply; None if it is stopped."""
        if self.stopped is None and self._left == 0:
            self.stopped = FinishReason.TURN_LIMIT
        if self.stopped is not None:
            return None
        self._left -= 1
        observation = Observation(messages=(Message(role="user", content=text),), conversation="performer", fresh=fresh)
        try:
            action = await self._agent.act(observation)
        except AgentStopped as stopped:
            self.stopped = stopped.reason
            return None
        self.calls += 1
        return action.content
