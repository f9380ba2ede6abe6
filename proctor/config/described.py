"""JSON Schemas whose fields have the meanings that are written below them in the source."""

import ast
import inspect
import textwrap
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from proctor.config.model_fields import all_models


def describe(definitions: Mapping[str, dict[str, Any]], *roots: type[BaseModel]) -> None:
    """Give the schemas of these models, by name, the text below each field as its `description`."""
    for model in set().union(*map(all_models, roots)):
        properties = definitions.get(model.__name__, {}).get("properties", {})
        for base in reversed([each for each in model.__mro__ if issubclass(each, BaseModel) and each is not BaseModel]):
            for field, meaning in _meanings(base).items():
                if field in properties:
                    properties[field]["description"] = meaning


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
