"""What all pages share: the runs, access, templates, and reports that are used again for a moment."""

import threading
import time
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from eval_client.report.report import RunReport, report
from eval_client.store.store import Store
from eval_client.view.access import ViewAccess
from eval_client.view.kept import Kept
from eval_client.view.live import LiveRuns
from eval_client.view.rendering import Asset, Renderer
from eval_client.view.runs import ViewedRuns

CACHE_S, CACHE_COSTS = 1.0, 20.0
"""A report is used again for a second, or for so many times as long as it took, whichever is longer; never after the
run has changed."""
MAX_REPORTS = 64


class KeptReport(NamedTuple):
    """A report, and until when it is used."""

    report: RunReport
    version: str
    """The run's, from before the report was made."""
    until: float


class RunHead(NamedTuple):
    """The run that a page belongs to."""

    run: str
    state: str


class Viewer:
    """What the pages of one viewer share."""

    def __init__(self, runs: ViewedRuns, access: ViewAccess, renderer: Renderer) -> None:
        self.runs, self.access, self._renderer = runs, access, renderer
        self.live = LiveRuns()
        self.kept = Kept()
        self._reports: dict[str, KeptReport] = {}
        self._making = threading.Lock()

    def open(self, request: Request) -> Store:
        """The run in a request's path. Raises StoreError."""
        return self.runs.open(request.path_params["run"])

    def head(self, store: Store) -> RunHead:
        """The run of a page."""
        return RunHead(store.run, self.runs.state(store))

    def report(self, store: Store) -> RunReport:
        """The run's report, made anew by one request at a time where the last is too old or the run has changed."""
        version = self.live.look(store).version
        with self._making:
            kept = self._reports.get(store.run)
            if kept is not None and kept.version == version and time.monotonic() < kept.until:
                return kept.report
            begun = time.monotonic()
            made = report(store)
            ended = time.monotonic()
            if len(self._reports) >= MAX_REPORTS:
                self._reports.clear()
            until = ended + max(CACHE_S, CACHE_COSTS * (ended - begun))
            self._reports[store.run] = KeptReport(made, version, until)
            return made

    @property
    def assets(self) -> dict[str, Asset]:
        """name of a file -> the asset."""
        return self._renderer.assets

    def page(self, template: str, title: str, status: int = 200, **values: object) -> Response:
        """A page. `run` is among the values of pages that belong to one."""
        given = {"run": None, "place": "", **values}
        return self._renderer.page(template, status, title=title, closed=self.access.closed, **given)
