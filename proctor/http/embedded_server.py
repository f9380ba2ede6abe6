"""uvicorn within a process that has other work: it leaves signals alone."""

import contextlib
from collections.abc import Iterator

import uvicorn


class EmbeddedServer(uvicorn.Server):
    """A server on a loop that is not its own; whoever runs that decides what signals do."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
