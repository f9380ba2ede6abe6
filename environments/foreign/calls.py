"""Requests to other programs' servers. What can't be answered is a fault, never a score."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import pydantic_core
from pydantic import JsonValue

from proctor.environment import EnvironmentFault, ServiceAway
from proctor.http.client import ConnectionFailed, HttpClient, HttpFailure, bounded_request, http_client

MAX_BYTES = 16 << 20
"""Of one answer."""
LISTING_S = 30.0
"""Deadline of a request that lists something."""
NO_SLOT = 406
SHOWN = 300
"""Characters of an answer that a fault shows."""

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
