"""The gate at which a client's requests to one endpoint wait for their time slots."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from eval_client.core.limits.rates import SLIP_S, Rate, RateRequest, Rates, Slot

AT_ONCE_S = 0.001
"""A slot that is due within this time is due now."""


class _Waiter(NamedTuple):
    tokens: float
    slot: "asyncio.Future[Slot | None]"


class Gate:
    """Lets requests through in the time slots reserved for them, in order of arrival.

    Times are monotonic. `on_need` is called when more slots are needed.
    """

    def __init__(self) -> None:
        self.rates = Rates()
        self.limited = False
        """Whether requests need a slot."""
        self.on_need: Callable[[], None] = lambda: None
        self.debt = 0.0
        """Tokens used beyond those reserved, since the debt was last reported."""
        self._waiting: deque[_Waiter] = deque()
        self._unused: deque[Slot] = deque()
        self._held: deque[Slot] = deque()
        """Reserved slots that are not yet due, used ones included."""
        self._sleeping = 0
        self._used: list[float] = []
        """The tokens of the requests let through since slots were last requested."""
        self._waits_for: Rate = "rpm"

    def waits(self) -> tuple[int, Rate]:
        """(how many requests wait, for which rate)"""
        return len(self._waiting) + self._sleeping, self._waits_for

    async def enter(self, tokens: float) -> None:
        """Return when a request of about `tokens` tokens may be sent."""
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
        """A slot that was reserved ahead; None if there is none. The tokens of expired slots are taken off the debt."""
        while self._unused and not self._waiting:
            slot = self._unused.popleft()
            if slot.due > now - SLIP_S:
                return slot
            self.debt -= slot.tokens
        return None

    def ask(self, now: float) -> RateRequest:
        """The slots to request: for the requests that wait, and for as many more as came since the last time."""
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
        """Use these reserved slots, and these rates from now on."""
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
        """Seconds until more slots should be requested for the requests that still wait; None if none wait."""
        if not self._waiting:
            return None
        return max(0.0, (self._held[-1].due - now) / 2) if self._held else 0.0


def _let_through(waiter: _Waiter, slot: Slot | None) -> None:
    if not waiter.slot.done():
        waiter.slot.set_result(slot)
