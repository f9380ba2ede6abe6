"""Reads the files of a town. Errors name file, field and fix."""

import json
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from proctor.config.wording import first_problem

Parsed = TypeVar("Parsed")


def read_text(path: Path) -> str:
    """The text of a data file. Raises ValueError with its path if it can't be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path}: can't be read: {error}; `data` must be a folder in the published format") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: {error}; save it as UTF-8") from error


def bad(path: Path, item: str, field: str, problem: str) -> ValueError:
    """An error with a file, an item of it, and the item's field; `problem` must end with the fix."""
    return ValueError(f"{path}: {item}: {field}: {problem}")


def only(folder: Path, pattern: str) -> Path:
    """The only file that matches a pattern. Raises ValueError if there are none or several."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise ValueError(f"{folder / pattern}: there must be one such file; there are {len(found)}")
    return found[0]


def parsed(path: Path) -> object:
    """The JSON of a file. Raises ValueError."""
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: is not JSON: {error}; correct it") from error


def read_json(path: Path, adapter: TypeAdapter[Parsed]) -> Parsed:
    """The JSON of a file, validated. Raises ValueError."""
    try:
        return adapter.validate_python(parsed(path))
    except ValidationError as error:
        raise ValueError(f"{path}: {first_problem(error)}; correct this field") from error
