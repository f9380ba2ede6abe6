"""Runs under way: the live views of their clients, and how long nothing was heard of them. Reads only."""

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from eval_client.core.run_view import RunView
from eval_client.store.runs import RunMoment, run_moment
from eval_client.store.store import Store

SILENT_S = 10.0
"""A run whose view stays the same for so long is shown with when it was last heard."""
LOOK_EVERY_S = 0.5
"""A look at a run is used again for so long, however many watch."""
UNDER_WAY = ("new", "running")
MAX_RUNS = 256
CLOCKS = {"elapsed_s", "left_s", "troubles", "cooling"}
"""What of a view goes on changing while nothing happens."""


class LiveRun(NamedTuple):
    """A run at one moment."""

    version: str
    """Another one after anything of the run has changed that pages show."""
    view: RunView | None
    """None unless the run is under way."""
    heard_s: float | None
    """Since a new view was seen, by this viewer's clock."""

    @property
    def silent(self) -> bool:
        """Whether nothing was heard for so long that it is worth saying."""
        return self.heard_s is not None and self.heard_s >= SILENT_S

    @property
    def content(self) -> tuple[object, ...]:
        """What a page shows of it, without clocks: equal while nothing happens."""
        shown = None if self.view is None else self.view.model_dump_json(exclude=CLOCKS)
        return shown, self.silent, self.view is not None and bool(self.view.troubles)


class _Seen(NamedTuple):
    """What was last seen of a run, and when its beat was last seen to change."""

    looked_at: float
    run: LiveRun
    beat: tuple[int, int]
    heard_at: float


class LiveRuns:
    """Looks at runs, at most once in LOOK_EVERY_S each, and keeps when each was last heard."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, _Seen] = {}
        self._looking = threading.Lock()

    def look(self, store: Store) -> LiveRun:
        """A run as it is now. Raises StoreError, DatabaseError."""
        with self._looking:
            now, seen = self._clock(), self._seen.get(store.run)
            if seen is not None and now - seen.looked_at < LOOK_EVERY_S:
                return seen.run
            moment = run_moment(store.engine, store.run)
            beat = moment.fence, moment.beat
            heard_at = seen.heard_at if seen is not None and seen.beat == beat else now
            if len(self._seen) >= MAX_RUNS:
                self._seen.clear()
            found = _live_run(moment, now - heard_at)
            self._seen[store.run] = _Seen(now, found, beat, heard_at)
            return found


def run_version(moment: RunMoment, view: RunView | None) -> str:
    """A text that differs after the run has changed: its state, its client, or anything that was played.

    A client counts what it has played after that is durable, so whoever sees a new version sees the rows too.
    """
    pairs = () if view is None else [(pair.scored, pair.unscored) for pair in view.pairs]
    return repr((moment.state, moment.fence, view and (view.turns, view.attempts_lost, pairs)))


def _live_run(moment: RunMoment, silence_s: float) -> LiveRun:
    view = moment.shown
    version = run_version(moment, view)
    if moment.state not in UNDER_WAY or view is None:
        return LiveRun(version, None, None)
    return LiveRun(version, view, silence_s)
