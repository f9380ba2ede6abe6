"""The interface of database engines: a database for each sample, its statements, and the hash of its table."""

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager

from environments.database.dataset import Table
from environments.database.table_hash import TableHash, quoted

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

    @abstractmethod
    async def run(self, sql: str) -> str:
        """Runs one statement, commits it and returns its observation. Raises EnvironmentFault."""

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
