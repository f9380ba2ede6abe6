"""Statements: several in one reply, the names that one may use, what is shown of a result, and the hash of a table."""

import itertools
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from environments.database import observation
from environments.database.dataset import Table
from environments.database.engines.sqlite import SqliteEngine
from environments.database.session import StatementRunner, Way
from environments.database.table_hash import of_rows

TABLE = Table(name="t", columns=("a", "b"), rows=(("1", "x"), ("2", "y")))


async def ran(way: Way, sql: str) -> tuple[str, str]:
    """The observation of SQL, and the table after it; for tables."""
    async with SqliteEngine(5).session(TABLE) as session:
        return await StatementRunner(session, way, "t").run(sql), await session.run("SELECT * FROM t")


_CELLS = st.one_of(st.none(), st.integers(), st.text(max_size=60), st.decimals(), st.binary(max_size=10))


@given(st.lists(st.lists(_CELLS, min_size=1, max_size=4).map(tuple), max_size=30))
def test_rows_are_pythons_list_of_tuples_cut_at_800(rows: list[tuple[object, ...]]) -> None:
    whole = str(rows)
    wanted = whole if len(whole) <= 800 else whole[:800] + "[TRUNCATED]"
    assert observation.of_rows(iter(rows)) == wanted


def test_an_endless_result_is_read_only_as_far_as_it_is_shown() -> None:
    numbers = itertools.count()
    text = observation.of_rows((number,) for number in numbers)
    assert text.endswith("[TRUNCATED]")
    assert next(numbers) < 200


def test_names_are_masked_before_the_text_is_cut() -> None:
    rows = [("secret" * 150,)]
    assert "sec" not in observation.of_rows(rows, lambda text: text.replace("secret", "*" * 6))


def test_decimals_print_as_the_client_library_gives_them() -> None:
    assert observation.of_rows([(Decimal("1.50"), None)]) == "[(Decimal('1.50'), None)]"


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), min_size=1))
def test_the_order_of_rows_does_not_matter(rows: list[tuple[str, str]]) -> None:
    encodable = [tuple(cell.encode(errors="replace").decode() for cell in row) for row in rows]
    assert of_rows(encodable) == of_rows(encodable[::-1])


def test_numbers_and_bytes_hash_as_mysql_prints_them() -> None:
    assert of_rows([(16, 2.5, b"\xff")]) == of_rows([(b"16", b"2.5", b"\xff")])
