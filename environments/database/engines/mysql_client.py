"""The account of one session on a MySQL-like server: its database, its user, its connection; all calls block."""

import re
import secrets
from contextlib import suppress

import pymysql
from pymysql.cursors import SSCursor

from environments.database import observation
from environments.database.dataset import Table
from environments.database.engines.base import create_statement
from environments.database.engines.mysql_connection import Admin, Connection, close, connect, fault_of, is_alive
from environments.database.table_hash import TableHash, of_rows, query, quoted
from proctor.environment import EnvironmentFault

ALIAS = "proctor_session_of_this_agent"
"""What an agent sees, and may write, in place of the random name of its database and user; as long as that name."""
OWN_NAME = re.compile(r"proctor_([0-9a-f]{8})_[0-9a-f]{12}")
"""The names of our databases and users; the group is the worker's id."""
MAX_HASHED_ROWS = 100_000
_RIGHTS = (
    "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, INDEX, ALTER, REFERENCES, CREATE TEMPORARY TABLES, LOCK TABLES, "
    "CREATE VIEW, SHOW VIEW"
)
_NO_DATABASE = (1044, 1049)
"""Errors where the agent has dropped its database; it goes on without one."""
_GONE = (2006, 2013, 2014)
_MAY_BE_GONE = (1053, 1317, 1927)
"""The errors of a server that shuts down, and of an agent that kills its own statement or connection."""
_DRAINED_ROWS = 10_000


