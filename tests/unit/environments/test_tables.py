"""What functions of the worlds give for arguments, as tables: one a line of `tables/WORLD.jsonl`.

`case` says what the table shows, `function` whose it is; each of its `rows` is the arguments and what they give:
`[1, 2], 3`, or `[1, 2], {"lenient": true}, 3` with arguments by name. `with` has those of several rows, as
`$1`. Arguments are JSON, read as the function's
annotations say. What a call gives is written by `plain`; an error by its class and text, in which `…` stands for any.
"""

import dataclasses
import enum
import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, validate_call

FILES = sorted(Path(__file__).with_name("tables").glob("*.jsonl"))


def tables() -> Iterator[Any]:
    for file in FILES:
        for table in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            yield pytest.param(table, id=f"{file.stem}: {table['case']}: {table['function'].rpartition('.')[2]}")


@pytest.mark.parametrize("table", list(tables()))
async def test_table(table: Mapping[str, Any]) -> None:
    function = function_of(table["function"])
    differing = {}
    same = table.get("with", {})
    for positional, *named, wanted in table["rows"]:
        arguments = [same[each] if isinstance(each, str) and each in same else each for each in positional]
        gives = await given(function, arguments, named[0] if named else {})
        if not alike(gives, wanted):
            differing[json.dumps([positional, *named])] = (gives, wanted)
    assert not differing


def function_of(name: str) -> Callable[..., object]:
    module, _, function = name.rpartition(".")
    module = module if module.startswith(("tests.", "proctor.")) else f"environments.{module}"
    found = inspect.unwrap(getattr(importlib.import_module(module), function))
    validated: Callable[..., object] = validate_call(config=ConfigDict(arbitrary_types_allowed=True))(found)
    return validated


async def given(function: Callable[..., object], positional: Sequence[object], named: Mapping[str, object]) -> object:
    try:
        gives = function(*positional, **named)
        return plain(await gives if inspect.isawaitable(gives) else gives)
    except (ValueError, LookupError) as error:
        return {type(error).__name__: str(error)}


def alike(gives: object, wanted: object) -> bool:
    """Whether they are equal, or errors of one class whose texts are alike."""
    match gives, wanted:
        case dict(), dict() if [*gives] == [*wanted] and len(wanted) == 1 and "…" in str(*wanted.values()):
            return bool(re.fullmatch(re.escape(*wanted.values()).replace("…", "(?s:.*)"), *gives.values()))
    return gives == wanted


def plain(value: object) -> object:
    """A value as JSON can write it; dataclasses and models with the names of their classes."""
    match value:
        case None | bool() | int() | float() | str():
            return value.value if isinstance(value, enum.Enum) else value
        case enum.Enum():
            return value.name
        case BaseModel():
            return {type(value).__name__: plain({name: getattr(value, name) for name in value.model_fields_set})}
        case Mapping():
            return {str(key): plain(each) for key, each in value.items()}
        case set() | frozenset():
            return sorted(map(plain, value), key=repr)
        case _ if dataclasses.is_dataclass(value):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return {type(value).__name__: plain(fields)}
        case list() | tuple() | Iterator():
            return [plain(each) for each in value]
    return repr(value)
