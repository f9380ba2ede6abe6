"""A session of a task server that a client of another wire plays, and why one is refused."""

import asyncio
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from proctor.session.transcript import Transcript
from proctor.tools.histories import normalised
from proctor.types import Action, Finish, FinishReason, Message, Observation
from task_server.wire.messages import Act, Finished, SampleList, Started, Step
from task_server.wire.offered_tools import OfferedTools
from task_server.wire.turns import Reply


class GatewayError(Exception):
    """A request that the gateway refuses; the message says why."""


class NotOffered(GatewayError):
    """No task of this name is offered."""


class NoSuchSample(GatewayError):
    """The task has no sample of this id."""


class NoSlot(GatewayError):
    """No session of the task can start now."""


class SessionGone(GatewayError):
    """There is no session of this id: it never was, it ended, or it was idle for too long."""


class StepUnderWay(GatewayError):
    """The session still works on another request."""


@dataclass(frozen=True)
class Offer:
    """A task that foreign clients may play, and its slots now."""

    catalogue: SampleList
    total: int
    free: int
    waiting: str | None
    """Why no session can start; None if sessions can start."""


@dataclass(eq=False)
class ForeignSession:
    """A session that a foreign client plays: the observation to answer is in `state`, at the end the finish."""

    id: Hashable
    """The name that the wire's client knows it by."""
    task: SampleList
    sample: str
    state: Observation | Finish
    history: Sequence[Message] = ()
    """The conversation so far, as an agent sends it to its model; at the end with the agent's last answer."""
    turn: int = 0
    """How many answers were given."""
    anew: bool = False
    """Whether the last observation does not go on from the one before: its history is another one, or began anew."""
    answer_lost: bool = False
    """Whether the client was gone before it got the answer to its last step: it may then send the same step again."""
    used_at: float = 0.0
    """The last request, on the clock of the gateway."""
    started_at: float = field(default_factory=time.time)
    """The start, in Unix seconds."""
    updated_at: float = field(default_factory=time.time)
    """The last answer, in Unix seconds."""
    started: Started | None = None
    """None where the start failed: the state is then a fault."""
    server_id: str = ""
    given_ids: dict[str, str] = field(default_factory=dict)
    """The ids that the client gave the calls of its last answer, by those that they have; empty where it gave none."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _last: tuple[Reply, Hashable] | None = None
    _offered: OfferedTools = field(default_factory=OfferedTools)
    _transcript: Transcript = field(default_factory=Transcript)

    @property
    def live(self) -> bool:
        """Whether it holds a slot."""
        return not isinstance(self.state, Finish)

    def see(self, step: Step) -> None:
        """Take a step of the task server as the new state."""
        if isinstance(step, Finished):
            self.state = step.finish
        else:
            self.state = self._offered.observation(step)
            history = self._transcript.observe(self.state)
            self.anew, self.history = bool(self.history) and history is not self.history, history

    def fail(self, cause: str) -> None:
        """End it with a fault."""
        self.state = Finish.fault(FinishReason.TASK_ERROR, cause)

    def answered(self, reply: Reply, key: Hashable) -> Reply:
        """Note the answer to the current observation; the answer with an id of its own for every call."""
        assert isinstance(self.state, Observation)
        self._last, self.answer_lost, self.turn = (reply, key), False, self.turn + 1
        self.updated_at = time.time()
        if isinstance(reply, Act):
            action = normalised(reply.action, self.history)
            pairs = zip(action.tool_calls, reply.action.tool_calls, strict=True)
            self.given_ids = {made.id: given.id for made, given in pairs}
            self._transcript.answer(self.state, action)
            return Act(action=action)
        return reply

    def repeats(self, reply: Reply, key: Hashable, waited: bool) -> bool:
        """Whether a request is the last one again: by its key, or the same answer to a step whose result was not
        delivered when the request came. An agent may give the same answer in two turns, so equal texts prove nothing.
        """
        if self._last is None:
            return False
        last_reply, last_key = self._last
        return last_reply == reply and (last_key == key if key is not None else waited or self.answer_lost)


def act(content: str) -> Act:
    """An answer in a text."""
    return Act(action=Action(content=content))
