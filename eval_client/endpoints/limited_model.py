"""An agent's model at one endpoint or replica: calls wait for the limits there, and for the run's spending limit.

A call is reserved before it is made, and waits while it does not fit.
"""

import asyncio
import random
import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING

from pydantic import JsonValue

from eval_client.core.limits.rates import Estimate
from eval_client.core.limits.throttle import EndpointLimit
from eval_client.core.spend import NOTHING, Need, Spend
from eval_client.endpoints.gate import Gate
from eval_client.metrics import EndpointMetrics
from proctor.environment import AgentRefused, AgentStopped, AgentUnavailable, RequestRejected
from proctor.llm.config import ChatConfig
from proctor.llm.model import ChatModel, Completion, ModelRefused
from proctor.llm.outage import EndpointDown, paid_by
from proctor.llm.wire import CHARS_PER_TOKEN
from proctor.session.time_limit import Untimed
from proctor.types import History, Message, Tool
from task_server.client.client import Call

if TYPE_CHECKING:  # agents of this process load what serves agents
    from eval_client.endpoints.called_agents import CalledAgent

UNKNOWN_COMPLETION = 4_096
"""Tokens of an answer, where the request sets no `max_tokens`."""
FIRST_ANSWERS = 8
"""Before so many answers of an agent nothing is known of their length."""
RECENT = 200
"""Answers that are remembered."""
Turn = tuple[str, str, str, str]
"""Agent, task, sample and epoch of a turn in flight."""
SAME_REJECTIONS = 8
_VARYING = re.compile(r"[\w-]*\d[\w-]*")
"""Numbers and ids, which differ between rejections that say the same."""


class BudgetExhausted(Exception):
    """The run has reached a spending limit, or its next call would; it can be resumed with a higher one."""


class Allowance:
    """The reservations of all turns in flight: what a call is estimated to cost, and its world's helper models."""

    def __init__(self, spend: Spend) -> None:
        self.spend = spend
        self._out: dict[Turn, tuple[Need, Need]] = {}
        self._changed = asyncio.Event()

    async def take(self, turn: Turn, call: Need) -> None:
        """Reserve a call and what helper models spend in its turn; waits while it does not fit and others are out.

        Raises BudgetExhausted where the limit is reached, or where nothing is out and it does not fit.
        """
        if turn in self._out:  # a function asks again in the same turn
            self.over(turn)
        helpers = self.spend.helpers_per_turn(turn[1])
        while not self.spend.fits(call.plus(helpers)):
            if exhausted := self.spend.exhausted() or (None if self._out else self.spend.short_of(call.plus(helpers))):
                self._wake()
                raise BudgetExhausted(exhausted)
            await self._changed.wait()
        self._out[turn] = call, helpers
        self.spend.reserved = self.spend.reserved.plus(call.plus(helpers))

    def returned(self, turn: Turn) -> None:
        """The call has ended, paid or not; the world goes on."""
        if turn in self._out:
            call, helpers = self._out[turn]
            self._out[turn] = NOTHING, helpers
            self._release(call)

    def over(self, turn: Turn) -> None:
        """The turn has ended."""
        call, helpers = self._out.pop(turn, (NOTHING, NOTHING))
        self._release(call.plus(helpers))

    def _release(self, need: Need) -> None:
        self.spend.reserved = self.spend.reserved.minus(need) if self._out else NOTHING
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class CallSize:
    """Estimates the tokens of an agent's next call from its answers."""

    def __init__(self, config: ChatConfig) -> None:
        sampling = config.request_sampling()
        most = sampling.get("max_tokens") or sampling.get("max_completion_tokens")
        self._most = most if isinstance(most, int) else None
        self._recent = deque[int](maxlen=RECENT)

    def of(self, messages: Sequence[Message], tools: Sequence[Tool]) -> tuple[int, int]:
        """Tokens of the prompt and of the answer.

        The prompt: those of the conversation's last call and its answer, and characters / 3.5 of what is new. The
        answer: the larger of the 95th percentile of the agent's answers and the conversation's last one.
        """
        counted = messages.counted if isinstance(messages, History) else None
        known, before, last = counted if counted is not None and counted[0] < len(messages) else (0, 0, 0)
        new = messages[known + 1 :] if before else messages
        chars = sum(len(message.content) for message in new)
        if not before:
            chars += sum(len(tool.model_dump_json()) for tool in tools)
        return before + ceil(chars / CHARS_PER_TOKEN), self._completion(last)

    def learn(self, messages: Sequence[Message], prompt: int, completion: int) -> None:
        """Learn from an answer."""
        self._recent.append(completion)
        if isinstance(messages, History):
            messages.counted = len(messages), prompt + completion, completion

    def _completion(self, last: int) -> int:
        if len(self._recent) < FIRST_ANSWERS:
            return self._most or UNKNOWN_COMPLETION
        usual = max(last, sorted(self._recent)[ceil(0.95 * len(self._recent)) - 1])
        return usual if self._most is None else min(usual, self._most)


