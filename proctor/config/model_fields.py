"""The fields of pydantic models, found by where they stand in a file, and their meanings."""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel

Location = tuple[int | str, ...]
"""Fields by name, items of lists by position."""


def known_fields(model: type[BaseModel], location: Location) -> set[str]:
    """The fields of whatever models may stand at a location."""
    return {name for each in _models_at(model, location) for name in each.model_fields}


def required_fields(model: type[BaseModel], location: Location) -> list[str]:
    """The fields that whatever models may stand at a location must have, in their order."""
    found = (each.model_fields.items() for each in _models_at(model, location))
    return list(dict.fromkeys(name for fields in found for name, info in fields if info.is_required()))


def choices(model: type[BaseModel], location: Location) -> Iterator[object]:
    """The values that may stand where only some may."""
    for each in _models_at(model, location[:-1]):
        if location[-1] in each.model_fields:
            yield from _literals(each.model_fields[str(location[-1])].annotation)


def homes(model: type[BaseModel], name: str, path: tuple[str, ...], seen: frozenset[type]) -> Iterator[str]:
    """The paths of models within a model that have a field of this name."""
    for field, info in model.model_fields.items():
        for inner in set(_models(info.annotation)) - seen:
            if name in inner.model_fields:
                yield ".".join((*path, field))
            yield from homes(inner, name, (*path, field), seen | {inner})


def describe(definitions: Mapping[str, dict[str, Any]], *roots: type[BaseModel]) -> None:
    """Give the JSON Schemas of these models, by name, the text below each field in the source as its `description`."""
    for model in set().union(*(_all_models(root, set()) for root in roots)):
        properties = definitions.get(model.__name__, {}).get("properties", {})
        for base in reversed([each for each in model.__mro__ if issubclass(each, BaseModel) and each is not BaseModel]):
            for field, meaning in _meanings(base).items():
                if field in properties:
                    properties[field]["description"] = meaning


def _all_models(model: type[BaseModel], seen: set[type[BaseModel]]) -> set[type[BaseModel]]:
    """A model, and all that its fields are made of."""
    if model not in seen:
        seen.add(model)
        for info in model.model_fields.values():
            for inner in _models(info.annotation):
                _all_models(inner, seen)
    return seen


def _meanings(model: type[BaseModel]) -> dict[str, str]:
    """field -> its docstring, on one line; pydantic's own way would read every source file at each start"""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(definition, ast.ClassDef)
    return {
        field.target.id: " ".join(inspect.cleandoc(text.value.value).split())
        for field, text in zip(definition.body, definition.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def _models_at(model: type[BaseModel], location: Location) -> set[type[BaseModel]]:
    models = {model}
    for part in location:
        named = [each.model_fields[part].annotation for each in models if part in each.model_fields]
        if named:
            models = {inner for annotation in named for inner in _models(annotation)}
    return models


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    """The models among the types that an annotation is made of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _literals(annotation: object) -> Iterator[object]:
    for part in get_args(annotation):
        if isinstance(part, str | int):
            yield part
        else:
            yield from _literals(part)
