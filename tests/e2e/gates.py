"""A gate before a server of models: what a test does in mid-run comes before the run's end, however late it comes."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.faults.parts.proxy import Fault, Link, proxies

ENDLESS = ("--set", "epochs=100")
"""Options of a run that is never resumed: however late a test stops it, it is not over before."""


class Gate:
    """Lets some model calls pass and holds all others; open at first."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.url = f"{link.url}/v1"

    @property
    def calls(self) -> int:
        """How many have come so far, held ones too."""
        return sum(call.target.startswith("POST ") for call in self._link.calls)

    def shut(self, spared: int) -> None:
        """Let what is held pass, and so many more, and hold those that come then."""
        self._link.faults[:] = [Fault("gate", "POST ", spared=spared)]

    def open(self) -> None:
        """Let everything pass."""
        self._link.faults.clear()


@contextlib.contextmanager
def gate_before(url: str) -> Iterator[Gate]:
    """A gate before the server at a URL."""
    with proxies(0) as ways:
        yield Gate(ways.link("agents", int(url.removesuffix("/v1").rpartition(":")[2])))


@contextlib.contextmanager
def gate(plan: Path, url: str) -> Iterator[Gate]:
    """A plan's way to the server at a URL leads through the gate from now on."""
    with gate_before(url) as way:
        text = plan.read_text()
        assert url in text
        plan.write_text(text.replace(url, way.url))
        yield way
