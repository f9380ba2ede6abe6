"""The published instruction and example, from the file that AgentBench has them in, which users bring along."""

import ast
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import pydantic_core
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from environments.python_file import texts_of, tree_of
from environments.types import Message

FINGERPRINT = "0b2311d79879a35b2dd1afe8a798ada6"
"""Of the ten messages in AgentBench v0.2's src/server/tasks/webshop/__init__.py."""
FILE = "AgentBench v0.2's src/server/tasks/webshop/__init__.py"
_FIX = f"give {FILE}, or messages as a JSON list"


class _Told(BaseModel):
    """A message as the published code writes it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    role: Literal["user", "agent"]
    content: str


_TOLD = TypeAdapter(list[_Told])


def read(path: Path) -> tuple[Message, ...]:
    """The messages before the first round. A Python file is read, never run. Raises ValueError naming file and fix."""
    try:
        told = _in_python(path) if path.suffix == ".py" else _TOLD.validate_json(path.read_bytes())
    except OSError as error:
        raise ValueError(f"{path}: can't be read: {error}; {_FIX}") from error
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(map(str, problem["loc"])) or "the file"
        raise ValueError(f"{path}: {field}: {problem['msg']}; {_FIX}") from error
    if not told or [each.role for each in told] != ["user", "agent"] * (len(told) // 2):
        raise ValueError(f"{path}: user and agent don't take turns, user first and agent last; {_FIX}")
    return tuple(Message(role="user" if each.role == "user" else "assistant", content=each.content) for each in told)


def fingerprint(messages: Sequence[Message]) -> str:
    """Hex digits that agree exactly when the messages are equal."""
    content = pydantic_core.to_json([[each.role, each.content] for each in messages])
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _in_python(path: Path) -> list[_Told]:
    """What the file says with `inject({"role": ..., "content": ...})`, in order: literal texts, and names of texts."""
    tree = tree_of(path)
    return _TOLD.validate_python(list(_injected(tree, texts_of(tree))))


def _injected(tree: ast.Module, names: dict[str, str]) -> Iterator[dict[str, str]]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        match call:
            case ast.Call(func=ast.Attribute(attr="inject"), args=[ast.Dict(keys=keys, values=values)]):
                parts = [_text(node, names) for node in (*keys, *values)]
                texts = [part for part in parts if part is not None]
                if len(texts) == len(parts):
                    yield dict(zip(texts[: len(keys)], texts[len(keys) :], strict=True))


def _text(node: ast.expr | None, names: dict[str, str]) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return names.get(name)
    return None
