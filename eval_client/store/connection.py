"""Connects to stores by URL, classifies their errors, holds a client's fence, and lists runs."""

import asyncio
import atexit
import logging
import math
import re
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from eval_client.store import values
from eval_client.store.sqlite_file import open_for_writing, take_marks_away
from eval_client.store.tables import LIVE, exact_order, is_mysql, run_table, shard_table
from proctor.observability.redaction import remember

Answer = TypeVar("Answer")

log = logging.getLogger(__name__)
logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)  # it logs tracebacks of what whoever asked is told

AGAIN_S = 1.0
SAY_AFTER = 5
"""Failed tries after which `retry_until_available` logs a warning."""
START_S = 20.0
"""How long after an engine was made its connections wait where the server takes no more."""
CROWDED = (1040, 1203, 1226)
"""MariaDB's and MySQL's error codes for too many connections, in all, of an account, and by its own limit."""
_CROWDED = re.compile(r"too many (clients|connections)|connection slots are reserved")
"""PostgreSQL's words for it: where a connection fails, its driver has no code (53300)."""
FORBIDDEN = (1044, 1142, 1143)
"""MariaDB's and MySQL's error codes for access denied to a database, a table or a column."""
IDLE_IN_TRANSACTION = "25P03"
"""PostgreSQL's code for a connection that it closed because it was idle in a transaction for too long."""
_MINE = shard_table.c.run == sa.bindparam("b_run"), shard_table.c.shard == sa.bindparam("b_shard")
_HOLD = shard_table.update().where(*_MINE, shard_table.c.state == LIVE).values(state=LIVE)
_engines = weakref.WeakSet[sa.Engine]()
"""Those of this process that are still in use."""


StoreError = values.StoreError
DatabaseError = sa.exc.SQLAlchemyError
"""What an operation raises whose database is away, is damaged, or refuses it."""


class RunOver(StoreError):
    """The run ended while this client waited for its turn."""


class RunExists(StoreError):
    """A new run can't be created: one of that name exists."""


class Fenced(Exception):
    """Another client has taken the run over; this client's writes are rejected."""


def connect(url: str | sa.URL, *, for_room: bool = False) -> sa.Engine:
    """An engine for a store's URL. SQLite is set to WAL with full durability. Raises StoreError for an invalid URL.

    While a server takes no more connections, those of the first START_S wait, and with `for_room` the first one for
    ever; later ones fail, and their users try again.
    """
    parsed = parsed_url(url)
    try:
        engine = sa.create_engine(parsed, pool_pre_ping=parsed.get_backend_name() != "sqlite")
    except (sa.exc.ArgumentError, ImportError) as error:
        raise StoreError(f"store: {error}; {_KINDS}, and install its extra") from error
    _engines.add(engine)
    if engine.dialect.name == "sqlite":
        open_for_writing(engine)
    else:
        sa.event.listen(engine, "do_connect", _waiting(math.inf if for_room else START_S))
    return engine


def _waiting(patience_s: float) -> Callable[..., Any]:
    """Opens a connection to a server; waits while it takes no more, and says so once."""
    give_up, said = time.monotonic() + patience_s, False

    def open_connection(dialect: sa.Dialect, _record: object, arguments: list[Any], options: dict[str, Any]) -> Any:
        nonlocal give_up, said
        while True:
            try:
                connection = dialect.connect(*arguments, **options)
            except dialect.loaded_dbapi.Error as error:
                crowded = (error.args or ("",))[0] in CROWDED or _CROWDED.search(str(error))
                if not crowded or time.monotonic() > give_up:
                    raise
                if not said:
                    log.warning("the store takes no more connections, waiting: %s", str(error).partition("\n")[0])
                said = True
                time.sleep(AGAIN_S)
            else:
                give_up = min(give_up, time.monotonic() + START_S)
                return connection

    return open_connection


ROW_BYTES = 4096
"""Of a statement with one row, beside the values."""
_KINDS = "use sqlite, postgresql+psycopg or mysql+pymysql"
_ENCODE = "write %40 for @, %3A for :, %2F for / and %23 for # in its user and password"


def parsed_url(url: str | sa.URL) -> sa.URL:
    """A store's URL. Raises StoreError, which holds no part of a URL that can't be told from its password."""
    try:
        parsed = sa.make_url(url)
    except ValueError:
        raise StoreError(f"store: the URL's port is no number; {_ENCODE}") from None
    except sa.exc.ArgumentError:
        raise StoreError(f"store: this is no URL of a database; {_KINDS}") from None
    remember(str(parsed.password or ""))
    kind = parsed.get_backend_name()
    if kind == "sqlite":
        return parsed
    if "@" in f"{parsed.host}{parsed.database}":
        raise StoreError(f"store: the URL has more than one @; {_ENCODE}")
    if not parsed.database:
        raise StoreError("store: the URL names no database; write /NAME behind its host")
    if kind not in ("mysql", "mariadb"):
        return parsed
    if parsed.drivername == kind:
        parsed = parsed.set(drivername=f"{kind}+pymysql")
    return parsed.update_query_dict({"charset": "utf8mb4"})


