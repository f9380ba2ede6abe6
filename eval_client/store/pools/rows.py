"""Pools in a database server, shared by all its runs: one row per pool; times are of the server's clock."""

import contextlib
import os
from collections.abc import Iterator

import sqlalchemy as sa

from eval_client.store.connection import is_transient, reason
from eval_client.store.pools.base import PoolError, Pools, Settle, read_pool
from eval_client.store.tables import endpoint_table

SALT = "salt"
"""The id of the row that holds the salt, in hex."""


class RowPools(Pools):
    """Pools in the table `proctor_endpoint`. Methods also raise DatabaseError where the database is unavailable."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._salt: bytes | None = None

    def salt(self) -> bytes:
        if self._salt is None:
            with _described():
                self._make_table()
                self._add_row(SALT, os.urandom(32).hex())
                with self._engine.connect() as connection:
                    kept = connection.execute(sa.select(endpoint_table.c.state).where(endpoint_table.c.id == SALT))
                    self._salt = str(kept.scalar_one()).encode()[:64]
        return self._salt

    def change(self, name: str, settle: Settle) -> None:
        with _described():
            self._change(name, settle)

    def _change(self, name: str, settle: Settle) -> None:
        mine = endpoint_table.c.id == name
        with self._engine.begin() as connection:
            text = connection.execute(sa.select(endpoint_table.c.state).where(mine).with_for_update()).scalar()
            if text is not None:
                now = database_now(connection)
                pool = settle(read_pool(text, f"{endpoint_table.name} {name}").excused(now), now)
                if pool.idle(now):
                    connection.execute(endpoint_table.delete().where(mine))
                else:
                    connection.execute(endpoint_table.update().where(mine).values(state=pool.model_dump_json()))
                return
        self._add_row(name, "")
        self._change(name, settle)

    def _make_table(self) -> None:
        try:
            endpoint_table.create(self._engine, checkfirst=True)
        except sa.exc.DatabaseError:  # another client may have been making it at the same time
            endpoint_table.create(self._engine, checkfirst=True)

    def _add_row(self, name: str, state: str) -> None:
        """Add a row unless it exists; another client may be adding it at the same time."""
        try:
            with self._engine.begin() as connection:
                there = sa.select(endpoint_table.c.id).where(endpoint_table.c.id == name)
                if connection.execute(there).first() is None:
                    connection.execute(endpoint_table.insert(), {"id": name, "state": state})
        except sa.exc.IntegrityError:
            return


@contextlib.contextmanager
def _described() -> Iterator[None]:
    """Turn database errors that are not transient into PoolError."""
    try:
        yield
    except sa.exc.DatabaseError as error:
        if is_transient(error):
            raise
        fix = "let the database's owner make it and grant the run's account SELECT, INSERT, UPDATE and DELETE"
        raise PoolError(f"the store's table {endpoint_table.name} can't be used; {fix}: {reason(error)}") from error


def database_now(connection: sa.Connection) -> float:
    """The database's wall clock in seconds since 1970."""
    postgresql = connection.dialect.name == "postgresql"
    clock = "extract(epoch FROM clock_timestamp())" if postgresql else "unix_timestamp(sysdate(6))"
    return float(connection.execute(sa.text(f"SELECT {clock}")).scalar_one())
