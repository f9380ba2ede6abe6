"""Runs under way: their clients' live views added up, and how long nothing was heard of them. Reads only."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import ValidationError

from eval_client.core.flow import Pair
from eval_client.monitor.snapshot import PairView, RunView
from eval_client.store.claims import pair_counts
from eval_client.store.shards import RunMoment, run_moment
from eval_client.store.store import Store

SILENT_S = 10.0
"""A run whose views stay the same for so long is shown with when it was last heard."""
LOOK_EVERY_S = 0.5
"""A look at a run is used again for so long, however many watch."""
UNDER_WAY = ("new", "running")
MAX_RUNS = 256
CLOCKS = {"elapsed_s", "left_s", "troubles", "cooling"}
"""What of a view goes on changing while nothing happens."""


class ClientView(NamedTuple):
    """The last view of one client."""

    shard: int
    live: bool
    """False for a client that was lost or has left."""
    view: RunView


class LiveRun(NamedTuple):
    """A run at one moment."""

    version: str
    """Another one after anything of the run has changed that pages show."""
    view: RunView | None
    """Of all clients together; None unless the run is under way."""
    heard_s: float | None
    """Since a new view of any client was seen, by this viewer's clock."""
    clients: tuple[ClientView, ...]

    @property
    def silent(self) -> bool:
        """Whether nothing was heard for so long that it is worth saying."""
        return self.heard_s is not None and self.heard_s >= SILENT_S

    @property
    def content(self) -> tuple[object, ...]:
        """What a page shows of it, without clocks: equal while nothing happens."""
        shown = None if self.view is None else self.view.model_dump_json(exclude=CLOCKS)
        return shown, self.silent, self.view is not None and bool(self.view.troubles), len(self.clients)


NOT_LIVE = LiveRun("", None, None, ())


class _Seen(NamedTuple):
    """What was last seen of a run, and when its beats were last seen to change."""

    looked_at: float
    run: LiveRun
    beats: tuple[tuple[int, int], ...]
    heard_at: float


class LiveRuns:
    """Looks at runs, at most once in LOOK_EVERY_S each, and keeps when each was last heard."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, _Seen] = {}
        self._looking = threading.Lock()

    def look(self, store: Store) -> LiveRun:
        """A run as it is now. Raises StoreError, SQLAlchemyError."""
        with self._looking:
            now, seen = self._clock(), self._seen.get(store.run)
            if seen is not None and now - seen.looked_at < LOOK_EVERY_S:
                return seen.run
            moment = run_moment(store.engine, store.run)
            beats = tuple((row.shard, row.beat) for row in moment.live)
            heard_at = seen.heard_at if seen is not None and seen.beats == beats else now
            if len(self._seen) >= MAX_RUNS:
                self._seen.clear()
            found = _live_run(store, moment, now - heard_at)
            self._seen[store.run] = _Seen(now, found, beats, heard_at)
            return found


PairCounts = Mapping[Pair, tuple[int, float, int]]


def run_version(moment: RunMoment, clients: Sequence[ClientView], counts: PairCounts) -> str:
    """A text that differs after the run has changed: its state, its clients, or anything they have played.

    A client counts what it has played after that is durable, so whoever sees a new version sees the rows too. `counts`
    are the store's own: a client that is stopped between a row and its next view has not told of that row.
    """
    played = [
        (
            *(client.shard, client.live, client.view.turns, client.view.attempts_lost),
            *((pair.scored, pair.unscored) for pair in client.view.pairs),
        )
        for client in clients
    ]
    return repr((moment.state, moment.fence, played, sorted(counts.items())))


def _live_run(store: Store, moment: RunMoment, silence_s: float) -> LiveRun:
    clients = tuple(_clients(moment))
    counts = pair_counts(store.engine, store.run) if len(clients) > 1 else {}
    version = run_version(moment, clients, counts)
    if moment.state not in UNDER_WAY or not any(client.live for client in clients):
        return NOT_LIVE._replace(version=version)
    return LiveRun(version, _together(store.run, clients, counts), silence_s, clients)


def _clients(moment: RunMoment) -> Iterable[ClientView]:
    """The clients that have published; a view of another version of Proctor, which can't be read, is left out."""
    for row in moment.live:
        try:
            yield ClientView(row.shard, row.live, RunView.model_validate_json(row.view))
        except ValidationError:
            continue


def _together(run: str, clients: Sequence[ClientView], counts: PairCounts) -> RunView:
    """The view of all clients. What was spent counts of all, what is under way only of those that play on."""
    views = [client.view for client in clients]
    if len(clients) == 1:
        return views[0]
    playing = [client for client in clients if client.live]
    longest = max((client.view for client in playing), key=lambda view: view.elapsed_s)
    return RunView(
        run=run,
        elapsed_s=longest.elapsed_s,
        left_s=longest.left_s,
        pairs=_pairs(playing, counts),
        use=_use(client.view for client in playing),
        turns=sum(view.turns for view in views),
        retries=sum(view.retries for view in views),
        attempts_lost=sum(view.attempts_lost for view in views),
        prompt_tokens=sum(view.prompt_tokens for view in views),
        completion_tokens=sum(view.completion_tokens for view in views),
        money=sum(view.money for view in views),
        troubles=_distinct(client.view.troubles for client in playing),
        shared=_distinct(client.view.shared for client in playing),
        cooling=_longest(client.view.cooling for client in playing),
    )


def _pairs(playing: Sequence[ClientView], counts: PairCounts) -> tuple[PairView, ...]:
    """The pairs with the store's own counts: those of each client are of all clients too, and some seconds old."""
    by_pair: dict[tuple[str, str], list[tuple[int, PairView]]] = {}
    for client in playing:
        for pair in client.view.pairs:
            by_pair.setdefault((pair.agent, pair.task), []).append((client.shard, pair))
    pairs = []
    for key, found in by_pair.items():
        scored, total, unscored = counts.get(key, (0, 0.0, 0))
        changed = {
            "scored": scored,
            "unscored": unscored,
            "mean": total / scored if scored else None,
            "running": sum(pair.running for _, pair in found),
            "waits_for": _waits([(shard, pair.waits_for) for shard, pair in found]),
        }
        pairs.append(found[0][1].model_copy(update=changed))
    return tuple(pairs)


def _waits(waits: Sequence[tuple[int, str | None]]) -> str | None:
    """What the clients wait for; where they differ, with which of them."""
    given = [(shard, reason) for shard, reason in waits if reason is not None]
    reasons = dict.fromkeys(reason for _, reason in given)
    if len(reasons) < 2:
        return next(iter(reasons), None)
    shards = {reason: ", ".join(str(shard) for shard, each in given if each == reason) for reason in reasons}
    return "; ".join(f"{reason} (client {shards[reason]})" for reason in reasons)


def _use(views: Iterable[RunView]) -> dict[str, tuple[int, int]]:
    total: dict[str, tuple[int, int]] = {}
    for view in views:
        for name, (used, capacity) in view.use.items():
            before = total.get(name, (0, 0))
            total[name] = before[0] + used, before[1] + capacity
    return total


def _distinct(texts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for some in texts for text in some))


def _longest(pauses: Iterable[dict[str, float]]) -> dict[str, float]:
    longest: dict[str, float] = {}
    for some in pauses:
        for name, left in some.items():
            longest[name] = max(left, longest.get(name, 0.0))
    return longest
