"""The runs that a viewer shows: of a folder, of a database server, or one alone. Reads only."""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from eval_client.store.connection import DatabaseError, StoreError, file_url, runs
from eval_client.store.lock import is_worked_on
from eval_client.store.runs import connect_read_only
from eval_client.store.store import Store

LOOK_EVERY_S = 5.0
"""How long the answer to whether a client plays a run is used again."""


class NotFound(StoreError):
    """There is no such run, trial or sample."""


class RunEntry(NamedTuple):
    run: str
    created_at: str
    """Empty where the store can't be read."""


class RunStamp(NamedTuple):
    """Differs between two moments where the run changed in between."""

    state: str
    files: tuple[tuple[int, int], ...]
    """Time of change and size of a SQLite store's file and of its log."""
    version: str = ""
    """What the run's clients have told: `LiveRun.version`."""


class ViewedRuns(ABC):
    """The runs that a viewer shows. Methods raise StoreError and DatabaseError."""

    only: str | None = None
    """The name of the run where there is one alone."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._played: dict[str, tuple[float, bool]] = {}

    @abstractmethod
    def entries(self) -> list[RunEntry]:
        """All runs, the newest first; unreadable ones are at the end."""

    @abstractmethod
    def open(self, run: str) -> Store:
        """The store of a run. Raises NotFound."""

    def state(self, store: Store) -> str:
        """The run's state; `stopped` where it is stored as new or running but no client plays it."""
        state = store.state()
        return "stopped" if state in ("new", "running") and not self._is_played(store) else state

    def stamp(self, store: Store) -> RunStamp:
        path = str(store.engine.url.database)
        files = [path, f"{path}-wal"] if store.engine.dialect.name == "sqlite" else []
        return RunStamp(self.state(store), tuple(_changed(file) for file in files))

    def _is_played(self, store: Store) -> bool:
        looked, played = self._played.get(store.run, (float("-inf"), False))
        if self._clock() - looked >= LOOK_EVERY_S:
            played = is_worked_on(store)
            self._played[store.run] = self._clock(), played
        return played


class FolderRuns(ViewedRuns):
    """The runs in a folder, each with a file of its own."""

    def __init__(self, output: Path) -> None:
        super().__init__()
        self._output = output
        self._stores: dict[str, Store] = {}
        self._created: dict[str, str] = {}

    def entries(self) -> list[RunEntry]:
        return sorted(map(self._entry, self._names()), key=lambda entry: (entry.created_at, entry.run), reverse=True)

    def open(self, run: str) -> Store:
        if run not in self._names():
            raise NotFound(f"there is no run {run!r} in {self._output}")
        return self._store(run)

    def _names(self) -> set[str]:
        if not self._output.is_dir():
            return set()
        return {folder.name for folder in self._output.iterdir() if os.path.isfile(folder / "run.sqlite")}

    def _store(self, run: str) -> Store:
        if run not in self._stores:
            self._stores[run] = Store(connect_read_only(file_url(self._output / run)), run)
        return self._stores[run]

    def _entry(self, run: str) -> RunEntry:
        try:
            self._created[run] = self._created.get(run) or self._store(run).created_at()
        except (StoreError, DatabaseError):
            return RunEntry(run, "")
        return RunEntry(run, self._created[run])


class ServerRuns(ViewedRuns):
    """The runs of a database server."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._engine = connect_read_only(url)

    def entries(self) -> list[RunEntry]:
        return [RunEntry(run, created_at) for run, created_at, _ in reversed(runs(self._engine))]

    def open(self, run: str) -> Store:
        if run not in {entry.run for entry in self.entries()}:
            raise NotFound(f"there is no run {run!r} in this store")
        return Store(self._engine, run)


class OneRun(ViewedRuns):
    def __init__(self, url: str, run: str) -> None:
        super().__init__()
        self.only = run
        self._store = Store(connect_read_only(url), run)

    def entries(self) -> list[RunEntry]:
        return [RunEntry(self._store.run, self._store.created_at())]

    def open(self, run: str) -> Store:
        if run != self.only:
            raise NotFound(f"this viewer shows the run {self.only!r} alone, not {run!r}")
        return self._store


def _changed(file: str) -> tuple[int, int]:
    """When a file was changed last, and its size; zeros where there is none."""
    try:
        status = os.stat(file)
    except FileNotFoundError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
