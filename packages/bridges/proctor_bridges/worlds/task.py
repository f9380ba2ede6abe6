"""What tasks have in common that other programs' servers play: addresses, samples, slots."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Annotated, ClassVar, Self, TypeVar
from urllib.parse import urlencode

from pydantic import Field, JsonValue, PrivateAttr, model_validator

from proctor.environment import Environment, EnvironmentFault
from proctor.http.client import HttpClient, http_client
from proctor_bridges.worlds.calls import (
    LISTING_S,
    NO_SLOT,
    ForeignReply,
    NoFreeSlot,
    call,
    indices_of,
    listed,
    session_number,
)

CANCEL_S = 5.0
SLOT_POLL_S = 5.0

Started = TypeVar("Started")
Url = Annotated[str, Field(pattern=r"^https?://[^\s@]+$")]


class Servers:
    """The servers that hold a task's sessions."""

    def __init__(self, http: HttpClient, addresses: Sequence[str], step_limit_s: float) -> None:
        self._http, self._step_limit_s = http, step_limit_s
        self._held = dict.fromkeys((address.rstrip("/") for address in addresses), 0)
        """address -> how many sessions of ours it holds"""

    @asynccontextmanager
    async def session(
        self, request: Mapping[str, JsonValue], read: Callable[[ForeignReply], Started]
    ) -> AsyncIterator[tuple[str, Started]]:
        """Start a session at the server that holds fewest of ours, and wait while none has a slot.

        Yields the server's address and its answer, as `read` makes it out.
        """
        while True:
            for address in sorted(self._held, key=lambda each: self._held[each]):
                self._held[address] += 1
                try:
                    try:
                        started = await self._start(address, request, read)
                    except NoFreeSlot:
                        continue
                    yield address, started
                    return
                finally:
                    self._held[address] -= 1
            await asyncio.sleep(SLOT_POLL_S)

    async def interact(self, address: str, body: JsonValue, headers: Mapping[str, str] | None = None) -> JsonValue:
        """One step. It is never repeated: the server may have made it. Raises EnvironmentFault."""
        try:
            return (await self._post(address, "interact", body, headers)).body
        except NoFreeSlot as error:
            raise EnvironmentFault(f"{address}/interact: HTTP {NO_SLOT}: {error}") from error

    async def cancel(self, address: str, body: JsonValue, headers: Mapping[str, str] | None = None) -> None:
        """End a session, as far as its server can be reached."""
        with suppress(EnvironmentFault, NoFreeSlot):
            await call(self._http, "POST", f"{address}/cancel", body, deadline_s=CANCEL_S, headers=headers)

    async def _start(
        self, address: str, request: Mapping[str, JsonValue], read: Callable[[ForeignReply], Started]
    ) -> Started:
        """A start. Where it fails, a session whose id we chose is ended: the server may have begun it."""
        try:
            return read(await self._post(address, "start_sample", dict(request)))
        except NoFreeSlot:
            raise
        except BaseException:
            if "session_id" in request:
                await self.cancel(address, {"session_id": request["session_id"]})
            raise

    async def _post(
        self, address: str, route: str, body: JsonValue, headers: Mapping[str, str] | None = None
    ) -> ForeignReply:
        url, deadline_s = f"{address}/{route}", self._step_limit_s
        return await call(self._http, "POST", url, body, deadline_s=deadline_s, headers=headers)


class ForeignTask(Environment):
    """A task that another program's servers play: its addresses, its samples, and where its sessions are."""

    url: Url | None = None
    """The address of their controller, with `/api`."""
    workers: tuple[Url, ...] = ()
    """The addresses of their workers, with `/api`, instead of a controller's."""
    task: str = ""
    """The task's name at the controller."""
    step_limit_s: float = Field(default=240.0, gt=0)
    """Deadline of a step."""

    operational: ClassVar[frozenset[str]] = frozenset({"url", "workers", "step_limit_s"})

    _indices: dict[str, JsonValue] | None = PrivateAttr(default=None)
    _servers: Servers | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _has_one_address(self) -> Self:
        if (self.url is None) == (not self.workers):
            raise ValueError("url: give the controller's address, or `workers` with the addresses of workers")
        if self.url is not None and not self.task:
            raise ValueError("task: name the task as the controller does")
        return self

    def samples(self) -> Sequence[str]:
        return tuple(self.indices())

    def not_comparable_because(self) -> str:
        return "the task and its judge are another program's"

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        async with http_client() as http:
            self._servers = Servers(http, self.workers or (str(self.url),), self.step_limit_s)
            yield

    @property
    def servers(self) -> Servers:
        """The servers, within the lifespan."""
        if self._servers is None:
            raise RuntimeError("enter the environment's lifespan before playing")
        return self._servers

    def indices(self) -> dict[str, JsonValue]:
        """sample -> the index that the servers know it by, asked for once. Raises ValueError."""
        if self._indices is None:
            self._indices = listed(self._ask_indices)
        return self._indices

    def start_request(self, index: JsonValue) -> dict[str, JsonValue]:
        """The body of a start: a controller chooses the session's id, a worker is told it."""
        if self.url is not None:
            return {"name": self.task, "index": index}
        return {"index": index, "session_id": session_number()}

    async def _ask_indices(self, http: HttpClient) -> dict[str, JsonValue]:
        base = str(self.url) if self.url is not None else self.workers[0]
        where = f"{base.rstrip('/')}/get_indices"
        query = f"?{urlencode({'name': self.task})}" if self.url is not None else ""
        return indices_of((await call(http, "GET", where + query, deadline_s=LISTING_S)).body, where)
