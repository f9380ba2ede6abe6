"""Requests wait at an endpoint's gate for the moments reserved for them, the first to come first; none is lost."""

import asyncio
import time

import pytest

from eval_client.core.limits.rates import Rates, Slot
from eval_client.endpoints import gate as gates
from eval_client.endpoints.gate import Gate
from tests.pace import slowly

RATES = Rates(rpm=60, tpm=6000)
SLIP_S = slowly(60)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "SLIP_S", SLIP_S)


def gate() -> Gate:
    made = Gate()
    made.take(RATES, ())
    return made


def slots(*tokens: float, due_in_s: float = -0.01) -> tuple[Slot, ...]:
    return tuple(Slot(time.monotonic() + due_in_s, each, "tpm") for each in tokens)


async def waiting(at: Gate, *tokens: float) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(at.enter(each)) for each in tokens]
    await asyncio.sleep(0)
    return tasks


async def test_requests_are_let_through_in_the_order_they_came_and_the_wait_can_be_seen() -> None:
    at = gate()
    first, second = await waiting(at, 10, 20)
    assert at.waits() == (2, "rpm")
    assert at.ask(time.monotonic()).waiting == (10, 20)
    at.take(RATES, slots(10))
    await first
    assert (second.done(), at.waits()) == (False, (1, "tpm"))
    at.take(RATES, slots(20))
    await second
    assert (at.waits()[0], at.debt) == (0, 0)


async def test_moments_reserved_ahead_are_used_without_asking_and_as_many_are_asked_for_as_came_lately() -> None:
    at, asked = gate(), []
    at.on_need = lambda: asked.append(1)
    at.take(RATES, slots(100, 100, 100))
    await at.enter(130)
    await at.enter(60)
    assert (asked, at.debt) == ([], -10)
    ask = at.ask(time.monotonic())
    assert (len(ask.ahead), ask.debt, at.debt) == (1, -10, 0)


async def test_a_moment_that_has_gone_by_is_not_used_and_its_tokens_are_given_back() -> None:
    at = gate()
    at.take(RATES, slots(70, due_in_s=-2 * SLIP_S))
    (task,) = await waiting(at, 5)
    assert at.debt == -70
    at.take(RATES, slots(5))
    await task


async def test_who_gives_up_waiting_leaves_its_moment_to_the_next() -> None:
    at = gate()
    first, second = await waiting(at, 1, 2)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert at.ask(time.monotonic()).waiting == (2,)
    at.take(RATES, slots(2))
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    await at.enter(2)


async def test_all_are_let_through_once_no_rate_is_in_force() -> None:
    at = gate()
    tasks = await waiting(at, 1, 2)
    at.take(Rates(), ())
    await asyncio.gather(*tasks)
    assert not at.limited
