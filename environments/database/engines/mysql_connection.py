"""Connections to a MySQL-like server, and its administrator; all calls block."""

import socket
import threading
from collections.abc import Sequence
from typing import TypeAlias

import pymysql
from pymysql.cursors import SSCursor

from environments.database.engines.base import ServerAddress
from proctor.environment import EnvironmentFault, ServiceAway

Connection: TypeAlias = "pymysql.Connection[SSCursor]"
_ON_CONNECT = (
    "SET SESSION group_concat_max_len=4194304, wait_timeout=2147483, "
    "lock_wait_timeout={lock_wait_s}, innodb_lock_wait_timeout={lock_wait_s}"
)
_CONNECT_S = 10
_ANSWER_S = 30
"""A server that does not answer its administrator for so long stands still."""
_AWAY = (1040, 1053, 1152, 1158, 1159, 1160, 1161, 1927, 2002, 2003, 2006, 2013, 2014, 2055)
"""The errors of a server that is full, shuts down, or is gone."""


def connect(
    address: ServerAddress, user: str, password: str, lock_wait_s: int, answer_s: float | None = None
) -> Connection:
    """A connection in which each statement commits, with the settings of all our connections.

    A statement without an answer for `answer_s` seconds breaks it; None waits for ever.
    """
    connection = pymysql.connect(
        defer_connect=True,
        host=address.host,
        port=address.port,
        user=user,
        password=password,
        charset="utf8mb4",
        sql_mode="",
        autocommit=True,
        local_infile=False,
        ssl_disabled=True if address.socket else None,
        connect_timeout=_CONNECT_S,
        read_timeout=answer_s,
        init_command=_ON_CONNECT.format(lock_wait_s=lock_wait_s),
        cursorclass=SSCursor,
    )
    connection.connect(None if address.socket is None else _open(address.socket))
    return connection


def fault_of(error: pymysql.MySQLError | OSError) -> EnvironmentFault:
    """The fault that an error of the server is: ServiceAway where the server can't be reached, or breaks off."""
    number = error.args[0] if error.args else None
    refused = isinstance(error, pymysql.MySQLError) and isinstance(number, int) and number not in _AWAY
    return (EnvironmentFault if refused else ServiceAway)(f"database server: {error}")


def is_alive(connection: Connection) -> bool:
    """Whether a connection still works; one that the server ended is closed on our side too."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("DO 0")
    except pymysql.MySQLError:
        close(connection)
        return False
    return True


class Admin:
    """The administrator of one server, with a pool of connections. Any thread may call `run`."""

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        self._idle: list[Connection] = []
        self._closed = False
        self._lock = threading.Lock()

    def run(self, *statements: str) -> Sequence[tuple[object, ...]]:
        """Runs statements and returns the rows of the last one. Raises EnvironmentFault."""
        try:
            connection = self._take()
            try:
                rows = _rows_of_last(connection, statements)
            except pymysql.MySQLError:
                close(connection)
                raise
        except (pymysql.MySQLError, OSError) as error:
            raise fault_of(error) from error
        with self._lock:
            self._idle.append(connection)
        if self._closed:
            self.close()
        return rows

    def dedicated(self) -> Connection:
        """A connection that the caller keeps and closes."""
        return connect(self.address, self.address.user, self.address.password, lock_wait_s=5, answer_s=_ANSWER_S)

    def close(self) -> None:
        """Close the connections; one that is in use is closed after that."""
        self._closed = True
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            close(connection)

    def _take(self) -> Connection:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self.dedicated()
            if is_alive(connection):
                return connection


def _open(path: str) -> socket.socket:
    """A connected socket. PyMySQL would leave a refused one open until it is garbage-collected."""
    opened = socket.socket(socket.AF_UNIX)
    try:
        opened.settimeout(_CONNECT_S)
        opened.connect(path)
    except OSError:
        opened.close()
        raise
    return opened


def close(connection: Connection) -> None:
    """Closes a connection that may be closed already."""
    if connection.open:
        connection.close()


def _rows_of_last(connection: Connection, statements: Sequence[str]) -> Sequence[tuple[object, ...]]:
    rows: Sequence[tuple[object, ...]] = ()
    for statement in statements:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            rows = tuple(cursor.fetchall()) if cursor.description else ()
    return rows
