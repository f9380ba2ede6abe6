"""An embedded engine for machines without MariaDB; its SQL differs, so its scores are not comparable."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from environments.database import observation
from environments.database.dataset import Table
from environments.database.engines.base import (
    INTERRUPTED,
    MAX_STATEMENT_BYTES,
    DatabaseEngine,
    DatabaseSession,
    create_statement,
)
from environments.database.table_hash import TableHash, of_rows, quoted

_T = TypeVar("_T")
_STEPS_BETWEEN_CHECKS = 10_000
_MAX_PAGES = 16_384
_DENIED = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA)


class SqliteSession(DatabaseSession):
    """One database in memory."""

    def __init__(self, table: Table, limit_s: float) -> None:
        self._table = table
        self._limit_s = limit_s
        self._deadline = float("inf")
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 4 * MAX_STATEMENT_BYTES)
        self._connection.execute(f"PRAGMA max_page_count={_MAX_PAGES}")
        self.setup_error = self._create()
        self._connection.set_authorizer(_authorize)
        self._connection.set_progress_handler(self._is_late, _STEPS_BETWEEN_CHECKS)

    async def _run(self, sql: str) -> str:
        return await self._in_thread(lambda: self._observed(sql))

    async def table_hash(self) -> TableHash:
        return await self._in_thread(self._hash)

    def close(self) -> None:
        self._connection.interrupt()
        self._connection.close()

    async def _in_thread(self, function: Callable[[], _T]) -> _T:
        self._deadline = time.monotonic() + self._limit_s
        work = asyncio.ensure_future(asyncio.to_thread(function))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            self._deadline = 0.0
            await asyncio.wait({work})
            raise

    def _create(self) -> str | None:
        marks = ", ".join("?" * len(self._table.columns))
        try:
            self._connection.execute("BEGIN")
            self._connection.execute(create_statement(self._table))
            self._connection.executemany(f"INSERT INTO {quoted(self._table.name)} VALUES ({marks})", self._table.rows)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._connection.rollback()
            return _error_text(error)
        return None

    def _observed(self, sql: str) -> str:
        try:
            cursor = self._connection.execute(sql)
            text = observation.NO_ROWS if cursor.description is None else observation.of_rows(cursor)
            cursor.close()
        except (sqlite3.Error, sqlite3.Warning) as error:
            text = INTERRUPTED if self._is_late() else _error_text(error)
        self._connection.commit()
        return text

    def _hash(self) -> TableHash:
        names = ", ".join(map(quoted, self._table.columns))
        try:
            digest = of_rows(self._connection.execute(f"SELECT {names} FROM {quoted(self._table.name)}"))
        except sqlite3.Error:
            return TableHash()
        return TableHash(sql=digest, python=digest)

    def _is_late(self) -> int:
        return int(time.monotonic() > self._deadline)


class SqliteEngine(DatabaseEngine):
    """A database in memory for each session."""

    def __init__(self, statement_limit_s: float) -> None:
        self._limit_s = statement_limit_s

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        yield

    @asynccontextmanager
    async def session(self, table: Table) -> AsyncIterator[DatabaseSession]:
        session = SqliteSession(table, self._limit_s)
        try:
            yield session
        finally:
            session.close()


def _authorize(action: int, *_: object) -> int:
    return sqlite3.SQLITE_DENY if action in _DENIED else sqlite3.SQLITE_OK


def _error_text(error: sqlite3.Error | sqlite3.Warning) -> str:
    return observation.of_error(getattr(error, "sqlite_errorcode", 1), "HY000", str(error))