@atexit.register
def _close_engines() -> None:
    """Close all connections, so that SQLite moves its log into the file."""
    for engine in tuple(_engines):
        engine.dispose()
    take_marks_away()


def hold_live(connection: sa.Connection, run: str, fence: int) -> None:
    """Let no other client take the run over before this transaction ends. Raises Fenced where one has."""
    if connection.execute(_HOLD, {"b_run": run, "b_shard": fence}).rowcount != 1:
        if connection.execute(sa.select(run_table.c.id).where(run_table.c.id == run)).first() is None:
            raise StoreError(f"run {run!r} is no longer in its store, which was replaced; restore it, then resume")
        raise Fenced("another client has taken this run over")


def is_transient(error: sa.exc.SQLAlchemyError) -> bool:
    """Whether an error is transient: the database is unavailable, full or locked, or has dropped the connection."""
    if isinstance(error, sa.exc.OperationalError):
        forbidden = error.orig is not None and (error.orig.args or ("",))[0] in FORBIDDEN
        return not values.is_damage(error) and not forbidden
    return isinstance(error, sa.exc.DBAPIError) and (
        error.connection_invalidated or getattr(error.orig, "sqlstate", None) == IDLE_IN_TRANSACTION
    )


def most_row_bytes(connection: sa.Connection) -> int | None:
    """The size of the largest statement that a MySQL or MariaDB server takes; None where no size is known."""
    if not is_mysql(connection.dialect):
        return None
    return int(connection.exec_driver_sql("SELECT @@max_allowed_packet").scalar_one())


def too_large(engine: sa.Engine, rows: Iterable[Mapping[str, object]]) -> str | None:
    """Why a server closes its connection on these rows, although it is there: one is larger than what it takes."""
    try:
        with engine.connect() as connection:
            most = most_row_bytes(connection)
    except sa.exc.SQLAlchemyError:
        return None
    size = max((sum(_sent_bytes(value) for value in row.values()) for row in rows), default=0)
    if most is None or size < most - ROW_BYTES:
        return None
    return f"it has some {size:,} bytes, and max_allowed_packet of the server is {most:,}: raise that variable"


def _sent_bytes(value: object) -> int:
    """Of a value in a statement, where quotes, backslashes and ends of lines are escaped."""
    text = str(value)
    return len(text.encode()) + sum(map(text.count, "\"'\\\n\r\0\x1a"))


def damaged(engine: sa.Engine, what: str) -> str:
    """The message for a damaged store, with its fix."""
    where = engine.url.render_as_string(hide_password=True)
    named = engine.url.database if engine.dialect.name == "sqlite" else where
    return f"store {named} is damaged: {what}; {values.RESTORE}"


async def retry_until_available(ask: Callable[..., Answer], *arguments: object, aside: bool = True) -> Answer:
    """Call `ask` until the database is available, and return its answer. Raises errors that are not transient.

    `ask` runs in a thread if `aside`, else in this one, where it blocks the event loop.
    """
    tried = 0
    while True:
        try:
            return await asyncio.to_thread(ask, *arguments) if aside else ask(*arguments)
        except sa.exc.SQLAlchemyError as error:
            if not is_transient(error):
                raise
            tried += 1
            if tried == SAY_AFTER:
                log.warning("the store does not answer, waiting: %s", reason(error))
            await asyncio.sleep(AGAIN_S)


def reason(error: sa.exc.SQLAlchemyError) -> str:
    """The first line of the database driver's own message: PostgreSQL's goes on with the statement."""
    own = getattr(error, "orig", None)
    read_only = (getattr(own, "sqlite_errorcode", None) or 0) & 0xFF == sqlite3.SQLITE_READONLY
    if read_only:
        return "it can only be read; its disk is full, or read-only"
    return str(own or type(error).__name__).strip().partition("\n")[0]


def file_url(folder: Path) -> sa.URL:
    """The URL of the store inside a run's folder, whose name may be anything, also no UTF-8."""
    return sa.URL.create("sqlite", database=str(folder.resolve() / "run.sqlite"))


def sqlite_url(folder: Path) -> str:
    """`file_url` as text. Raises StoreError where the folder's name is no UTF-8."""
    try:
        return file_url(folder).render_as_string(hide_password=False)
    except UnicodeEncodeError:
        raise StoreError(f"{folder}: its name is no UTF-8; rename it") from None


def runs(engine: sa.Engine) -> list[tuple[str, str, str]]:
    """(run, created at, state) of every run in a store, oldest first; without those whose names are no texts."""
    if not sa.inspect(engine).has_table(run_table.name):
        return []
    with engine.connect() as connection:
        names = run_table.c.id, run_table.c.created_at, run_table.c.state
        columns = (sa.type_coerce(column, sa.String()).label(column.name) for column in names)
        order = (exact_order(engine.dialect, column) for column in (run_table.c.created_at, run_table.c.id))
        query = sa.select(*columns).order_by(*order)
        return [
            (row.id, str(row.created_at), str(row.state)) for row in connection.execute(query) if type(row.id) is str
        ]
