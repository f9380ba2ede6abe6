"""Agents that are functions around a model: the model's calls are parts of the turn, journalled and counted."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import eq
from typing import Any

from pydantic import JsonValue
from pydantic_core import to_json

from eval_client.core.spend import Spend
from eval_client.endpoints.bound_model import BoundModel
from eval_client.endpoints.limited_model import SAME_REJECTIONS, LimitedModel
from eval_client.store.records import Turn
from eval_client.trial.agent_kind import ModelCaller
from eval_client.trial.episode import TrialHistory, answered
from proctor.agent_function import BROKEN_OFF, FunctionRaised, is_cancelled
from proctor.environment import AgentRefused, AgentStopped, AgentUnavailable, RequestRejected
from proctor.event_loop import played_clock
from proctor.llm.config import RESERVED
from proctor.llm.model import Completion
from proctor.llm.outage import paid_by
from proctor.llm.wire import Written
from proctor.session.time_limit import Untimed
from proctor.types import Action, Message, Tool, Usage
from task_server.wire.messages import Act

END_CHARS = 2_000
"""Of a request that a program wrote, so much is journalled."""


@dataclass(frozen=True)
class Scaffold:
    """An attempt's model: a function that asks the agent's model, one call at a time.

    A call is found in the journal by its turn, what it asks, and how often the turn asked that before: what an attempt
    that was broken off in mid-turn has paid is not paid again. What the endpoint's failure ends is ended so whatever
    the function makes of it; a refusal or a full context the function may catch.
    """

    caller: ModelCaller
    model: LimitedModel | BoundModel
    agent: str
    history: TrialHistory
    write_call: Callable[[Turn, int], Awaitable[None]]
    """Journals a call, with its number in the turn, from 0."""
    spend: Spend

    async def __call__(
        self, messages: Sequence[Message], tools: Sequence[Tool], metadata: Mapping[str, str]
    ) -> Completion:
        """The function's answer, with what its calls cost in sum. Raises what the model's failed call raised."""
        begun = played_clock()
        calls = _Calls(self, messages, metadata)
        try:
            action, told = await self.caller(calls.given, tools, metadata, calls.ask)
        except AgentStopped as stopped:
            if calls.failure is None:
                vars(stopped)["completion"] = calls.sum(Action(content=""), Usage(), begun)
                raise
            raise calls.failed() from stopped
        except FunctionRaised as raised:
            raise calls.failed(self._raised(raised)) from raised
        finally:
            calls.end()
        if is_cancelled():  # the function has caught that
            raise asyncio.CancelledError
        if calls.failure is not None:
            raise calls.failed()
        self.caller.alike.clear()
        if told is not None:
            self.spend.add(self.agent, told)
        return calls.sum(action, told or Usage(), begun)

    def _raised(self, raised: FunctionRaised) -> AgentUnavailable:
        """The fault of a function that raised; where many turns in a row raise alike, none of the agent's succeeds."""
        self.caller.alike[:] = [*filter(str(raised).__eq__, self.caller.alike), str(raised)]
        if len(self.caller.alike) >= SAME_REJECTIONS:
            return AgentRefused(f"{raised}, like {SAME_REJECTIONS} turns in a row")
        return RequestRejected(f"{raised} (after 1 try)")

    async def paid(self, call: Turn) -> Action:
        """Journal a call that was answered; the answer."""
        self.history.calls.append(call)
        try:
            with Untimed():
                await self.write_call(call, len(self.history.calls) - 1)
        except Exception:  # the store has no such row
            self.history.calls.remove(call)
            raise
        assert isinstance(call.reply, Act)
        return call.reply.action


