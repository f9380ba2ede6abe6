"""Hashes values: models by their fields, files and folders by their contents, never by their paths."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python


def digest_of(value: object) -> str:
    """32 hex digits, a hash of a value's canonical JSON.

    A model is hashed by the fields that its class does not list in `operational`, a file by its contents, a folder by
    the names and contents of the files in it, at any depth, without hidden ones and `__pycache__`.

    Raises ValueError, which names field and fix, where nothing exists at a path or a value has no JSON form.
    """
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def json_digest(value: object) -> str:
    """32 hex digits, a hash of the JSON that pydantic writes for a value, with fields and keys in their own order."""
    return hashlib.blake2b(to_json(value), digest_size=16).hexdigest()


def _plain(value: object) -> object:
    """A value in the form in which it is written as JSON."""
    if isinstance(value, BaseModel):
        operational: frozenset[str] = getattr(type(value), "operational", frozenset())
        fields = {name: getattr(value, name) for name in type(value).model_fields if name not in operational}
        return _plain_fields(fields)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain_fields({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_plain(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return _contents(value) if isinstance(value, Path) else _leaf(value)


def _plain_fields(fields: Mapping[str, object]) -> dict[str, object]:
    plain = {}
    for name, value in fields.items():
        try:
            plain[name] = _plain(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return plain


def _leaf(value: object) -> object:
    try:
        return to_jsonable_python(value)
    except PydanticSerializationError as error:
        raise ValueError(
            f"a {type(value).__name__} has no JSON form; list the field in `operational`, or give the class a "
            "`digest` of its own"
        ) from error


def _contents(path: Path) -> dict[str, object]:
    try:
        if path.is_dir():
            files = (found for found in path.rglob("*") if found.is_file())
            named = {found.relative_to(path): found for found in files}
            return {"folder": {name.as_posix(): _file(found) for name, found in named.items() if not _ignored(name)}}
        if path.is_file():
            return {"file": _file(path)}
    except OSError as error:
        raise ValueError(f"{path}: can't be read: {error}; correct the path or its rights") from error
    raise ValueError(
        f"{path}: no file or folder there; correct the path, or list the field in `operational` if it affects no trial"
    )


def _ignored(name: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in name.parts)


def _file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()
