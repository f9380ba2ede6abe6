"""The OpenAPI 3.1 document of a server's operations."""

import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, JsonValue
from pydantic.json_schema import models_json_schema

from task_server.http.app import Operation
from task_server.wire.errors import ApiError, BadRequest, Forbidden, Internal, TooLarge, Unauthorized
from task_server.wire.messages import Problem

_PARAMETERS: dict[str, JsonValue] = {
    "task": {"type": "string", "minLength": 1},
    "session": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
}


def document(title: str, operations: Sequence[Operation[Any, Any]], token: bool) -> dict[str, JsonValue]:
    """The OpenAPI document of these operations; `token` is whether the server needs one."""
    models: list[type[BaseModel]] = [Problem]
    for operation in operations:
        models += [model for model in (operation.request, operation.reply) if model and issubclass(model, BaseModel)]
    _, definitions = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(models)], ref_template="#/components/schemas/{model}"
    )
    schemas: dict[str, JsonValue] = definitions["$defs"]
    for schema in schemas.values():
        _require_tags(schema)
    paths: dict[str, dict[str, JsonValue]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schemas, token)
    components: dict[str, JsonValue] = {"schemas": schemas}
    if token:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": "1"},
        "paths": dict(paths),
        "components": components,
    }


def _operation(operation: Operation[Any, Any], schemas: dict[str, JsonValue], token: bool) -> dict[str, JsonValue]:
    answer: dict[str, JsonValue] = {
        "operationId": operation.handle.__name__.lstrip("_"),
        "summary": operation.meaning,
        "parameters": [*_path_parameters(operation.path)],
        "responses": _responses(operation, token),
    }
    name = operation.request.__name__
    if operation.method == "POST":
        answer["requestBody"] = {"required": True, "content": {"application/json": {"schema": _reference(name)}}}
    else:
        answer["parameters"] = [*_path_parameters(operation.path), *_query_parameters(schemas[name])]
    if token and not operation.open:
        answer["security"] = [{"token": []}]
    return answer


def _require_tags(schema: JsonValue) -> None:
    """Mark the tags of unions as required: they have a default in Python, but must be present on the wire."""
    assert isinstance(schema, dict)
    properties, required = schema.get("properties"), schema.get("required", [])
    if isinstance(properties, dict) and isinstance(required, list):
        tags = [name for name, value in properties.items() if isinstance(value, dict) and "const" in value]
        schema["required"] = [*tags, *required]


def _responses(operation: Operation[Any, Any], token: bool) -> dict[str, JsonValue]:
    responses: dict[str, JsonValue] = {}
    if operation.reply is None:
        responses["204"] = {"description": "Done"}
    else:
        responses["200"] = {"description": operation.meaning, "content": _content(operation.reply)}
    known: list[type[ApiError]] = [BadRequest, Internal, *operation.refusals]
    known += [TooLarge] if operation.method == "POST" else []
    known += [Unauthorized] if token and not operation.open else []
    known += [] if token else [Forbidden]
    problem: JsonValue = {"application/problem+json": {"schema": _reference("Problem")}}
    for status in sorted({refusal.status for refusal in known}):
        titles = "; or: ".join(refusal.title for refusal in dict.fromkeys(known) if refusal.status == status)
        responses[str(status)] = {"description": titles, "content": problem}
    return responses


def _content(reply: type) -> JsonValue:
    if reply is str:
        return {"text/plain": {"schema": {"type": "string"}}}
    return {"application/json": {"schema": _reference(reply.__name__)}}


def _path_parameters(path: str) -> list[JsonValue]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _PARAMETERS[name]}
        for name in re.findall(r"{(\w+)}", path)
    ]


def _query_parameters(schema: JsonValue) -> list[JsonValue]:
    assert isinstance(schema, dict)
    properties = schema.get("properties", {})
    assert isinstance(properties, dict)
    return [{"name": name, "in": "query", "schema": value} for name, value in properties.items()]


def _reference(name: str) -> dict[str, JsonValue]:
    return {"$ref": f"#/components/schemas/{name}"}
