"""The solved examples that stand before every question: three of our own, or those of a file like AgentBench's."""

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import pydantic_core
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from environments.mind2web import prompt
from environments.mind2web.markup import Choice, Rendered
from environments.types import Message, Value
from environments.yaml_file import FileError, read_text

Prompt = Literal["cot", "plain"]
PUBLISHED = frozenset(("db27cb6156cd2901f39e19f95349a6b1", "4bd6c68d6441f0a50591d70176b37fb9"))
"""What `fingerprint` says of AgentBench v0.2's two files, llm_prompt_cot.json and llm_prompt.json."""
_FIX = "give as `examples` AgentBench's llm_prompt_cot.json or llm_prompt.json, or messages in their form"


class _Example(Value):
    """A question about a generated page, with its answer."""

    page: str
    task: str
    previous: tuple[str, ...]
    choices: tuple[str, ...]
    thought: str
    answer: str


class _Told(BaseModel):
    """A message of a published file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    role: Literal["user", "agent"]
    content: str


_OWN = TypeAdapter(tuple[_Example, ...])
_OWN_FILE = Path(__file__).with_name("own_examples.json")
_PUBLISHED = TypeAdapter(list[_Told])


@cache
def own(style: Prompt) -> tuple[Message, ...]:
    """Three examples on pages of our generator, with thoughts (`cot`) or without."""
    solved = _OWN.validate_json(_OWN_FILE.read_bytes())
    return tuple(message for example in solved for message in _messages(example, style))


def read(path: Path) -> tuple[Message, ...]:
    """The messages of a file, as they stand there, but for the last: an empty one, where the question goes.

    Raises ValueError naming file, field and fix.
    """
    try:
        told = _PUBLISHED.validate_json(read_text(path))
    except FileError as error:
        raise ValueError(f"{error}; {_FIX}") from error
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(map(str, problem["loc"])) or "the file"
        raise ValueError(f"{path}: {field}: {problem['msg']}; {_FIX}") from error
    for place, message in enumerate(told):
        if message.role != ("user", "agent")[place % 2]:
            raise ValueError(f"{path}: {place}.role: user and agent don't take turns, user first; {_FIX}")
    if len(told) % 2 == 0 or told[-1].content:
        raise ValueError(f"{path}: the last message is not an empty one of the user's; {_FIX}")
    return tuple(
        Message(role="user" if each.role == "user" else "assistant", content=each.content) for each in told[:-1]
    )


def fingerprint(examples: Sequence[Message]) -> str:
    """Hex digits that agree exactly when the examples are equal."""
    content = pydantic_core.to_json([[each.role, each.content] for each in examples])
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _messages(example: _Example, style: Prompt) -> tuple[Message, Message]:
    page = Rendered(example.page, tuple(Choice("", label) for label in example.choices))
    asked = prompt.asked(page, example.task, example.previous)
    thought = f"Thought: {example.thought}\n" if style == "cot" else ""
    return asked, Message(role="assistant", content=thought + example.answer)
