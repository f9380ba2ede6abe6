"""What the agent sees of a result."""

import itertools
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from environments.database import observation

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


def test_errors_bear_number_and_state_and_are_cut_too() -> None:
    assert observation.of_error(1146, "42S02", "Table missing") == "1146 (42S02): Table missing"
    assert len(observation.of_error(1, "HY000", "x" * 900)) == 800 + len("[TRUNCATED]")


def test_decimals_print_as_the_client_library_gives_them() -> None:
    assert observation.of_rows([(Decimal("1.50"), None)]) == "[(Decimal('1.50'), None)]"
