"""uvicorn in a process that has other work: it installs no signal handlers."""

import contextlib
from collections.abc import Iterator

import uvicorn


class EmbeddedServer(uvicorn.Server):
    """A server on an event loop that it does not own; the owner of the loop handles signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
