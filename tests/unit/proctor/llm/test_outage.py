"""Calls to an endpoint that is down wait in turn, use no try, and go on with its first answer."""

import asyncio
import contextlib
import time

import pytest

from proctor.environment import AgentRefused
from proctor.llm import outage
from proctor.llm.outage import EndpointDown, Failed, Outage, Waited
from proctor.llm.outcome import Outcome
from proctor.session.time_limit import TimeLimit, Untimed
from tests.pace import slowly

REFUSED = Failed("connection refused", sent=False)
BROKEN = Failed("status 500", status=500, judged=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"DOWN_AFTER_S": 0.02, "FIRST_WAIT_S": 0.005, "LONGEST_WAIT_S": 0.02}.items():
        monkeypatch.setattr(outage, name, value)


class Server:
    """What a request gets: a failure until `back` of them were made, then an answer."""

    def __init__(self, failure: Failed, back: int | None) -> None:
        self.failure, self.back = failure, back
        self.requests = self.at_once = self.most_at_once = 0
        self.short_answer: str | Failed = BROKEN

    async def send(self) -> str | Failed:
        self.requests += 1
        self.at_once += 1
        if self.first < self.requests <= (self.back or 0):
            self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return "hello" if self.back is not None and self.requests > self.back else self.failure

    first = 0
    """Requests that may be made at once: one of each call in flight."""

    async def short(self) -> str | Failed:
        return self.short_answer


async def asked(one: Outage, server: Server, calls: int) -> list[object]:
    server.first = calls
    async with asyncio.timeout(slowly(20)):
        return await asyncio.gather(
            *(one.ask(server.send, server.short, Waited()) for _ in range(calls)), return_exceptions=True
        )


async def test_a_dead_endpoint_costs_each_call_one_request_and_is_then_asked_by_one_at_a_time() -> None:
    """Sixteen trials in flight at a server that starts: none fails, and it sees sixteen requests and the probes."""
    server, one = Server(REFUSED, back=16 + 6), Outage(60)
    assert await asked(one, server, 16) == ["hello"] * 16
    assert server.most_at_once == 1  # while it was down
    assert server.requests <= 16 + 6 + 16
    assert (one.since, one.down) == (None, False)


async def test_the_endpoint_is_down_meanwhile_and_new_calls_send_nothing() -> None:
    changes: list[bool] = []
    went_down = asyncio.Event()

    def changed() -> None:
        changes.append(one.down)
        went_down.set()

    one = Outage(60, changed)
    server = Server(REFUSED, back=None)
    first = asyncio.create_task(one.ask(server.send, server.short, Waited()))
    async with asyncio.timeout(slowly(20)):
        await went_down.wait()
    before, late = server.requests, Server(REFUSED, back=0)
    second = asyncio.ensure_future(one.ask(late.send, late.short, Waited()))
    await asyncio.sleep(0)
    assert late.requests == 0
    server.back = before
    async with asyncio.timeout(slowly(20)):
        assert [await first, await second] == ["hello", "hello"]
    assert changes == [True, False]


@pytest.mark.parametrize("short", ["1", Failed("max_tokens is too small", Outcome.REJECTED, 400)], ids=["token", "400"])
async def test_a_request_that_breaks_a_working_server_is_a_failed_try(short: str | Failed) -> None:
    """A prompt that always gives 500 is no outage: after three of them the server is asked for one token."""
    server = Server(BROKEN, back=None)
    server.short_answer = short
    waits = Waited()
    async with asyncio.timeout(slowly(20)):
        assert await Outage(60).ask(server.send, server.short, waits) == BROKEN
    assert server.requests == 3


async def test_a_failure_among_answers_is_a_failed_try() -> None:
    one, server = Outage(60, clock=lambda: 0.0), Server(BROKEN, back=None)  # it never becomes down
    failing = asyncio.create_task(one.ask(server.send, server.short, Waited()))
    await asyncio.sleep(0.001)
    answered = Server(BROKEN, back=0)
    await one.ask(answered.send, answered.short, Waited())
    async with asyncio.timeout(slowly(20)):
        assert await failing == BROKEN


async def test_an_endpoint_that_stays_silent_refuses_its_agent_after_the_patience() -> None:
    (failed,) = await asked(Outage(0.05), Server(REFUSED, back=None), 1)
    assert isinstance(failed, AgentRefused)
    assert "connection refused: no answer for 0 s; check `base_url`, or set `patience_s`" in str(failed)


async def test_a_run_that_drains_lets_no_call_wait() -> None:
    one, server = Outage(60), Server(REFUSED, back=None)
    call = asyncio.create_task(one.ask(server.send, server.short, Waited()))
    await asyncio.sleep(0.001)
    one.release()
    with pytest.raises(EndpointDown):
        async with asyncio.timeout(slowly(20)):
            await call


async def test_a_pause_ends_with_the_run_and_with_the_patience() -> None:
    one = Outage(60)
    paused = asyncio.create_task(one.pause(3600, "status 429"))
    await asyncio.sleep(0.001)
    one.release()
    with pytest.raises(EndpointDown):
        async with asyncio.timeout(slowly(20)):
            await paused
    one = Outage(0.05)
    async with asyncio.timeout(slowly(20)):
        await one.pause(3600, "status 429")
        with pytest.raises(AgentRefused, match="status 429: no answer for"):
            await one.pause(3600, "status 429")


@pytest.mark.parametrize("kind", [Outcome.REJECTED, Outcome.UNPAID, Outcome.UNAUTHORIZED])
async def test_what_waiting_does_not_mend_is_not_waited_for(kind: Outcome) -> None:
    failed = Failed("no", kind, 400)
    server, one = Server(failed, back=None), Outage(60)
    assert await asked(one, server, 1) == [failed]
    assert (server.requests, one.since) == (1, None)


async def test_a_limit_of_time_stands_still_while_a_call_waits() -> None:
    """The call waits several times as long as the attempt may take; only then its time is over."""
    server = Server(REFUSED, back=12)

    async def attempt() -> float:
        limit = TimeLimit(0.03)
        with contextlib.suppress(TimeoutError):
            async with limit:
                await Outage(60).ask(server.send, server.short, Waited())
                await asyncio.sleep(60)
        assert limit.expired
        return limit.waited_s

    async with asyncio.timeout(slowly(20)):
        assert await asyncio.create_task(attempt()) > 0.06


async def test_what_begins_in_the_moment_a_limit_rings_is_not_broken_off() -> None:
    """The loop is late, and finds at once that the task may go on and that its time is over."""
    loop, answered = asyncio.get_running_loop(), asyncio.Event()

    async def attempt() -> bool:
        written = False
        with contextlib.suppress(TimeoutError):
            async with TimeLimit(0.04) as limit:
                loop.call_later(0.01, time.sleep, 0.1)
                loop.call_later(0.03, answered.set)
                await answered.wait()
                with Untimed():
                    await asyncio.sleep(0.01)
                    written = True
                await asyncio.sleep(60)
        assert limit.expired
        return written

    async with asyncio.timeout(slowly(20)):
        assert await asyncio.create_task(attempt())
