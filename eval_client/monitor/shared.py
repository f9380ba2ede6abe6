"""What a run's endpoints are shared with, and what its requests wait for there: for its screen and `proctor status`."""

import contextlib
from pathlib import Path

from eval_client.core.pool import Share
from eval_client.endpoints.endpoints import Endpoints
from proctor.observability.redaction import redacted

FILE = "endpoints.txt"
MAX_NAMES = 3
WRITE_EVERY_S = 2.0


def shared_lines(endpoints: Endpoints) -> tuple[str, ...]:
    """A line for each endpoint that there is something to say about."""
    found = []
    for name, share in endpoints.shares.items():
        parts = [f"not shared with other runs: {endpoints.unshared[name]}"] if name in endpoints.unshared else []
        parts += [part for part in (_part(share), paced(endpoints, name)) if part]
        if parts:
            found.append(f"endpoint {name}: {'; '.join(parts)}")
    return tuple(map(redacted, found))


def _part(share: Share) -> str | None:
    if not share.others:
        return None
    runs = "1 other run" if len(share.others) == 1 else f"{len(share.others)} other runs"
    more = ", ..." if len(share.others) > MAX_NAMES else ""
    names = ", ".join(share.others[:MAX_NAMES]) + more
    return f"shared with {runs} ({names}), {share.grant} of {int(share.level.limit)} trials at once are for this client"


def paced(endpoints: Endpoints, name: str) -> str | None:
    """How many requests wait for their moment, and by which rate; None where none does."""
    gate = endpoints.gates[name]
    count, rate = gate.waits()
    if not count:
        return None
    return f"{count} {'request' if count == 1 else 'requests'} waiting for {rate} ({getattr(gate.rates, rate)})"


class SharedFile:
    """Leaves the lines in the run's folder, not more often than anybody looks."""

    def __init__(self, folder: Path) -> None:
        self._file, self._left, self._due_at = folder / FILE, "", float("-inf")

    def leave(self, lines: tuple[str, ...], now: float) -> None:
        """`now` is monotonic."""
        text = "".join(f"{line}\n" for line in lines)
        if text == self._left or now < self._due_at:
            return
        self._left, self._due_at = text, now + WRITE_EVERY_S
        with contextlib.suppress(OSError):
            if text:
                self._file.write_text(text, encoding="utf-8")
            else:
                self._file.unlink(missing_ok=True)

    def close(self) -> None:
        """Take back what was left in the folder."""
        self.leave((), float("inf"))


def shared_lines_of(folder: Path) -> list[str]:
    """What a run's client last said; it may be gone by now."""
    try:
        return (folder / FILE).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
