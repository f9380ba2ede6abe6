"""Where a client's requests to one endpoint wait for its requests and tokens a minute."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from eval_client.core.rates import SLIP_S, Rate, RateRequest, Rates, Slot

AT_ONCE_S = 0.001
"""What is due so soon is due now."""


class _Waiter(NamedTuple):
    tokens: float
    slot: "asyncio.Future[Slot | None]"


class Gate:
    """Lets requests through at the moments that were reserved for them, the first to come first.

    Times are monotonic. `on_need` is called when moments are to be reserved.
    """

    def __init__(self) -> None:
        self.rates = Rates()
        self.limited = False
        """Whether requests have to pass here."""
        self.on_need: Callable[[], None] = lambda: None
        self.debt = 0.0
        """Tokens used beyond what was reserved, since that was last told."""
        self._waiting: deque[_Waiter] = deque()
        self._unused: deque[Slot] = deque()
        self._held: deque[Slot] = deque()
        """Reserved and still to come, whether or not a request has them."""
        self._sleeping = 0
        self._used: list[float] = []
        """The tokens of the requests let through since moments were last asked for."""
        self._waits_for: Rate = "rpm"

    def waits(self) -> tuple[int, Rate]:
        """How many requests wait, and for which of the rates."""
        return len(self._waiting) + self._sleeping, self._waits_for

    async def enter(self, tokens: float) -> None:
        """Come back when a request of about so many tokens may be sent."""
        slot = self._take_unused(time.monotonic()) or await self._next_slot(tokens)
        if slot is None:
            return
        self._used.append(tokens)
        self.debt += tokens - slot.tokens
        wait_s = slot.due - time.monotonic()
        if wait_s > AT_ONCE_S:
            self._sleeping += 1
            try:
                await asyncio.sleep(wait_s)
            finally:
                self._sleeping -= 1

    async def _next_slot(self, tokens: float) -> Slot | None:
        waiter = _Waiter(tokens, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        self.on_need()
        try:
            return await waiter.slot
        except asyncio.CancelledError:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            elif not waiter.slot.cancelled() and (slot := waiter.slot.result()):
                self._unused.append(slot)
            raise

    def _take_unused(self, now: float) -> Slot | None:
        """A moment that was reserved ahead; those that have gone by are given up, and their tokens with them."""
        while self._unused and not self._waiting:
            slot = self._unused.popleft()
            if slot.due > now - SLIP_S:
                return slot
            self.debt -= slot.tokens
        return None

    def ask(self, now: float) -> RateRequest:
        """What to reserve: for the requests that wait, and for as many to come as came lately."""
        while self._held and self._held[0].due <= now:
            self._held.popleft()
        ahead = self._used[len(self._unused) :]
        self._used, debt, self.debt = [], self.debt, 0.0
        return RateRequest(
            waiting=tuple(waiter.tokens for waiter in self._waiting),
            ahead=tuple(ahead),
            held=tuple(slot.tokens for slot in self._held),
            debt=debt,
        )

    def take(self, rates: Rates, slots: tuple[Slot, ...]) -> None:
        """Moments that were reserved, and the rates in force from now on."""
        self.rates, self.limited = rates, rates != Rates()
        self._held += slots
        for slot in slots:
            self._waits_for = slot.by
            if self._waiting:
                _let_through(self._waiting.popleft(), slot)
            else:
                self._unused.append(slot)
        if not self.limited:
            while self._waiting:
                _let_through(self._waiting.popleft(), None)

    def asks_again_in_s(self, now: float) -> float | None:
        """Seconds after which more moments can be had for those that wait still; None where nobody does."""
        if not self._waiting:
            return None
        return max(0.0, (self._held[-1].due - now) / 2) if self._held else 0.0


def _let_through(waiter: _Waiter, slot: Slot | None) -> None:
    if not waiter.slot.done():
        waiter.slot.set_result(slot)
