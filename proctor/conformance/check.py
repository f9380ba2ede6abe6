"""Checks that an environment meets the contract of `proctor.environment`; `proctor check NAME` prints the results."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Literal, get_args

from pydantic import ValidationError

from proctor.conformance.contract import (
    REQUIREMENTS,
    SETTLE_S,
    ContractViolation,
    HeldResources,
    LeftOut,
    Subject,
    digest_has,
    digest_is_stable,
    digests_differ,
    fields_of,
    held_resources,
    samples_are_stable,
    settles,
    watched,
)
from proctor.environment import Environment
from proctor.event_loop import BLOCKED_S, may_block
from proctor.observability.redaction import redacted
from proctor.tools import Protocol
from proctor.types import Value


class CheckResult(Value):
    """The result for one requirement of the contract."""

    name: str
    state: Literal["ok", "broken", "left out"]
    """`left out`: the environment lacks what the requirement is about, for example a reference policy."""
    detail: str = ""
    """How it was violated, and in which sample; or what is lacking. Empty where it is met."""

    @property
    def ok(self) -> bool:
        """True unless the requirement is broken; `left out` is ok."""
        return self.state != "broken"


async def check(
    environment: Environment, samples: int = 3, seed: int = 0, deadline_s: float = 180.0
) -> AsyncGenerator[CheckResult, None]:
    """Check each requirement in turn, and yield its result as soon as it is known.

    An environment that has both protocols is checked in both; their names stand before those of the results. Plays up
    to `samples` samples, spread over all; each requirement has `deadline_s` seconds. Never raises for what the
    environment does. Iterate to the end, or close the iterator, so that the environment's lifespan ends.
    """
    protocols, refusal = _protocols(environment)
    for prefix, each in protocols.items():
        async with aclosing(_check_one(each, samples, seed, deadline_s)) as results:
            async for result in results:
                yield result.model_copy(update={"name": f"{prefix}{result.name}"})
    if refusal is not None:
        yield CheckResult(name="the other protocol", state="left out", detail=refusal)
    if len(protocols) == 2:
        yield await _result_of("each protocol has its digest", digests_differ(*protocols.values()), deadline_s)


def _protocols(environment: Environment) -> tuple[dict[str, Environment], str | None]:
    """The environment in each protocol that it has, by what is put before its results; why it refuses the other."""
    field = type(environment).model_fields.get("protocol")
    if field is None or get_args(field.annotation) != get_args(Protocol):
        return {"": environment}, None
    fields = fields_of(environment)
    name = "text" if fields["protocol"] == "tools" else "tools"
    try:
        other = type(environment)(**fields | {"protocol": name})
    except ValidationError as error:
        reasons = (problem["msg"].removeprefix("Value error, ") for problem in error.errors())
        return {"": environment}, "; ".join(reasons)
    return {f"{fields['protocol']}: ": environment, f"{name}: ": other}, None


async def _check_one(
    environment: Environment, samples: int, seed: int, deadline_s: float
) -> AsyncGenerator[CheckResult, None]:
    before, read = await asyncio.create_task(held_resources()), watched(environment)
    listed = await _result_of("samples are there, unique and stable", samples_are_stable(environment), deadline_s)
    yield listed
    if not listed.ok:
        return
    yield await _result_of("the digest is stable", digest_is_stable(environment), deadline_s)
    opened, closing = asyncio.Event(), asyncio.Event()
    holder = asyncio.create_task(_hold(environment, opened, closing))
    try:
        lifespan = await _result_of("the lifespan starts", _opened(holder, opened), deadline_s)
        yield lifespan
        subject = Subject(environment, _spread(tuple(environment.samples()), samples), seed)
        for name, requirement in REQUIREMENTS if lifespan.ok else ():
            yield await _result_of(name, requirement(subject), deadline_s)
    finally:
        closing.set()
        if not opened.is_set():
            holder.cancel()
        ended = await _result_of("the lifespan leaves nothing behind", _ended(holder, before), deadline_s)
    if lifespan.ok:
        yield ended
        if read is not None:
            yield await _result_of("the digest has every file beside it", digest_has(environment, read), deadline_s)


async def _result_of(name: str, requirement: Coroutine[object, object, None], deadline_s: float) -> CheckResult:
    """The result of one requirement; each violation, exceptions and endless loops included, becomes its detail."""
    task = asyncio.create_task(requirement)
    may_block(deadline_s + BLOCKED_S, lambda: "the environment")
    await asyncio.wait({task}, timeout=deadline_s)
    may_block(None, str)
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=SETTLE_S)
        also = "" if task.done() else ", and then ignored its cancellation"
        return CheckResult(name=name, state="broken", detail=f"took longer than {deadline_s:g} s{also}")
    if task.cancelled():
        return CheckResult(name=name, state="broken", detail="was cancelled from within")
    error = task.exception()
    if error is None:
        return CheckResult(name=name, state="ok")
    if isinstance(error, LeftOut):
        return CheckResult(name=name, state="left out", detail=str(error))
    detail = redacted(str(error) if isinstance(error, ContractViolation) else f"{type(error).__name__}: {error}")
    return CheckResult(name=name, state="broken", detail=detail)


async def _hold(environment: Environment, opened: asyncio.Event, closing: asyncio.Event) -> None:
    async with environment.lifespan():
        opened.set()
        await closing.wait()


async def _opened(holder: asyncio.Task[None], opened: asyncio.Event) -> None:
    waiting = asyncio.create_task(opened.wait())
    await asyncio.wait({holder, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if holder.done():
        holder.result()
        raise ContractViolation("it ended without waiting for its sessions")


async def _ended(holder: asyncio.Task[None], before: HeldResources) -> None:
    await asyncio.wait({holder})
    if not holder.cancelled():
        holder.result()
    await settles(lambda now: now.tasks <= before.tasks and now.processes <= before.processes, before)


def _spread(samples: tuple[str, ...], count: int) -> tuple[str, ...]:
    """Up to `count` samples, evenly spread over all, the first and the last among them."""
    if count >= len(samples):
        return samples
    if count == 1:
        return samples[:1]
    return tuple(samples[index * (len(samples) - 1) // (count - 1)] for index in range(count))
