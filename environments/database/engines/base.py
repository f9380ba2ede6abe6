"""Database engines: a database for each sample, its statements, the hash of its table; and the addresses of servers."""

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from environments.database.dataset import Table
from environments.database.table_hash import TableHash, quoted

PASSWORD_VARIABLE = "PROCTOR_DB_PASSWORD"
MAX_STATEMENT_BYTES = 1 << 20
INTERRUPTED = "1317 (70100): Query execution was interrupted"
"""The observation of a statement that was killed at its deadline."""
TOO_LONG = f"1153 (08S01): Got a packet bigger than 'max_allowed_packet' bytes ({MAX_STATEMENT_BYTES})"


def create_statement(table: Table) -> str:
    """The SQL that creates a sample's table, without its rows."""
    return f"CREATE TABLE {quoted(table.name)} ({', '.join(f'{quoted(name)} TEXT' for name in table.columns)})"


class DatabaseSession(ABC):
    """One sample's own database with its table in it."""

    setup_error: str | None = None
    """Why the table could not be created, in which case the database is empty; None where it was."""

    async def run(self, sql: str) -> str:
        """Runs one statement, commits it and returns its observation. Raises EnvironmentFault."""
        text = sql.encode(errors="replace").decode()
        return TOO_LONG if len(text.encode()) > MAX_STATEMENT_BYTES else await self._run(text)

    @abstractmethod
    async def _run(self, sql: str) -> str:
        """As `run`, of a statement that can be sent."""

    @abstractmethod
    async def table_hash(self) -> TableHash:
        """The hash of the table now; on a server the agent's connection is ended first. Raises EnvironmentFault."""


class DatabaseEngine(ABC):
    """A database server, or an embedded database."""

    @abstractmethod
    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Holds what the sessions share, from before the first to after the last. Raises EnvironmentFault."""

    @abstractmethod
    def session(self, table: Table) -> AbstractAsyncContextManager[DatabaseSession]:
        """A new database for one sample, dropped at the end. Raises EnvironmentFault."""


@dataclass(frozen=True)
class ServerAddress:
    """How to reach a server as its administrator; a private server gets a new address with every start."""

    user: str
    password: str = field(repr=False, default="")
    socket: str | None = None
    host: str = "localhost"
    port: int = 3306


def parse_url(url: str, password: str | None) -> ServerAddress:
    """The address in `mysql://user@host[:port]/[?unix_socket=path]`, with a password from elsewhere.

    Raises ValueError, also where the URL contains a password, which plans and stores must not. The message never
    quotes the URL.
    """
    form = f"write it as mysql://user@host:3306/ and the password into {PASSWORD_VARIABLE}"
    try:
        parts = urlsplit(url)
        port = parts.port or 3306
    except ValueError as error:
        raise ValueError(f"server: not a server URL; {form}") from error
    if parts.scheme not in ("mysql", "mariadb") or not parts.hostname or not parts.username:
        raise ValueError(f"server: not a server URL with scheme, user and host; {form}")
    if parts.password is not None:
        raise ValueError(f"server: the URL must not contain a password; {form}")
    return ServerAddress(
        user=unquote(parts.username),
        password=password or "",
        socket=parse_qs(parts.query).get("unix_socket", [None])[0],
        host=parts.hostname,
        port=port,
    )
