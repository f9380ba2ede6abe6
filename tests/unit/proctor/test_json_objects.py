"""Where JSON objects in a reply begin and end."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.json_objects import MAX_CHARS, MAX_TRIED, objects


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("", []),
        ("nothing }", []),
        ("a {} b {1}", ["{}", "{1}"]),
        ('{"a": {"b": 1}}', ['{"a": {"b": 1}}', '{"b": 1}']),
        (r'{"a": "} \" }"} {', [r'{"a": "} \" }"}', None]),
        ("{" * (MAX_TRIED + 1), [None] * MAX_TRIED),
        ("x{" + " " * (MAX_CHARS - 2) + "}", ["{" + " " * (MAX_CHARS - 2) + "}"]),
        ("x{" + " " * (MAX_CHARS - 1) + "}", [None]),
    ],
)
def test_each_brace_begins_what_it_closes(reply: str, found: list[str | None]) -> None:
    assert list(objects(reply)) == found


@given(st.dictionaries(st.text(), st.text() | st.dictionaries(st.text(), st.integers())), st.text(alphabet='ab }\n"'))
def test_an_object_is_found_whatever_stands_around_it(value: dict[str, object], around: str) -> None:
    assert next(objects(f"{around}{json.dumps(value)}{around}{{")) == json.dumps(value)
