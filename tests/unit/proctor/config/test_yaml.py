"""Users' files: what is read, and what is refused. The messages are those of tests/e2e/plans."""

import contextlib
import json
import tracemalloc
from pathlib import Path
from typing import Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, JsonValue

from proctor.config.yaml import MAX_BYTES, FileError, load, parse, parse_value
from proctor.types import Value


class Item(Value):
    name: str
    size: int = Field(default=1, ge=1)
    kind: Literal["big", "small"] = "small"


class Plan(Value):
    title: str
    items: tuple[Item, ...] = ()
    options: dict[str, JsonValue] = Field(default_factory=dict)


def refusal(text: str, *overrides: str) -> str:
    with pytest.raises(FileError) as refused:
        parse(text, "plan.yaml", Plan, overrides)
    return str(refused.value)


GOOD = "title: t\nitems:\n  - name: a\n    size: 2\n  - name: b\n"


def test_aliases_and_merge_keys_are_understood() -> None:
    plan = parse("title: t\nitems:\n  - &a {name: a, size: 3}\n  - {<<: *a, name: b}\n", "plan.yaml", Plan)
    assert plan.items[1] == Item(name="b", size=3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: \x00\n", "plan.yaml:1: not YAML: holds the character '\\x00'; remove it"),
        ("title: !!python/name:os.system\n", "plan.yaml:1: not YAML: could not determine a constructor"),
        ("title: t\noptions:\n  ? [a, b]\n  : 1\n", "plan.yaml:3: not YAML: found unhashable key"),
        ("title: 2024-99-99\n", "plan.yaml: no valid number or date: month must be in"),
    ],
)
def test_what_is_no_plain_yaml_is_refused_with_its_line(text: str, message: str) -> None:
    assert message in refusal(text)


def test_a_billion_laughs_are_refused_in_little_memory() -> None:
    laughs = "".join(f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 10))
    tracemalloc.start()
    message = refusal(f"title: t\noptions:\n  l0: &l0 [ha, ha]\n{laughs}")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "plan.yaml:8: holds more than 200000 values" in message
    assert peak < 5e6


@pytest.mark.parametrize(
    "text",
    [
        "title: t\noptions: &a {self: *a}\n",
        "title: t\noptions: {deep: " + "[" * 100 + "]" * 100 + "}\n",
        "title: t\noptions: {deep: " + "[" * 5000 + "]" * 5000 + "}\n",
        "title: t\noptions:\n  x0: &x0 [1]\n" + "".join(f"  x{n}: &x{n} [*x{n - 1}]\n" for n in range(1, 200)),
    ],
    ids=["endless", "deep", "very deep", "deep by aliases"],
)
def test_what_nests_too_deeply_is_refused(text: str) -> None:
    assert "50 deep" in refusal(text)


def test_overrides_set_fields_of_items_by_name_and_by_position() -> None:
    plan = parse(GOOD, "plan.yaml", Plan, ["title=u", "items.b.size=7", "items.0.kind=big", "options.x.y=[1, a]"])
    assert plan.title == "u"
    assert plan.items == (Item(name="a", size=2, kind="big"), Item(name="b", size=7))
    assert plan.options == {"x": {"y": [1, "a"]}}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes("title: caf\xe9".encode("latin-1"))
    (tmp_path / "large").write_bytes(b"#" * (MAX_BYTES + 1))
    for name, problem in [("missing", "No such file"), ("latin", "UTF-8"), ("large", "larger than"), ("", "directory")]:
        with pytest.raises(FileError, match=problem) as refused:
            load(tmp_path / name, Plan)
        assert str(tmp_path / name) in str(refused.value)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(FileError):
        parse(text, "plan.yaml", Plan)


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=8),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=8),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=8,
        ),
        max_size=4,
    )
)
def test_what_yaml_writes_is_read_back(options: dict[str, JsonValue]) -> None:
    text = yaml.safe_dump({"title": "t", "options": options})
    assert parse(text, "plan.yaml", Plan).options == options


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=40), max_size=4))
def test_texts_are_the_same_from_json_in_ascii_whatever_characters_they_hold(texts: dict[str, str]) -> None:
    assert parse_value(json.dumps(texts), "t") == texts
    assert parse_value(json.dumps(list(texts.values())), "t") == list(texts.values())


@pytest.mark.parametrize("half", [r"\ud83d", r"\ude00", r"\ude00\ud83d", r"\ud83dx\ude00", r"\ud83d\ud83d\ude00"])
def test_half_a_character_is_refused_with_its_line_as_value_and_as_name(half: str) -> None:
    for text in (f'title: t\noptions:\n  a: "{half}"\n', f'title: t\noptions:\n  "{half}": a\n'):
        assert refusal(text).startswith("plan.yaml:3: not YAML: an escape from \\ud800 to \\udfff is half a character")
    assert refusal(GOOD, f'title="{half}"').startswith("--set title=")
    assert parse_value(json.dumps(half), "t") == half, "an escaped backslash begins no escape"


@pytest.mark.parametrize("number", [".nan", ".inf", "-.INF"])
def test_a_number_that_is_not_finite_is_refused_with_its_line(number: str) -> None:
    assert refusal(f"title: t\noptions:\n  a: {number}\n").startswith(f"plan.yaml:3: {number}: is no finite number; ")
    assert f"{number}: is no finite number" in refusal(GOOD, f"options.a={number}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(
            ("1e-05", 1e-05),
            ("1E+16", 1e16),
            ("-2e-7", -2e-7),
            ("1.5e-07", 1.5e-07),
            ('{"temperature": 1e-06}', {"temperature": 1e-06}),
        ),
        *(("1e5", "1e5"), ("12e3a", "12e3a"), ("e-5", "e-5"), ('"1e-05"', "1e-05")),
    ],
)
def test_a_number_as_json_writes_it_is_a_number(text: str, value: object) -> None:
    assert parse_value(text, "x") == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_comes_back_from_json(number: float) -> None:
    assert parse_value(json.dumps({"x": number}), "x") == {"x": number}
