"""Everything that production takes from its surroundings, taken from a history: all in this one place."""

import contextlib
import logging
import random
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import TYPE_CHECKING
from unittest import mock

from eval_client.endpoints import endpoints
from eval_client.run import context, execute, preflight
from eval_client.run.servers import LocalServers
from eval_client.store import journal, lock, store
from proctor import registry
from proctor.http.client import HttpClient
from proctor.llm.model import ChatModel
from proctor.llm.outage import Outage
from tests.simulation.disk import DiskJournal
from tests.simulation.game import Chain

if TYPE_CHECKING:
    from tests.simulation.history import History

Replaced = list[tuple[object, str, object]]


@contextlib.contextmanager
def surroundings(history: "History") -> Iterator[None]:
    """Production code finds itself in a history while inside."""
    chance = random.getstate()
    random.seed(history.rng.random())
    logging.disable()
    with contextlib.ExitStack() as stack:
        for owner, name, value in _replaced(history):
            stack.enter_context(mock.patch.object(owner, name, value))
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
            random.setstate(chance)


def _replaced(history: "History") -> Replaced:
    @contextlib.asynccontextmanager
    async def http_client(**_: object) -> AsyncIterator[HttpClient]:
        yield history.client()

    @contextlib.asynccontextmanager
    async def no_servers(*_: object, **__: object) -> AsyncIterator[LocalServers]:
        yield LocalServers(token="", controller=None, agents=None, failure=history.loop.create_future())

    def token_hex(length: int) -> str:
        return history.rng.randbytes(length).hex()

    def now_text(**_: str) -> str:
        return str(history.wall())

    return [
        (time, "monotonic", history.monotonic),
        (secrets, "token_hex", token_hex),
        (registry, "load", lambda name: Chain),
        (execute, "http_client", http_client),
        (execute, "local_servers", no_servers),
        (lock, "sole_client", lambda store: contextlib.nullcontext()),
        (preflight, "version", lambda name: "simulated"),
        (context, "Journal", partial(DiskJournal, history.disk)),
        (endpoints, "ChatModel", partial(ChatModel, clock=history.monotonic, wall_clock=history.wall)),
        (endpoints, "Outage", partial(Outage, clock=history.monotonic)),
        (journal, "now_text", now_text),
        (store, "now_text", now_text),
        (store, "migrate", lambda engine: None),  # the tables are there, and of this version
    ]
