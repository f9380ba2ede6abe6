"""Requests to stop a run, which its clients read from the store: so they reach clients on other machines too."""

from typing import Literal

import sqlalchemy as sa

from eval_client.store.connection import StoreError
from eval_client.store.migration import existing_columns
from eval_client.store.store import Store
from eval_client.store.tables import run_table

Stop = Literal["drain", "now"]
"""Play the trials under way to their end, or stop at once: what one and two Ctrl-C do."""


def request_stop(store: Store, stop: Stop) -> None:
    """Ask the clients that play the run to stop. A later start or resume of the run withdraws this. Raises StoreError.

    A request to stop at once is not weakened to one to drain.
    """
    if run_table.c.stop not in existing_columns(store.engine, run_table):
        raise StoreError(f"run {store.run!r} is played by an earlier version of Proctor; send SIGINT to its process")
    mine = sa.and_(run_table.c.id == store.run, sa.or_(run_table.c.stop.is_(None), run_table.c.stop != "now"))
    with store.engine.begin() as connection:
        connection.execute(run_table.update().where(mine).values(stop=stop))


def requested_stop(store: Store) -> Stop | None:
    """What was asked since the run's last start or resume. Raises DatabaseError where the database is unavailable."""
    with store.engine.connect() as connection:
        stop: Stop | None = connection.execute(
            sa.select(run_table.c.stop).where(run_table.c.id == store.run)
        ).scalar_one_or_none()
        return stop