class Rejections:
    """Counts an agent's rejected calls in a row that say the same, without an answer between.

    A rejection decides only once no earlier call is under way: that one may still be answered.
    """

    def __init__(self, agent: str, calls: Mapping[int, Call]) -> None:
        """`calls` are those under way, oldest first."""
        self._agent, self._calls = agent, calls
        self.count = 0
        """Set to 0 by an answer."""
        self._cause = ""

    def rejected(self, call: Call, cause: str) -> bool:
        """Record a call that was rejected for good; whether all calls of the agent are."""
        same = _VARYING.sub("#", cause)
        self.count = self.count + 1 if same == self._cause else 1
        self._cause = same
        return self.count >= SAME_REJECTIONS and call is next(
            one for one in self._calls.values() if one.what == self._agent
        )


class LimitedModel:
    """A model that waits while its endpoint pauses, or its rates are used up. Raises BudgetExhausted."""

    def __init__(
        self,
        model: "ChatModel | CalledAgent",
        agent: str,
        limit: EndpointLimit,
        allowance: Allowance,
        calls: dict[int, Call],
        *,
        size: CallSize | None,
        gate: Gate,
        metrics: EndpointMetrics,
        rejections: Rejections,
    ) -> None:
        self.model = model
        self._agent, self._limit, self._calls = agent, limit, calls
        self._allowance, self._spend, self._size = allowance, allowance.spend, size
        self._bounded = self._spend.bounded
        self._gate, self._metrics = gate, metrics
        self._estimate = Estimate()
        self._rejections = rejections

    async def __call__(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        metadata: Mapping[str, str],
        sampling: Mapping[str, JsonValue] | None = None,
    ) -> Completion:
        """The model's answer; `sampling` is what a function around the model asks for.

        Raises AgentRefused also where calls in a row were all rejected alike.
        """
        reserved = 0.0
        if self._gate.limited or self._limit.cool_until > time.monotonic():
            with Untimed():
                reserved = await self._slot(messages)
        turn = self._agent, metadata.get("task", ""), metadata.get("sample", ""), metadata.get("epoch", "")
        if self._bounded:
            with Untimed():
                await self._reserve(turn, messages, tools)
        call = Call(self._agent, time.monotonic())
        self._calls[id(call)] = call
        try:
            asked = self.model.complete(messages, tools, metadata, *([sampling] if sampling else ()))
            completion = await asked
            self._paid(completion, messages, reserved)
            self._spend.turns[turn[1]] += 1
            self._rejections.count = 0
            return completion
        except (AgentStopped, AgentUnavailable, EndpointDown, asyncio.CancelledError) as failed:
            if (paid := paid_by(failed)) is not None:
                self._spend.add(self._agent, paid)
            if isinstance(failed, AgentStopped):
                self._rejections.count = 0
            if isinstance(failed, ModelRefused) and failed.completion is not None:
                self._paid(failed.completion, messages, reserved)
            if not isinstance(failed, RequestRejected) or not self._rejections.rejected(call, str(failed)):
                raise
            raise AgentRefused(f"{failed}, like {SAME_REJECTIONS} calls in a row") from failed
        finally:
            del self._calls[id(call)]
            if self._bounded:
                self._allowance.returned(turn)

    async def _reserve(self, turn: Turn, messages: Sequence[Message], tools: Sequence[Tool]) -> None:
        """Wait until the run's limits allow a call of this estimated size. Raises BudgetExhausted."""
        prompt, completion = (0, 0) if self._size is None else self._size.of(messages, tools)
        await self._allowance.take(turn, self._spend.call(self._agent, prompt, completion))

    async def _slot(self, messages: Sequence[Message]) -> float:
        """Wait for the endpoint's pause to end and for a time slot; the tokens that the slot reserves."""
        await self._cooled()
        if not self._gate.limited:
            return 0.0
        tokens = self._estimate.of(_chars(messages)) if self._gate.rates.tpm else 0.0
        await self._gate.enter(tokens)
        await self._cooled()
        return tokens

    def _paid(self, completion: Completion, messages: Sequence[Message], reserved: float) -> None:
        """Count what an answer took and cost; tokens beyond those reserved become the gate's debt."""
        usage = completion.usage
        self._metrics.answer_s(self._agent).observe(completion.seconds)
        self._spend.add(self._agent, usage)
        if self._size is not None and self._bounded:
            self._size.learn(messages, usage.prompt_tokens, usage.completion_tokens)
        if completion.metered and reserved:
            self._gate.debt += usage.prompt_tokens + usage.completion_tokens - reserved
            self._estimate.learn(_chars(messages), usage.prompt_tokens, usage.completion_tokens)

    async def _cooled(self) -> None:
        """Wait until the endpoint's pause is over, up to a quarter longer at random to spread the requests."""
        now = time.monotonic()
        while (wait_s := self._limit.cool_for_s(now)) > 0:
            await asyncio.sleep(wait_s * random.uniform(1.0, 1.25))
            now = time.monotonic()


def _chars(messages: Sequence[Message]) -> int:
    return sum(len(message.content) for message in messages)
