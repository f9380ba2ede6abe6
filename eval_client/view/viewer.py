"""What all pages share: the runs, those under way, access, templates, and reports that are used again for a moment."""

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from eval_client.core.run_view import RunView, clock
from eval_client.report.configuration_tables import run_head
from eval_client.report.pair_report import RunReport
from eval_client.report.report import report
from eval_client.store.runs import RunMoment, run_moment
from eval_client.store.store import Store
from eval_client.store.trials.rows import TrialQuery, read_trials
from eval_client.view.access import ViewAccess
from eval_client.view.rendering import Asset, template_environment
from eval_client.view.runs import RunStamp, ViewedRuns
from proctor.config.tokens import AccessTokens

CACHE_S, CACHE_COSTS = 1.0, 20.0
"""What was made is used again for a second, or for so many times as long as it took, whichever is longer; a report
never after the run has changed."""
MAX_REPORTS = 64
NEWER_IN = "Proctor-Newer-In"
"""The header that makes a page's script fetch again: a change that it was told of may not be in this answer yet."""
SILENT_S = 10.0
"""A run whose view stays the same for so long is shown with when it was last heard."""
LOOK_EVERY_S = 0.5
"""A look at a run is used again for so long, however many watch."""
UNDER_WAY = ("new", "running")
MAX_RUNS = 256
CLOCKS = {"elapsed_s", "left_s", "troubles", "cooling"}
"""What of a view goes on changing while nothing happens."""
Made = TypeVar("Made")
Controller = tuple[str, AccessTokens]
"""The URL of a controller, and the tokens that open it."""


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
            under_way = moment.state in UNDER_WAY and moment.shown is not None
            told = (moment.shown, now - heard_at) if under_way else (None, None)
            found = LiveRun(run_version(moment), *told)
            self._seen[store.run] = _Seen(now, found, beat, heard_at)
            return found


def run_version(moment: RunMoment) -> str:
    """A text that differs after the run has changed: its state, its client, or anything that was played.

    A client counts what it has played after that is durable, so whoever sees a new version sees the rows too.
    """
    view = moment.shown
    pairs = () if view is None else [(pair.scored, pair.unscored) for pair in view.pairs]
    return repr((moment.state, moment.fence, view and (view.turns, view.attempts_lost, pairs)))


class _Entry:
    """A value, who may make it, and until when it is used."""

    def __init__(self) -> None:
        self.making = threading.Lock()
        self.value: Any = None
        self.until = float("-inf")
        self.stamp: Hashable = None


class Kept:
    """Values by their keys, each made by one request at a time; the oldest key goes where there are too many."""

    def __init__(self, most: int = 32, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._entries: dict[Hashable, _Entry] = {}
        self._looking = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Made], stamp: Hashable = None) -> Made:
        """The value of a key, made anew where it is too old. A key is always of values of one type.

        A value does not grow old as long as its stamp, which tells what it was made of, stays the same.
        """
        with self._looking:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry()
                if len(self._entries) > self._most:
                    del self._entries[next(iter(self._entries))]
        with entry.making:
            begun = self._clock()
            if begun < entry.until or (stamp is not None and stamp == entry.stamp):
                found: Made = entry.value
                return found
            made = make()
            ended = self._clock()
            entry.value, entry.stamp = made, stamp
            entry.until = ended + max(CACHE_S, CACHE_COSTS * (ended - begun))
            return made


class KeptReport:
    """A report, and what pages made of it."""

    def __init__(self, report: RunReport, stamp: RunStamp, took_s: float, now: float) -> None:
        self.report = report
        self.outdated = False
        """Whether it was used although the run had changed."""
        self._made: dict[str, Any] = {}
        self._stamp = stamp
        self._is_dear = CACHE_COSTS * took_s > CACHE_S
        self._until = now + max(CACHE_S, CACHE_COSTS * took_s)

    def is_fresh(self, stamp: RunStamp, now: float) -> bool:
        """Whether it is used again.

        A change of the run's state always drops it. Other changes drop it too, unless it took more than a twentieth
        of CACHE_S: watching a large run while it changes costs a twentieth of a core at most.
        """
        if stamp.state != self._stamp.state:
            return False
        fresh = now < self._until and (self._is_dear or stamp == self._stamp)
        self.outdated = self.outdated or (fresh and stamp != self._stamp)
        return fresh

    def headers(self, now: float) -> dict[str, str]:
        """For answers with an outdated report: in how many seconds there will be a newer one."""
        return {NEWER_IN: f"{max(0.0, self._until - now):.1f}"} if self.outdated else {}

    def made(self, name: str, make: Callable[[], Made]) -> Made:
        """What a page made of the report, made once."""
        if name not in self._made:
            self._made[name] = make()
        found: Made = self._made[name]
        return found


def _facts(store: Store, agents: Collection[str], tasks: Collection[str]) -> list[tuple[str, str]]:
    """Names and texts for the head of a page."""
    begun = store.created_at()
    last = read_trials(store, TrialQuery(sort="-ended_at", size=1)).items[:1]
    ended = last[0].ended_at if last else None
    times = [("begun", f"{begun[:16].replace('T', ' ')} UTC")]
    with contextlib.suppress(ValueError, TypeError):  # times of a store that somebody wrote by hand
        lasted = datetime.fromisoformat(ended or "") - datetime.fromisoformat(begun)
        times.append(("lasted", clock(lasted.total_seconds())))
    return [*run_head(store.manifest(), agents, tasks), *times]


class Viewer:
    """What the pages of one viewer share."""

    def __init__(
        self, runs: ViewedRuns, access: ViewAccess, assets: Mapping[str, Asset], controller: Controller | None = None
    ) -> None:
        self.runs, self.access, self.assets, self.controller = runs, access, assets, controller
        self._templates = template_environment()
        self.live = LiveRuns()
        self.kept = Kept()
        self._reports: dict[str, KeptReport] = {}
        self._making = threading.Lock()

    def open(self, request: Request) -> Store:
        """The run in a request's path. Raises StoreError."""
        return self.runs.open(request.path_params["run"])

    def head(self, store: Store, agents: Collection[str] = (), tasks: Collection[str] = ()) -> dict[str, Any]:
        """The run that a page belongs to, with what was run; of some agents and tasks alone where they are named."""
        facts = self.kept.get(("head", store.run, *agents, *tasks), lambda: _facts(store, agents, tasks))
        return {"run": store.run, "state": self.runs.state(store), "facts": facts}

    def kept_report(self, store: Store) -> KeptReport:
        """The run's report and what pages made of it. One request at a time makes a report."""
        stamp = self.runs.stamp(store)._replace(version=self.live.look(store).version)
        with self._making:
            kept = self._reports.get(store.run)
            if kept is not None and kept.is_fresh(stamp, time.monotonic()):
                return kept
            begun = time.monotonic()
            made = report(store)
            ended = time.monotonic()
            if len(self._reports) >= MAX_REPORTS:
                self._reports.clear()
            self._reports[store.run] = KeptReport(made, stamp, ended - begun, ended)
            return self._reports[store.run]

    def page(self, template: str, title: str, status: int = 200, **values: object) -> Response:
        """A page; `run` is among the values of pages that belong to one.

        Lone surrogates, which UTF-8 can't hold, are shown as escapes.
        """
        known = {
            "layout": "base.html",
            "saved": False,
            "run": None,
            "place": "",
            "title": title,
            "closed": self.access.closed,
        }
        given = {**known, "shared": self.controller is not None, **values}
        text = self._templates.get_template(template).render(given)
        return Response(text.encode("utf-8", "backslashreplace"), status, media_type="text/html")
