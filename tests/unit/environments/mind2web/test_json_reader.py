"""Spans of a JSON text agree with what the json module reads there."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.mind2web.data.json_reader import JsonReader

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def text_of(value: object, indent: int | None, ascii_only: bool) -> bytes:
    return json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()


@given(st.lists(JSON, max_size=4), st.sampled_from([None, 0, 2]), st.booleans())
def test_items_are_found_where_they_stand(values: list[object], indent: int | None, ascii_only: bool) -> None:
    text = text_of(values, indent, ascii_only)
    reader = JsonReader(text)
    read = [json.loads(reader.text(*reader.skip())) for _ in reader.items()]
    reader.end()
    assert read == values


@given(st.dictionaries(st.text(), JSON, max_size=4), st.sampled_from([None, 2]), st.booleans())
def test_members_are_found_by_name(value: dict[str, object], indent: int | None, ascii_only: bool) -> None:
    reader = JsonReader(b" \n" + text_of(value, indent, ascii_only) + b"\n")
    read = {name: json.loads(reader.text(*reader.skip())) for name in reader.members()}
    reader.end()
    assert read == value


@pytest.mark.parametrize(
    ("text", "place"),
    [(b'[{"a": 1', "byte 2"), (b'["abc', "byte 1"), (b'{"a" 1}', "byte 0"), (b"[1 2]", "byte 3"), (b"[1] x", "byte 4")],
)
def test_what_is_not_json_is_refused_with_its_place(text: bytes, place: str) -> None:
    def read() -> None:
        reader = JsonReader(text)
        for _ in reader.items():
            reader.skip()
        reader.end()

    with pytest.raises(ValueError, match=place):
        read()


def test_a_page_of_a_million_escapes_is_one_string() -> None:
    page = json.dumps({"raw_html": '\\"' * 500_000, "x": 1}).encode()
    reader = JsonReader(page)
    assert [reader.skip()[1] > 0 for _ in reader.members()] == [True, True]
    reader.end()