class Account:
    """One session's database, and its user, who has no rights elsewhere."""

    def __init__(self, admin: Admin, worker: str) -> None:
        self.name = f"proctor_{worker}_{secrets.token_hex(6)}"
        self.admin = admin
        self._connection: Connection | None = None
        self._ended = False

    def open(self, table: Table) -> str | None:
        """Creates database, user and table; returns why the table could not be created, or None.

        Raises EnvironmentFault.
        """
        rights_on = quoted(self.name.replace("_", r"\_"))
        self.admin.run(
            f"CREATE DATABASE {quoted(self.name)} CHARACTER SET utf8mb4",
            f"CREATE USER '{self.name}'@'%' IDENTIFIED BY '{secrets.token_hex(16)}'",
            f"GRANT {_RIGHTS} ON {rights_on}.* TO '{self.name}'@'%'",
        )
        connection = self._connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(create_statement(table))
                if table.rows:
                    cursor.execute(_insert(table, connection))
        except pymysql.MySQLError as error:
            self._fault_if_lost(error)
            with suppress(pymysql.MySQLError), connection.cursor() as cursor:
                cursor.execute(f"DROP TABLE IF EXISTS {quoted(table.name)}")
            return self._error_text(error)
        return None

    def run(self, sql: str) -> str:
        """The observation after one statement. Raises EnvironmentFault."""
        connection = self._live_connection()
        try:
            text = self._fetch(connection, sql.replace(ALIAS, self.name))
        except pymysql.MySQLError as error:
            self._fault_if_lost(error)
            text = self._error_text(error)
        except UnicodeDecodeError:
            text = observation.of_error(2019, "HY000", "The result is not text in the character set utf8mb4")
        self._commit(connection)
        return text

    def table_hash(self, table: Table) -> TableHash:
        """The hash of the table, read over a new connection. Raises EnvironmentFault."""
        connection = self._connect()
        names = ",".join(map(quoted, table.columns))
        try:
            with connection.cursor() as cursor:
                cursor.execute(query(table.name, table.columns))
                row = cursor.fetchone()
            by_python = self._python_hash(connection, f"SELECT {names} FROM {quoted(table.name)}")
        except pymysql.MySQLError as error:
            self._fault_if_lost(error)
            return TableHash()
        by_sql = row[0] if row else None
        return TableHash(sql=None if by_sql is None else str(by_sql), python=by_python)

    def kill(self, what: str) -> None:
        """Stops the session's statement (`QUERY`) or its connection (`CONNECTION`), if there is one."""
        connection = self._connection
        if connection is not None and connection.open:
            with suppress(EnvironmentFault):
                self.admin.run(f"KILL {what} {connection.thread_id()}")  # type: ignore[no-untyped-call]

    def end(self) -> None:
        """No connection is opened after this, not even by a statement that has not yet begun."""
        self._ended = True

    def check_server(self) -> None:
        """Raises EnvironmentFault where the server is gone."""
        self.admin.run("DO 0")

    def disconnect(self) -> None:
        """Ends the connection; `run` opens another one."""
        if self._connection is not None:
            close(self._connection)
        self._connection = None

    def _connect(self) -> Connection:
        """A new connection in place of the old one, with a new password, since the agent may have changed it."""
        self.disconnect()
        password = secrets.token_hex(16)
        self.admin.run(f"ALTER USER '{self.name}'@'%' IDENTIFIED BY '{password}'")
        try:
            self._connection = connect(self.admin.address, self.name, password, lock_wait_s=86_400)
            self._connection.select_db(self.name)
        except (pymysql.MySQLError, OSError) as error:
            if self._connection is None or error.args[0] not in _NO_DATABASE:
                raise fault_of(error) from error
        if self._ended:
            self.disconnect()
            raise EnvironmentFault("the session is over")
        return self._connection

    def _live_connection(self) -> Connection:
        """The session's connection, or a new one where the agent ended it."""
        if self._connection is not None and is_alive(self._connection):
            return self._connection
        return self._connect()

    def _commit(self, connection: Connection) -> None:
        """Ends the transaction, as the published code does after each statement.

        Where the server refuses, an XA transaction is under way. Disconnecting ends it before another statement can
        prepare it: a prepared one would outlive the session and lock the table.
        """
        try:
            connection.commit()
        except pymysql.MySQLError:
            self.disconnect()

    def _fetch(self, connection: Connection, sql: str) -> str:
        cursor = connection.cursor()
        try:
            cursor.execute(sql)
            if cursor.description is None:
                return observation.NO_ROWS
            return observation.of_rows(iter(cursor.fetchone, None), self._mask)
        finally:
            self._drain(cursor)

    def _drain(self, cursor: SSCursor) -> None:
        """Reads all results to their end, or stops them if they are long: the connection is then free again."""
        with suppress(pymysql.MySQLError, UnicodeDecodeError):
            read = 0
            while True:
                while cursor.description is not None and cursor.fetchone() is not None:
                    read += 1
                    if read == _DRAINED_ROWS:
                        self.kill("QUERY")
                if not cursor.nextset():
                    break
        with suppress(pymysql.MySQLError):
            cursor.close()

    def _python_hash(self, connection: Connection, sql: str) -> str | None:
        """The Python hash of a result; None where it is too long to be a sample's table."""
        cursor = connection.cursor()
        try:
            cursor.execute(sql)
            rows = [row for _, row in zip(range(MAX_HASHED_ROWS + 1), iter(cursor.fetchone, None), strict=False)]
        finally:
            self._drain(cursor)
        return of_rows(rows) if len(rows) <= MAX_HASHED_ROWS else None

    def _fault_if_lost(self, error: pymysql.MySQLError) -> None:
        number = error.args[0] if error.args else None
        if not isinstance(number, int) or number in _GONE:
            raise fault_of(error) from error
        if number in _MAY_BE_GONE:
            self.check_server()

    def _error_text(self, error: pymysql.MySQLError) -> str:
        state = getattr(error, "sqlstate", None) or "HY000"
        return self._mask(observation.of_error(error.args[0], state, str(error.args[1])))

    def _mask(self, text: str) -> str:
        return text.replace(self.name, ALIAS)


def drop_leftovers(admin: Admin, name: str) -> None:
    """Removes the database and user of this name, and ends that user's connections. Raises EnvironmentFault."""
    threads = admin.run(
        f"DROP USER IF EXISTS '{name}'@'%'",
        f"SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '{name}'",
    )
    for (thread,) in threads:
        with suppress(EnvironmentFault):
            admin.run(f"KILL CONNECTION {thread}")
    admin.run(f"DROP DATABASE IF EXISTS {quoted(name)}")


def _insert(table: Table, connection: Connection) -> str:
    """One statement with all rows. Values are escaped here, not by a format string, since names may contain `%`."""
    rows = (f"({', '.join(map(connection.escape, row))})" for row in table.rows)
    return f"INSERT INTO {quoted(table.name)} VALUES {', '.join(rows)}"
