"""The schema of a store."""

from typing import Any

import sqlalchemy as sa

from eval_client.store.values import check_columns

SCHEMA_VERSION = 3
OLDEST_SCHEMA = 2
"""Runs from this schema on can be read as they are; a resume adds the columns that they lack."""
LONG = sa.Text().with_variant(sa.Text(2**32 - 1), "mysql", "mariadb")
"""Text of any length; the length given for MySQL and MariaDB makes the column LONGTEXT."""
NAME = sa.String(64)
TIME = sa.String(32)
"""A moment in UTC, as ISO 8601 text."""
FREE, SETTLED = 0, -1
"""Values of `holder`: to be played; has its final row, or is left alone, until the run is resumed. In runs of version
0.2.0 it may be the number of one of several clients."""
LIVE = "live"
"""The state of the client whose writes are accepted; others are of version 0.2.0, where a run had several clients."""
OVER = ("finished", "incomplete")
"""States of a run that is over."""

MARIADB_COLLATION, MYSQL_COLLATION = "utf8mb4_nopad_bin", "utf8mb4_0900_bin"
"""Compare texts by their characters alone, as SQLite and PostgreSQL do: case, accents and final blanks count."""


def _count(name: str) -> sa.Column[int]:
    """A column of token counts that earlier schemas lack: 0 in their rows."""
    return sa.Column(name, sa.BigInteger, nullable=False, server_default="0")


def _told_costs() -> tuple[sa.Column[Any], ...]:
    """Columns of what is known of a cost beside its tokens, 0 in rows of earlier versions."""
    counts = (_count(f"{name}_tokens") for name in ("cache_write", "estimated", "billed"))
    return *counts, sa.Column("billed_money", sa.Double, nullable=False, server_default="0")


def _key(*numbers: str) -> list[sa.Column[Any]]:
    """The primary key of a run's rows: the run, and numbers within it."""
    within = (sa.Column(name, sa.Integer, primary_key=True, autoincrement=False) for name in numbers)
    return [sa.Column("run", NAME, primary_key=True), *within]


