"""What the calls of a run may still spend: a call is reserved before it is made, and waits while it does not fit."""

import asyncio
from collections import deque
from collections.abc import Sequence
from math import ceil

from eval_client.core.spend import NOTHING, Need, Spend
from proctor.llm.config import ChatConfig
from proctor.types import History, Message, Tool

CHARS_PER_TOKEN = 3.5
UNKNOWN_COMPLETION = 4_096
"""Tokens of an answer, where the request sets no `max_tokens`."""
FIRST_ANSWERS = 8
"""Before so many answers of an agent nothing is known of their length."""
RECENT = 200
"""Answers that are remembered."""
Turn = tuple[str, str, str, str]
"""Agent, task, sample and epoch of a turn in flight."""


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
