"""Checks of a store given by URL: whether it answers, its schema versions, and the rights of its account."""

from dataclasses import dataclass, replace

import sqlalchemy as sa

from eval_client.doctor.finding import Finding, fail, ok, warn
from eval_client.store.connection import WISHED_ROW_BYTES, StoreError, connect, most_row_bytes, parsed_url, reason
from eval_client.store.tables import OLDEST_SCHEMA, SCHEMA_VERSION, run_table

PROBE = "proctor_doctor_probe"
CONNECT_S = 5


@dataclass(frozen=True)
class StoreFacts:
    """Facts about a store."""

    url: str
    """Without its password."""
    unreachable: str | None = None
    """Why no connection can be made; None where one can."""
    version: str = ""
    refused: str | None = None
    """The server's message where the account lacks a right; None where it lacks none."""
    schemas: tuple[int, ...] = ()
    """The schema versions of the runs there."""
    row_bytes: int | None = None
    """The size of the largest row that the server takes; None where no size is known."""


def store_facts(url: str) -> StoreFacts:
    """Connect to a store and try the rights that a run needs, on a table that is dropped afterwards."""
    try:
        parsed = parsed_url(url)
        if parsed.get_backend_name() != "sqlite":
            parsed = parsed.update_query_dict({"connect_timeout": str(CONNECT_S)})
        engine = connect(parsed.render_as_string(hide_password=False))
    except StoreError as error:
        return StoreFacts("the store's URL", unreachable=str(error))
    shown = engine.url.difference_update_query(["connect_timeout"]).render_as_string(hide_password=True)
    try:
        with engine.connect() as connection:
            version = ".".join(map(str, engine.dialect.server_version_info or ()))
            facts = StoreFacts(shown, version=f"{engine.dialect.name} {version}", row_bytes=most_row_bytes(connection))
            connection.rollback()
            try:
                return replace(facts, schemas=_try_out(connection))
            except sa.exc.DBAPIError as error:
                return replace(facts, refused=reason(error))
    except sa.exc.SQLAlchemyError as error:
        return StoreFacts(shown, unreachable=reason(error))
    finally:
        engine.dispose()


def _try_out(connection: sa.Connection) -> tuple[int, ...]:
    """Use each right once; the schema versions of the runs in the store. Raises DBAPIError."""
    probe = sa.Table(PROBE, sa.MetaData(), sa.Column("n", sa.Integer))
    with connection.begin():
        probe.create(connection, checkfirst=True)
        connection.execute(probe.insert(), {"n": 1})
        connection.execute(probe.update().values(n=2))
        connection.execute(probe.delete())
        probe.drop(connection)
    if not sa.inspect(connection).has_table(run_table.name):
        return ()
    return tuple(connection.execute(sa.select(run_table.c.schema_version).distinct()).scalars())


def store_finding(facts: StoreFacts) -> Finding:
    """The finding on a store."""
    if facts.unreachable is not None:
        return fail("store-unreachable", f"{facts.url}: {facts.unreachable}")
    if facts.refused is not None:
        return fail("store-rights", f"{facts.url}: {facts.refused}")
    others = [str(number) for number in facts.schemas if not OLDEST_SCHEMA <= number <= SCHEMA_VERSION]
    if others:
        known = f"this version reads {OLDEST_SCHEMA} to {SCHEMA_VERSION}"
        return fail("store-schema", f"{facts.url}: holds runs of schema {', '.join(others)}; {known}")
    if facts.row_bytes is not None and facts.row_bytes < WISHED_ROW_BYTES:
        return warn("store-rows", f"{facts.url}: max_allowed_packet is {facts.row_bytes:,} bytes")
    return ok("store", f"{facts.url}: {facts.version}; tables and rows can be written")
