"""Integrity checks of a run's store: every acknowledged row is present, and SQLite's own check passes."""

from collections.abc import Sequence

import sqlalchemy as sa

from eval_client.store import wal
from eval_client.store.connection import RESTORE, StoreError, is_damage, reason
from eval_client.store.store import Store
from eval_client.store.tables import attempt_table, reply_table, trial_table, turn_table

NAMED = 5
"""How many findings of a kind are listed; the rest are counted."""


def check_whole(store: Store) -> None:
    """Check a whole store. Raises StoreError where anything is damaged or lost."""
    if found := damage(store):
        raise StoreError(_damaged(store, found))
    if (lost := losses(store)) is not None:
        note = wal.losses_note(str(_file(store)))
        raise StoreError(
            f"{_named(store)}: {lost}; restore it from a copy, or, to go on and pay for them again, delete {note}"
        )


def check_before_resume(store: Store) -> None:
    """`check_whole` where the run's state or files show that its last client was killed.

    After a clean end only the rows of trials and their indexes are checked, which decide what is played: a quarter of a
    second of CPU for 100,000 trials. Raises StoreError where they are damaged.
    """
    path = _file(store)
    if store.state() == "running" or (path is not None and (wal.had_log(path) or wal.losses_note(path).exists())):
        check_whole(store)
    elif path is not None and (found := _damaged_pages(store, trial_table.name)):
        raise StoreError(_damaged(store, found))


def check_at_rest(store: Store) -> None:
    """`check_whole` of a SQLite file after all of this client's writes, with its connections closed.

    Does nothing for a database server.
    """
    if _file(store) is not None:
        store.engine.dispose()
        check_whole(store)


def losses(store: Store) -> str | None:
    """The recorded loss of a SQLite store's commits from a damaged log; None where none is recorded."""
    return wal.losses(path) if (path := _file(store)) is not None else None


def damage(store: Store) -> list[str]:
    """What is damaged, one line each. Reads a whole SQLite file; counts every trial's attempts, turns and replies."""
    found: list[str] = []
    try:
        with store.engine.connect() as connection:
            if store.engine.dialect.name == "sqlite":
                found += _findings(connection, str(NAMED))
            rows = connection.execute(_incomplete(store.run)).all()
            gaps: Sequence[sa.Row[tuple[object, ...]]] = ()
            if sa.inspect(connection).has_table(reply_table.name):  # an older store has none
                gaps = connection.execute(_missing_replies(store.run)).all()
    except sa.exc.DatabaseError as error:
        if not is_damage(error):
            raise
        return [*found, reason(error)]
    incomplete = [
        f"trial {row.id} ({row.agent}, {row.task}, sample {row.sample}): {row.turns_there} of {row.turns or 0} turns "
        f"and {row.attempts_there} of {row.attempts} attempts are there"
        for row in rows
    ]
    missing = [
        f"trial {row.trial}: {row.there} of at least {row.kept} replies of judges, hosts and users are there"
        for row in gaps
    ]
    return [*found, *_shortened(incomplete), *_shortened(missing)]


def _damaged_pages(store: Store, table: str) -> list[str]:
    """What SQLite finds damaged in a table and its indexes, one line each."""
    try:
        with store.engine.connect() as connection:
            return _findings(connection, table)[:NAMED]
    except sa.exc.DatabaseError as error:
        if not is_damage(error):
            raise
        return [reason(error)]


def _findings(connection: sa.Connection, of: str) -> list[str]:
    """What SQLite's check of a table, or with a number of the whole file, finds.

    `PRAGMA quick_check`, three fifths of the CPU, does not see that an index lacks rows of its table.
    """
    return [text for text in connection.execute(sa.text(f"PRAGMA integrity_check({of})")).scalars() if text != "ok"]


def _damaged(store: Store, found: Sequence[str]) -> str:
    return f"{_named(store)} is damaged: {'; '.join(found)}; {RESTORE}"


def _named(store: Store) -> str:
    path = _file(store)
    return f"the store of run {store.run!r}" + (f" ({path})" if path is not None else "")


def _shortened(trials: list[str]) -> list[str]:
    more = len(trials) - NAMED
    return [*trials[:NAMED], *([f"and {more} more trials"] if more > 0 else [])]


def _file(store: Store) -> str | None:
    url = store.engine.url
    return url.database if url.get_backend_name() == "sqlite" and url.database != ":memory:" else None


def _incomplete(run: str) -> sa.Select[tuple[object, ...]]:
    """The trials with fewer attempt rows than their `attempts`, or, once scored, fewer turn rows than their `turns`.

    Also those with a gap in the numbers of their turns: a row that only holds the agent's stop is none of `turns`.
    """
    t, a, u = trial_table.c, attempt_table.c, turn_table.c
    of_attempt, of_turn = sa.and_(a.run == t.run, a.trial == t.id), sa.and_(u.run == t.run, u.trial == t.id)
    attempts = sa.select(sa.func.count()).select_from(attempt_table).where(of_attempt).correlate(trial_table)
    newest = sa.select(sa.func.max(a.journal)).where(of_attempt).correlate(trial_table).scalar_subquery()
    of_newest = sa.and_(of_turn, u.journal == newest)
    turns, last = (
        sa.select(each).select_from(turn_table).where(of_newest).correlate(trial_table).scalar_subquery()
        for each in (sa.func.count(), sa.func.max(u.turn))
    )
    counted = (
        sa.select(t.id, t.agent, t.task, t.sample, t.attempts, t.turns, t.score)
        .add_columns(attempts.scalar_subquery().label("attempts_there"), turns.label("turns_there"))
        .add_columns(last.label("last_turn"))
        .where(t.run == run)
        .subquery()
    )
    c = counted.c
    gap = c.turns_there < c.last_turn
    fewer = sa.or_(c.attempts_there < c.attempts, sa.and_(c.score.is_not(None), sa.or_(gap, c.turns_there < c.turns)))
    return sa.select(counted).where(fewer).order_by(c.id)


def _missing_replies(run: str) -> sa.Select[tuple[object, ...]]:
    """The trials with gaps in the numbers, from 0, of their reply rows; missing last rows can't be detected."""
    r = reply_table.c
    there, kept = sa.func.count(), sa.func.max(r.number) + 1
    columns = (r.trial, there.label("there"), kept.label("kept"))
    return sa.select(*columns).where(r.run == run).group_by(r.trial).having(there < kept).order_by(r.trial)
