"""Agents that are functions around a model: the model's calls are parts of the turn, journalled and counted."""

import asyncio
import hashlib
import time
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
from eval_client.endpoints.limited_model import LimitedModel
from eval_client.store.records import Turn
from eval_client.trial.episode import TrialHistory, answered
from proctor.agent_function import BROKEN_OFF, FunctionCaller, FunctionRaised
from proctor.environment import AgentStopped, AgentUnavailable, RequestRejected
from proctor.llm.model import Completion
from proctor.llm.outage import Untimed, paid_by
from proctor.types import Action, Message, Tool, Usage
from task_server.wire.messages import Act


@dataclass(frozen=True)
class Scaffold:
    """An attempt's model: a function that asks the agent's model, one call at a time.

    A call is found in the journal by its turn, what it asks, and how often the turn asked that before: what an attempt
    that was broken off in mid-turn has paid is not paid again. What the endpoint's failure ends is ended so whatever
    the function makes of it; a refusal or a full context the function may catch.
    """

    caller: FunctionCaller
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
        begun = time.monotonic()
        calls = _Calls(self, messages, metadata)
        try:
            action, told = await self.caller(messages, tools, metadata, calls.ask)
            if calls.failure is not None:
                raise calls.failure
        except AgentStopped as stopped:
            if calls.failure is None:
                vars(stopped)["completion"] = calls.sum(Action(content=""), Usage(), begun)
                raise
            raise calls.failure from stopped
        except Exception as failed:
            self.history.paid_before = self.history.paid_before.plus(calls.lost)
            if isinstance(failed, FunctionRaised):
                raise calls.failure or RequestRejected(f"{failed} (after 1 try)") from failed
            raise
        finally:
            calls.end()
        if told is not None:
            self.spend.add(self.agent, told)
        return calls.sum(action, told or Usage(), begun)

    async def paid(self, call: Turn) -> Action:
        """Journal a call that was answered; the answer."""
        self.history.calls.append(call)
        with Untimed():
            await self.write_call(call, len(self.history.calls) - 1)
        assert isinstance(call.reply, Act)
        return call.reply.action


class _Calls:
    """The model calls of one turn."""

    def __init__(self, scaffold: Scaffold, messages: Sequence[Message], metadata: Mapping[str, str]) -> None:
        self._scaffold, self._messages, self._metadata = scaffold, messages, metadata
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
        if self._over:
            raise RuntimeError("the turn of this `model` is over; take that of the turn that is played")
        whole = self._messages
        if messages is not whole:
            whole = [Message.model_validate(each) for each in messages]
        offered = [Tool.model_validate(each) for each in tools]
        question = to_json([list(whole), offered, sampling])
        self._asked[question] += 1
        digest = hashlib.blake2b(question + b"%d" % self._asked[question], digest_size=8).hexdigest()
        if (known := self._known.get(digest)) is not None and isinstance(known.reply, Act):
            return known.reply.action
        self._tasks.add(asyncio.current_task())
        async with self._one_at_a_time:
            if self.failure is not None:
                raise self.failure
            return await self._answer(whole, offered, sampling, digest)

    async def _answer(
        self, messages: Sequence[Message], tools: Sequence[Tool], sampling: dict[str, JsonValue], digest: str
    ) -> Action:
        try:
            completion = await self._scaffold.model(messages, tools, self._metadata, sampling)
            same = sum(1 for _ in takewhile(bool, map(eq, messages, self._messages)))
            new = {"after": same, "messages": list(messages[same:]), "tools": [tool.name for tool in tools]}
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
            raise

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
            "tool_calls" if action.tool_calls else "stop",
            time.monotonic() - begun,
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
