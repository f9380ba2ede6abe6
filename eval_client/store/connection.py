"""Stores by URL: how to connect to one, and which runs it holds."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa

from environments.redaction import remember
from eval_client.store.tables import run_table

Answer = TypeVar("Answer")

log = logging.getLogger(__name__)

AGAIN_S = 1.0
SAY_AFTER = 5
"""Tries in vain after which `patiently` says what it waits for."""
IDLE_IN_TRANSACTION = "25P03"
"""PostgreSQL's code for a connection that it closed since its client stood still in the midst of a transaction."""


class StoreError(ValueError):
    """The store can't be used as asked; the message says what to do."""


class RunOver(StoreError):
    """The run has come to its end; there is nothing to join."""


class RunExists(StoreError):
    """A new run can't be written: there is one of that name."""


def connect(url: str) -> sa.Engine:
    """An engine for a store's URL. SQLite is set to WAL with full durability."""
    try:
        parsed = sa.make_url(url)
        remember(str(parsed.password or ""))
        if parsed.get_backend_name() in ("mysql", "mariadb"):
            parsed = parsed.update_query_dict({"charset": "utf8mb4"})
        engine = sa.create_engine(parsed, pool_pre_ping=True)
    except (sa.exc.ArgumentError, ImportError) as error:
        fix = "use sqlite, postgresql+psycopg or mysql+pymysql, and install its extra"
        raise StoreError(f"store: {error}; {fix}") from error
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _set_up_sqlite)
    return engine


def passes(error: sa.exc.SQLAlchemyError) -> bool:
    """Whether the same may be tried again later: the database is away, full, locked, or has dropped the connection."""
    if isinstance(error, sa.exc.OperationalError):
        return True
    return isinstance(error, sa.exc.DBAPIError) and (
        error.connection_invalidated or getattr(error.orig, "sqlstate", None) == IDLE_IN_TRANSACTION
    )


async def patiently(ask: Callable[..., Answer], *arguments: object, aside: bool = True) -> Answer:
    """The database's answer, whenever it can be had; asked in a thread, or where not `aside` here and now."""
    tried = 0
    while True:
        try:
            return await asyncio.to_thread(ask, *arguments) if aside else ask(*arguments)
        except sa.exc.SQLAlchemyError as error:
            if not passes(error):
                raise
            tried += 1
            if tried == SAY_AFTER:
                log.warning("the store does not answer, waiting: %s", reason(error))
            await asyncio.sleep(AGAIN_S)


def reason(error: sa.exc.SQLAlchemyError) -> str:
    """What the database said, in its own words."""
    return str(getattr(error, "orig", None) or type(error).__name__)


def _set_up_sqlite(connection: object, _record: object) -> None:
    cursor = connection.cursor()  # type: ignore[attr-defined]
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=5000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def sqlite_url(folder: Path) -> str:
    """The URL of the store inside a run's folder."""
    return f"sqlite:///{folder.resolve() / 'run.sqlite'}"


def runs(engine: sa.Engine) -> list[tuple[str, str, str]]:
    """(run, created at, state) of every run in a store, oldest first."""
    if not sa.inspect(engine).has_table(run_table.name):
        return []
    with engine.connect() as connection:
        query = sa.select(run_table.c.id, run_table.c.created_at, run_table.c.state).order_by(run_table.c.created_at)
        return [(row.id, row.created_at, row.state) for row in connection.execute(query)]