class _Calls:
    """The model calls of one turn."""

    def __init__(self, scaffold: Scaffold, messages: Sequence[Message], metadata: Mapping[str, str]) -> None:
        self._scaffold, self._messages, self._metadata = scaffold, messages, metadata
        self._loop = asyncio.get_running_loop()
        self.given = tuple(messages)
        """What the function gets, which can't change the transcript."""
        self._known = {call.digest: call for call in scaffold.history.calls if str(call.turn) == metadata["turn"]}
        self._asked = Counter[bytes]()
        self._one_at_a_time, self._tasks = asyncio.Lock(), set[asyncio.Task[Any] | None]()
        self.lost = Usage()
        """What calls cost that have no answer."""
        self.failure: Exception | None = None
        """How a call failed that no agent has a part in."""
        self._stopped, self._over = False, False

    async def ask(
        self,
        messages: Sequence[Message | dict[str, Any]],
        tools: Sequence[Tool | dict[str, Any]] = (),
        **sampling: JsonValue,
    ) -> Action:
        """The model's answer to these messages; `sampling` takes precedence over the plan's.

        Raises ContextLimitExceeded and InputRefused, which end the trial unless they are caught.
        """
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("`model` is asked by the function itself, or by what it awaits, not from another loop")
        if wrong := RESERVED & sampling.keys():
            raise TypeError(f"`{min(wrong)}` is none of the model's sampling; leave it out")
        whole = self._messages
        if isinstance(messages, Written):
            whole = messages
        elif messages is not self.given:
            whole = [Message.model_validate(each) for each in messages]
        offered = [Tool.model_validate(each) for each in tools]
        question = to_json([list(whole), offered, sampling])
        self._asked[question] += 1
        digest = hashlib.blake2b(question + b"%d" % self._asked[question], digest_size=8).hexdigest()
        if (known := self._known.get(digest)) is not None and isinstance(known.reply, Act):
            return known.reply.action
        self._tasks.add(task := asyncio.current_task())
        try:
            async with self._one_at_a_time:
                if self.failure is not None or self._over:
                    raise asyncio.CancelledError  # no `except Exception` of a function goes on
                return await self._answer(whole, offered, sampling, digest)
        finally:
            self._tasks.discard(task)

    async def _answer(
        self, messages: Sequence[Message], tools: Sequence[Tool], sampling: dict[str, JsonValue], digest: str
    ) -> Action:
        try:
            completion = await self._scaffold.model(messages, tools, self._metadata, sampling)
            same = sum(1 for _ in takewhile(bool, map(eq, messages, self._messages)))
            told = _end(messages) if isinstance(messages, Written) else list(messages[same:])
            new = {"after": same, "messages": told, "tools": [tool.name for tool in tools]}
            asked = to_json(new | {"sampling": sampling}).decode()
            turn = {"turn": int(self._metadata["turn"]), "digest": digest, "observation": asked}
            return await self._scaffold.paid(Turn(**turn, **answered(completion, messages)))
        except AgentStopped as stopped:
            refused: Completion | None = getattr(stopped, "completion", None)
            self._lose(paid_by(stopped), refused and refused.usage)
            vars(stopped)["paid"] = None
            self._stopped = True
            raise
        except asyncio.CancelledError as cancelled:
            self._lose(paid_by(cancelled))
            if not self._stopped:  # else a group of tasks breaks off the others
                self.failure = self.failure or AgentUnavailable(BROKEN_OFF)
            raise
        except Exception as failure:
            self.failure = failure
            raise asyncio.CancelledError from failure

    def failed(self, instead: Exception | None = None) -> Exception:
        """How the turn failed; what its calls without an answer cost is the trial's."""
        self._scaffold.history.paid_before = self._scaffold.history.paid_before.plus(self.lost)
        failure = self.failure or instead
        assert failure is not None
        return failure

    def _lose(self, *paid: Usage | None) -> None:
        for usage in filter(None, paid):
            self.lost = self.lost.plus(usage)

    def sum(self, action: Action, told: Usage, begun: float) -> Completion:
        """The turn's answer, with what it cost."""
        calls = self._scaffold.history.calls
        last = calls[-1] if calls else None
        return Completion(
            action,
            Usage(*map(sum, zip(told, self.lost, *map(Usage.of, calls), strict=True))),
            self._scaffold.agent if last is None else last.model or "",
            _stop(action, last),
            played_clock() - begun,
            1 + sum(call.tries - 1 for call in calls),
            all(call.metered for call in calls),
            None if last is None else last.replica,
        )

    def end(self) -> None:
        """Break off the calls under way: the function has ended, or was ended."""
        self._over = True
        for task in self._tasks - {asyncio.current_task()}:
            if task is not None:
                task.cancel()


def _end(written: Written) -> list[Message]:
    """What is journalled of a request that has the whole conversation each time: its end."""
    text = written[0].content
    return [Message(role="user", content=f"(the end of {len(text)} characters) {text[-END_CHARS:]}")]


def _stop(action: Action, last: Turn | None) -> str | None:
    """Why an answer ended: as that of the last call, where it is the answer."""
    if last is not None and isinstance(last.reply, Act) and last.reply.action == action:
        return last.stop
    return "tool_calls" if action.tool_calls else "stop"
