"""The table hash, against MD5 sums computed by hand."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from environments.database.table_hash import of_rows, query, quoted


def md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def test_the_hash_is_that_of_the_sorted_row_hashes() -> None:
    first, second = sorted([md5("a,1")[:5], md5("é,2")[:5]])
    assert of_rows([("a", "1"), ("é", "2")]) == md5(f"{first},{second}")


def test_null_is_passed_over_and_no_rows_have_no_hash() -> None:
    assert of_rows([("a", None, "b"), (None, None, None)]) == of_rows([("", None, None), ("a", "b")])
    assert of_rows([]) is None


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), min_size=1))
def test_the_order_of_rows_does_not_matter(rows: list[tuple[str, str]]) -> None:
    encodable = [tuple(cell.encode(errors="replace").decode() for cell in row) for row in rows]
    assert of_rows(encodable) == of_rows(encodable[::-1])


def test_numbers_and_bytes_hash_as_mysql_prints_them() -> None:
    assert of_rows([(16, 2.5, b"\xff")]) == of_rows([(b"16", b"2.5", b"\xff")])


def test_names_are_quoted() -> None:
    assert quoted("a`b %s'") == "`a``b %s'`"
    assert "CONCAT_WS(',', `a``b`,`c d`)" in query("t`", ["a`b", "c d"])
    assert query("t`", ["a"]).count("`t```") == 1
