"""The evaluated agent as a character: asks it, repairs once, falls back, and counts."""

from collections.abc import Callable
from typing import TypeVar

from environments.stss import prompt
from environments.stss import reply as protocol
from environments.stss.reply import ActionError, FormatError, PerformerReply, read
from environments.stss.town.schedule import Commitment
from proctor.environment import Agent, AgentStopped
from proctor.types import FinishReason, Message, Observation

MAX_INVALID = 10
"""Invalid replies beyond which a session ends as invalid."""
Kind = TypeVar("Kind", bound=PerformerReply)
Result = TypeVar("Result")


class Performer:
    """What the agent knows and how many calls it has left. History is cut wherever a phase begins."""

    def __init__(self, agent: Agent, brief: str, max_calls: int) -> None:
        self._agent, self._brief, self._left = agent, brief, max_calls
        self.calls = 0
        self.format_errors = 0
        self.action_errors = 0
        self.valid = 0
        self.stopped: FinishReason | None = None
        """Why the agent is no longer asked; None while it is."""
        self.plan: tuple[str, ...] = ()
        self.reminder = ""
        self.checklist: tuple[str, ...] = ()
        self.notes: list[str] = []
        self.commitments: list[Commitment] = []

    @property
    def reason(self) -> FinishReason:
        """How the session ends once the simulated time is over."""
        if self.stopped is not None:
            return self.stopped
        invalid = self.format_errors + self.action_errors
        if invalid > MAX_INVALID or (invalid and not self.valid):
            return (
                FinishReason.INVALID_FORMAT if self.format_errors >= self.action_errors else FinishReason.INVALID_ACTION
            )
        return FinishReason.COMPLETED

    def counts(self) -> dict[str, float]:
        """Replies, and how many of them were no object asked for, or asked for what can't be."""
        counts = {"calls": self.calls, "format_errors": self.format_errors, "action_errors": self.action_errors}
        return {name: float(count) for name, count in counts.items()}

    async def think(self) -> None:
        """Target-driven planning, T1 and T2."""
        self.plan = await self.ask(prompt.first_plan(), protocol.FirstPlan, lambda reply: reply.plan, begins=True) or ()
        reply = await self.ask(prompt.reminder(), protocol.Reminder, lambda reply: reply)
        if reply is not None:
            self.reminder, self.checklist = reply.schedule_reminder, reply.checklist

    async def ask(
        self, text: str, kind: type[Kind], check: Callable[[Kind], Result], *, begins: bool = False
    ) -> Result | None:
        """What the check makes of the agent's reply; None where the fallback holds. `begins` starts a phase."""
        if begins:
            digest = prompt.digest(self.plan, self.commitments, self.notes)
            text = f"{self._brief}\n\n{digest}\n\n{text}"
        for attempt in range(2):
            reply = await self._say(text, fresh=begins and attempt == 0)
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

    async def _say(self, text: str, *, fresh: bool) -> str | None:
        """The agent's reply; None where it is no longer asked."""
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
