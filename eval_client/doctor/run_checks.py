"""Runs checks concurrently, each with a deadline; a check that crashes or is late becomes a finding."""

import asyncio
import concurrent.futures
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import NamedTuple, ParamSpec, TypeVar

from eval_client.doctor.finding import Finding, fail

P = ParamSpec("P")
T = TypeVar("T")


class Check(NamedTuple):
    """A check's name and its coroutine."""

    name: str
    look: Coroutine[None, None, Sequence[Finding]]


async def findings(checks: Sequence[Check], limit_s: float) -> AsyncIterator[Finding]:
    """The findings of all checks, in the order of the checks. A check that takes longer than `limit_s` is ended."""
    looking = [asyncio.create_task(_look(check, limit_s)) for check in checks]
    for task in looking:
        for finding in await task:
            yield finding


async def _look(check: Check, limit_s: float) -> Sequence[Finding]:
    try:
        async with asyncio.timeout(limit_s) as limit:
            return await check.look
    except TimeoutError as error:
        if limit.expired():
            return [fail("check-late", f"{check.name}: no result within {limit_s:g} s")]
        return [_crashed(check, error)]
    except Exception as error:
        return [_crashed(check, error)]


def _crashed(check: Check, error: Exception) -> Finding:
    return fail("check-failed", f"{check.name}: {type(error).__name__}: {error}")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking function in a daemon thread, so that one that hangs does not block the process's exit."""
    done = concurrent.futures.Future[T]()
    done.set_running_or_notify_cancel()  # a thread can't be called off

    def work() -> None:
        try:
            done.set_result(function(*args, **kwargs))
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return await asyncio.wrap_future(done)
