"""The engine for MariaDB and MySQL servers; its deadlines and clean-up hold against any SQL."""

import asyncio
import logging
import secrets
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, ParamSpec, TypeVar

import pymysql

from environments.database.dataset import Table
from environments.database.engines.base import INTERRUPTED, DatabaseEngine, DatabaseSession, ServerAddress
from environments.database.engines.mysql_client import OWN_NAME, Account, drop_leftovers
from environments.database.engines.mysql_connection import Admin, Connection, fault_of, is_alive
from environments.database.engines.private_server import PrivateServer
from environments.database.table_hash import TableHash
from proctor.environment import EnvironmentFault, ServiceAway

_log = logging.getLogger(__name__)
_P = ParamSpec("_P")
_T = TypeVar("_T")
_GRACE_S = 5.0
_STILL_S = 2.0
"""A server whose administrator waits so long for an answer stood still, and its statements are not to blame."""
_KILLS = 10
"""Kills within the grace period: a statement that has not yet begun survives the first."""
_MAX_THREADS = 256


class _Late(ServiceAway):
    """A call to the server reached its deadline."""

    def __init__(self) -> None:
        super().__init__("the database server did not finish in time")


class Threads:
    """Two thread pools, so that the end of a statement never waits for a thread that runs one."""

    def __init__(self) -> None:
        self.statements = ThreadPoolExecutor(_MAX_THREADS, "sql")
        self.admin = ThreadPoolExecutor(4, "sql-admin")

    def close(self) -> None:
        self.statements.shutdown(wait=False, cancel_futures=True)
        self.admin.shutdown(wait=False, cancel_futures=True)


class MySqlSession(DatabaseSession):
    """Calls the session's account in threads, with a deadline."""

    def __init__(self, account: Account, table: Table, threads: Threads, limit_s: float) -> None:
        self._account = account
        self._table = table
        self._threads = threads
        self._limit_s = limit_s
        self._work: asyncio.Future[Any] | None = None

    async def open(self) -> None:
        """Creates database, user and table. Raises EnvironmentFault."""
        self.setup_error = await self._in_time(self._account.open, self._table)

    async def _run(self, sql: str) -> str:
        try:
            return await self._in_time(self._account.run, sql)
        except _Late:
            await self._admin(self._account.check_server)
            return INTERRUPTED

    async def table_hash(self) -> TableHash:
        try:
            return await self._in_time(self._account.table_hash, self._table)
        except _Late:
            await self._admin(self._account.check_server)
            return TableHash()

    async def close(self) -> None:
        """Removes everything; a statement that still runs is ended first."""
        self._account.end()
        for _ in range(_KILLS):
            if self._work is None or self._work.done():
                break
            await self._admin(self._account.kill, "CONNECTION")
            await asyncio.wait({self._work}, timeout=_GRACE_S / _KILLS)
        await self._admin(self._account.disconnect)
        await self._admin(_drop, self._account.admin, self._account.name)

    async def _in_time(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """The function's result. Ends its statement on the server at the deadline, and raises _Late.

        Raises ServiceAway where the server stood still.
        """
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._threads.statements, lambda: function(*args, **kwargs))
        self._work = work
        done, _ = await asyncio.wait({work}, timeout=self._limit_s)
        if done:
            return work.result()
        asked = loop.time()
        await self._admin(self._account.check_server)
        if loop.time() - asked > _STILL_S:
            raise ServiceAway("the database server stood still")
        for what in ("QUERY", "CONNECTION"):
            await self._admin(self._account.kill, what)
            done, _ = await asyncio.wait({work}, timeout=_GRACE_S)
            if done:
                work.exception()
                raise _Late
        raise ServiceAway("the database server does not end a statement that was killed")

    async def _admin(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads.admin, lambda: function(*args, **kwargs))


class MySqlEngine(DatabaseEngine):
    """Sessions on one server; on one that runs already it also removes what dead workers left behind."""

    def __init__(self, server: PrivateServer | ServerAddress, statement_limit_s: float) -> None:
        self._server = server
        self._private = server if isinstance(server, PrivateServer) else None
        self._limit_s = statement_limit_s
        self._worker = secrets.token_hex(4)
        self._threads = Threads()
        self._admin: Admin | None = None
        self._lease: Connection | None = None
        self._lease_lock = threading.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        try:
            if self._private:
                await self._private.start()
            else:
                await asyncio.to_thread(self._claim, await self._admin_now())
            yield
        finally:
            await asyncio.gather(*self._closing, return_exceptions=True)
            await asyncio.to_thread(self._disconnect)
            if self._private:
                await self._private.stop()

    @asynccontextmanager
    async def session(self, table: Table) -> AsyncIterator[DatabaseSession]:
        admin = await self._admin_now()
        if self._lease is not None:
            await asyncio.to_thread(self._hold_lease, admin)
        session = MySqlSession(Account(admin, self._worker), table, self._threads, self._limit_s)
        try:
            await session.open()
            yield session
        except ServiceAway:
            if self._private:
                await self._private.end_if_hung()
            raise
        finally:
            closing = asyncio.create_task(session.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            await asyncio.shield(closing)

    async def _admin_now(self) -> Admin:
        address = self._server if isinstance(self._server, ServerAddress) else await self._server.address()
        if self._admin is None or self._admin.address != address:
            if self._admin is not None:
                self._admin.close()
            self._admin = Admin(address)
        return self._admin

    def _claim(self, admin: Admin) -> None:
        """Marks this worker as alive, then drops the databases and users of workers that are not."""
        self._hold_lease(admin)
        schemas = admin.run("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")
        users = admin.run("SELECT User FROM mysql.user")
        for name in sorted({_text(row[0]) for row in (*schemas, *users)}):
            owner = OWN_NAME.fullmatch(name)
            if owner and admin.run(f"SELECT IS_FREE_LOCK('{_lock_of(owner[1])}')") == ((1,),):
                _drop(admin, name)

    def _hold_lease(self, admin: Admin) -> None:
        """Holds this worker's lock, which the server frees when the connection, and so the worker, is gone."""
        with self._lease_lock:
            if self._lease is None or not is_alive(self._lease):
                self._lease = self._leased(admin)

    def _leased(self, admin: Admin) -> Connection:
        try:
            lease = admin.dedicated()
            with lease.cursor() as cursor:
                cursor.execute(f"SELECT GET_LOCK('{_lock_of(self._worker)}', 5)")
                held = cursor.fetchone()
        except (pymysql.MySQLError, OSError) as error:
            raise fault_of(error) from error
        if held != (1,):
            raise EnvironmentFault("the database server refuses the lock that marks this worker as alive")
        return lease

    def _disconnect(self) -> None:
        if self._lease is not None and self._lease.open:
            self._lease.close()
        if self._admin is not None:
            self._admin.close()
            self._admin = None
        self._threads.close()


def _drop(admin: Admin, name: str) -> None:
    try:
        drop_leftovers(admin, name)
    except EnvironmentFault as fault:
        _log.warning("left behind on the database server: %s: %s", name, fault)


def _lock_of(worker: str) -> str:
    return f"proctor_{worker}"


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
