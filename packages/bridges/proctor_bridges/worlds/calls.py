"""Requests to other programs' servers, and how the end of a session there becomes a finish.

What can't be answered is a fault, never a score.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import pydantic_core
from pydantic import JsonValue

from proctor.environment import EnvironmentFault, ServiceAway
from proctor.http.client import ConnectionFailed, HttpClient, HttpFailure, bounded_request, http_client
from proctor.types import AGENTBENCH_REASON, Finish, FinishReason

MAX_BYTES = 16 << 20
"""Of one answer."""
LISTING_S = 30.0
"""Deadline of a request that lists something."""
NO_SLOT = 406
SHOWN = 300
"""Characters of an answer that a fault shows."""
RUNNING = "running"
USUAL = ("", "/score", "/result", "/reward", "/is_correct", "/success")
"""Where tasks put their score: JSON pointers into `result`."""

Listed = TypeVar("Listed")


class ForeignReply(NamedTuple):
    """A server's answer with status 200."""

    body: JsonValue
    headers: Mapping[str, str]


class NoFreeSlot(Exception):
    """The server can't start a session now."""


async def call(
    http: HttpClient,
    method: str,
    url: str,
    body: JsonValue = None,
    *,
    deadline_s: float,
    headers: Mapping[str, str] | None = None,
) -> ForeignReply:
    """One request. Raises NoFreeSlot for 406, ServiceAway for 5xx and a server that can't be reached.

    Raises EnvironmentFault for all else that is no JSON with status 200.
    """
    try:
        reply = await bounded_request(
            http, method, url, json=body, headers=headers, deadline_s=deadline_s, max_bytes=MAX_BYTES
        )
    except ConnectionFailed as error:
        raise ServiceAway(str(error)) from error
    except HttpFailure as error:
        raise EnvironmentFault(str(error)) from error
    if reply.status == NO_SLOT:
        raise NoFreeSlot(shown(reply.body.decode(errors="replace")))
    if reply.status != 200:
        kind = ServiceAway if reply.status >= 500 else EnvironmentFault
        raise kind(f"{method} {url}: HTTP {reply.status}: {shown(reply.body.decode(errors='replace'))}")
    try:
        return ForeignReply(pydantic_core.from_json(reply.body) if reply.body else None, reply.headers)
    except ValueError as error:
        raise EnvironmentFault(f"{method} {url}: the answer is no JSON: {error}") from error


def listed(ask: Callable[[HttpClient], Awaitable[Listed]]) -> Listed:
    """The answer to a request that has to be made without a running event loop, as `samples` has. Raises ValueError."""

    async def asked() -> Listed:
        async with http_client() as http:
            return await ask(http)

    try:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, asked()).result()
    except (EnvironmentFault, NoFreeSlot) as error:
        raise ValueError(str(error)) from error


def indices_of(body: JsonValue, url: str) -> dict[str, JsonValue]:
    """sample -> the index that the server knows it by. Raises EnvironmentFault."""
    if not isinstance(body, list) or not all(isinstance(each, int | str) for each in body):
        raise EnvironmentFault(f"{url}: the indices are no list of integers and texts: {shown(body)}")
    found = {str(index): index for index in body}
    if len(found) < len(body):
        raise EnvironmentFault(f"{url}: two indices read alike; sample ids must differ")
    return found


def session_number() -> int:
    """A session id for a server that lets its client choose one: an integer that JSON keeps everywhere."""
    return secrets.randbelow(2**53)


def shown(value: JsonValue) -> str:
    """The beginning of a value, for messages."""
    text = value if isinstance(value, str) else pydantic_core.to_json(value).decode()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def finish(status: str, result: JsonValue, pointers: Sequence[str]) -> Finish:
    """The finish of a session by its status and its result. Raises EnvironmentFault for what is no score."""
    if status not in AGENTBENCH_REASON:
        raise EnvironmentFault(f"the task ended with {status!r}: {shown(result)}")
    reason, found = AGENTBENCH_REASON[status], score(result, pointers)
    if found is None and result is None and reason is not FinishReason.COMPLETED:
        found = 0.0  # AgentBench's own tasks leave the result out where the agent failed
    if found is None:
        where = ", ".join(repr(pointer) for pointer in pointers)
        raise EnvironmentFault(f"score: no number from 0 to 1 at {where} of the result: {shown(result)}")
    return Finish(reason=reason, score=found, detail={"status": status, "result": result})


def score(result: JsonValue, pointers: Sequence[str]) -> float | None:
    """The first number or truth value at one of the pointers; None where it is not from 0 to 1."""
    for pointer in pointers:
        value = at(result, pointer)
        if isinstance(value, int | float):
            return float(value) if 0 <= value <= 1 else None
    return None


def at(value: JsonValue, pointer: str) -> JsonValue:
    """The value at a JSON pointer (RFC 6901); None where nothing is."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value
