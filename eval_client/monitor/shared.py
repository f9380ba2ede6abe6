"""Lines on how a run's endpoints are shared and what requests wait for, for its screen and `proctor status`."""

import contextlib
from pathlib import Path

from eval_client.core.limits.pool import Share
from eval_client.endpoints.endpoints import Endpoints
from proctor.observability.redaction import redacted

FILE = "endpoints.txt"
"""The file of these lines in the run's folder."""
MAX_NAMES = 3
WRITE_EVERY_S = 2.0


def shared_lines(endpoints: Endpoints) -> tuple[str, ...]:
    """One line for each endpoint that is shared, can't be shared, or has waiting requests, and each replica down."""
    found = []
    for name, share in endpoints.shares.items():
        parts = [f"not shared with other runs: {endpoints.unshared[name]}"] if name in endpoints.unshared else []
        parts += [part for part in (_part(share), paced(endpoints, name)) if part]
        if parts:
            found.append(f"endpoint {name}: {'; '.join(parts)}")
    for name, replicas in endpoints.replicas.items():
        down = [replica for replica in replicas.all.values() if replica.outage.down and not replica.gone]
        if not replicas.whole.down:  # else that is told as the run's trouble
            found += [f"endpoint {name}: replica {one.url} is down: {one.outage.cause}" for one in down]
    return tuple(map(redacted, found))


def _part(share: Share) -> str | None:
    if not share.others:
        return None
    runs = "1 other run" if len(share.others) == 1 else f"{len(share.others)} other runs"
    more = ", ..." if len(share.others) > MAX_NAMES else ""
    names = ", ".join(share.others[:MAX_NAMES]) + more
    return f"shared with {runs} ({names}), {share.grant} of {int(share.level.limit)} trials at once are for this client"


def paced(endpoints: Endpoints, name: str) -> str | None:
    """How many requests wait because of which rate (`rpm` or `tpm`); None where none waits."""
    gate = endpoints.gates[name]
    count, rate = gate.waits()
    if not count:
        return None
    return f"{count} {'request' if count == 1 else 'requests'} waiting for {rate} ({getattr(gate.rates, rate)})"


class LinesFile:
    """Lines in a file of the run's folder, written when they change, at most every `every_s` seconds."""

    def __init__(self, file: Path, every_s: float = 0.0) -> None:
        self._file, self._every_s, self._written, self._due_at = file, every_s, "", float("-inf")

    def write(self, lines: tuple[str, ...], now: float) -> None:
        """Write changed lines where a write is due, or remove the file where there are none. `now` is monotonic."""
        text = "".join(f"{line}\n" for line in lines)
        if text == self._written or now < self._due_at:
            return
        self._written, self._due_at = text, now + self._every_s
        with contextlib.suppress(OSError):  # such as a full disk
            if text:
                self._file.write_text(text, encoding="utf-8")
            else:
                self._file.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the file."""
        self.write((), float("inf"))


def lines_of(file: Path) -> list[str]:
    """What a `LinesFile` has written; a client that was killed leaves its last lines there."""
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