def _turn_columns() -> tuple[sa.Column[Any], ...]:
    """What was asked and answered.

    `stop` is the endpoint's finish_reason, `model` the name it gave, `metered` whether it reported the usage: null
    where the client stopped instead of asking; `replica` is the URL that answered, of several. The columns from
    `world_seconds` on are null in rows of schema 2.
    """
    return (
        sa.Column("digest", sa.String(16), nullable=False),
        sa.Column("observation", LONG, nullable=False),
        sa.Column("reply", LONG, nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger, nullable=False),
        sa.Column("completion_tokens", sa.BigInteger, nullable=False),
        sa.Column("model_seconds", sa.Double, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        _count("cached_tokens"),
        _count("reasoning_tokens"),
        sa.Column("world_seconds", sa.Double),
        sa.Column("stop", NAME),
        sa.Column("model", sa.String(255)),
        sa.Column("metered", sa.Boolean),
        sa.Column("ended_at", TIME),
        *_told_costs(),
        sa.Column("replica", sa.String(255)),
    )


metadata = sa.MetaData()
run_table = sa.Table(
    "proctor_run",
    metadata,
    sa.Column("id", NAME, primary_key=True),
    sa.Column("schema_version", sa.Integer, nullable=False),
    sa.Column("created_at", TIME, nullable=False),
    sa.Column("manifest", LONG, nullable=False),
    sa.Column("fence", sa.Integer, nullable=False),
    sa.Column("state", sa.String(32), nullable=False),
    sa.Column("levels", LONG, nullable=False, default="{}"),
    sa.Column("stop", sa.String(32)),
    sa.Column("notes", LONG),
)
"""`stop` is what `proctor stop` asks of the clients that play the run, until the next start or resume, `notes` what
`proctor note` wrote, a line each. Both are null in rows of earlier versions."""
shard_table = sa.Table(
    "proctor_shard",
    metadata,
    *_key("shard"),
    sa.Column("state", sa.String(32), nullable=False),
    sa.Column("beats", sa.Integer, nullable=False),
    sa.Column("standing", LONG, nullable=False),
)
"""The client that plays the run or played it last: `shard` is the number of its fence.

Every transaction that writes for it requires the row, so a client that was taken over writes nothing more. `standing`
is what a part of a plan has spent.
"""
trial_table = sa.Table(
    "proctor_trial",
    metadata,
    *_key("id"),
    sa.Column("agent", NAME, nullable=False),
    sa.Column("task", NAME, nullable=False),
    sa.Column("sample", sa.String(255), nullable=False),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("reason", sa.String(32)),
    sa.Column("score", sa.Double),
    sa.Column("cause", LONG),
    sa.Column("finish", LONG),
    sa.Column("turns", sa.Integer),
    sa.Column("prompt_tokens", sa.BigInteger),
    sa.Column("completion_tokens", sa.BigInteger),
    sa.Column("seconds", sa.Double),
    sa.Column("holder", sa.Integer, nullable=False, default=FREE, server_default=str(FREE)),
    sa.Column("cluster", sa.String(255)),
    _count("cached_tokens"),
    _count("reasoning_tokens"),
    sa.Column("ended_at", TIME),
    sa.Column("cut_answers", sa.Integer),
    *_told_costs(),
)
"""`cluster` is the name that samples of the same world share, `cut_answers` how many answers `max_tokens` cut.

They and `ended_at` are null in rows of earlier versions.
"""
attempt_table = sa.Table(
    "proctor_attempt",
    metadata,
    *_key("trial", "number"),
    sa.Column("journal", sa.Integer, nullable=False),
    sa.Column("session", sa.String(32), nullable=False),
    sa.Column("outcome", sa.String(32)),
    sa.Column("cause", LONG),
    sa.Column("worker", sa.String(255)),
    sa.Column("started_at", TIME, nullable=False),
    sa.Column("digest", sa.String(255)),
    sa.Column("version", sa.String(64)),
    sa.Column("ended_at", TIME),
    sa.Column("finish", LONG),
)
"""`digest` is the task's, which the worker had to match; `version` is Proctor's. Null in rows of earlier versions.

`ended_at` is null in those too, and where the client was killed in mid-attempt. `finish` is the trial's earlier result,
where `proctor resume --retry` took it from the trial; else null.
"""
turn_table = sa.Table("proctor_turn", metadata, *_key("trial", "journal", "turn"), *_turn_columns())
call_table = sa.Table("proctor_call", metadata, *_key("trial", "journal", "turn", "number"), *_turn_columns())
"""The model calls that a function made in a turn, in their order. The turn's row, once it is there, has their sum.

`observation` is what was asked beyond the conversation, `digest` what the call is found by.
"""
reply_table = sa.Table(
    "proctor_reply",
    metadata,
    *_key("trial", "number"),
    sa.Column("key", sa.String(40), nullable=False),
    sa.Column("text", LONG, nullable=False),
    sa.Column("model", sa.String(255), nullable=False),
    sa.Column("prompt_tokens", sa.BigInteger, nullable=False),
    sa.Column("completion_tokens", sa.BigInteger, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("bought", sa.Boolean, nullable=False),
    sa.Column("usable", sa.Boolean, nullable=False),
    _count("cached_tokens"),
    *_told_costs(),
)
"""Replies of models on the environment's side in a trial, over all its attempts, in the order of first use.

`text` is a JSON string, since not every server stores a NUL character.
"""
summary_table = sa.Table(
    "proctor_summary",
    metadata,
    sa.Column("run", NAME, primary_key=True),
    sa.Column("agent", NAME, primary_key=True),
    sa.Column("task", NAME, primary_key=True),
    sa.Column("scored", sa.Integer, nullable=False),
    sa.Column("summary", LONG, nullable=False),
)
live_table = sa.Table(
    "proctor_live",
    metadata,
    *_key("shard"),
    sa.Column("beat", sa.Integer, nullable=False),
    sa.Column("view", LONG, nullable=False),
)
"""What each client's screen shows, as JSON, for viewers; `beat` grows with every write. Nothing else depends on it.

Runs of schema 2 have none.
"""
endpoint_table = sa.Table(
    "proctor_endpoint",
    sa.MetaData(),
    sa.Column("id", NAME, primary_key=True),
    sa.Column("state", LONG, nullable=False),
)
"""The pools of endpoints that all runs of a database server share. Not part of a store: created at first use."""

check_columns(metadata)


def _index_pending(_table: sa.Table, connection: sa.Connection, **_: object) -> None:
    """Create the partial index as SQL text: `sa.Index` with a condition would import PostgreSQL's dialect always."""
    if connection.dialect.name == "postgresql":
        columns = "run, holder, agent, task, attempts DESC, id"
        connection.execute(sa.text(f"CREATE INDEX proctor_trial_owed ON proctor_trial ({columns}) WHERE score IS NULL"))


sa.event.listen(trial_table, "after_create", _index_pending)


def is_mysql(dialect: sa.Dialect) -> bool:
    """Whether this is the dialect of MySQL or MariaDB, whose default collations take different names as equal."""
    return dialect.name in ("mysql", "mariadb")


def binary_collation(dialect: sa.Dialect) -> str:
    """The collation of our tables in MySQL or MariaDB, once connected."""
    return MARIADB_COLLATION if getattr(dialect, "is_mariadb", False) else MYSQL_COLLATION


def exact_order(dialect: sa.Dialect, text: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """A text to sort by, in the order of its characters' numbers, as SQLite and our tables in MariaDB have it.

    PostgreSQL would take the order of its locale, in which one text may follow another in one database and not in the
    next.
    """
    return sa.collate(text, "C") if dialect.name == "postgresql" else text


def _set_options(table: sa.Table, connection: sa.Connection, **_: object) -> None:
    """Set engine, character set and collation only where MySQL or MariaDB is used: they load MySQL's dialect.

    A server's default engine may be one without transactions.
    """
    if is_mysql(dialect := connection.dialect):
        options = {"engine": "InnoDB", "charset": "utf8mb4", "collate": binary_collation(dialect)}
        table.kwargs.update({f"{dialect.name}_{name}": value for name, value in options.items()})


for _table in (*metadata.tables.values(), endpoint_table):
    sa.event.listen(_table, "before_create", _set_options)
