"""What published scores rest on beside data and judgement: the prompts, which users bring, and how agents were asked.

One rule holds for `comparable` of every environment: a run stands beside published scores only where the published
data, prompts, judge, temperatures, lengths and counts are in effect, and no profile mends them. Prompts are known by a
fingerprint, as their texts are not shipped.
"""

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import pydantic_core
from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

from proctor.config.yaml import FileError, read_text
from proctor.python_file import texts_of, tree_of
from proctor.types import Message

AGENTBENCH_SAMPLING: Mapping[str, JsonValue] = {"temperature": 0}
"""Of the agents of AgentBench v0.2 in all its tasks: configs/agents/openai-chat.yaml; arXiv 2308.03688, section 4.1."""


class _Told(BaseModel):
    """A message as AgentBench writes it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    role: Literal["user", "agent"]
    content: str

    def message(self) -> Message:
        return Message(role="user" if self.role == "user" else "assistant", content=self.content)


_TOLD = TypeAdapter(list[_Told])
Texts = Iterable[Mapping[str, str]]
"""Messages as `role` and `content`."""


class Opening(NamedTuple):
    """What an agent is told before its task, and the text that its task is put behind."""

    messages: tuple[Message, ...]
    lead: str = ""


def fingerprint(content: object) -> str:
    """Hex digits that agree exactly when texts are equal; of messages, their roles and contents."""
    if isinstance(content, Opening):
        content = [[each.role, each.content] for each in content.messages] + ([content.lead] if content.lead else [])
    return hashlib.blake2b(pydantic_core.to_json(content), digest_size=16).hexdigest()


def injected(tree: ast.Module) -> Texts:
    """What a file says with `inject({"role": ..., "content": ...})`, in order: literal texts, and names of texts."""
    names = texts_of(tree)
    for told in injections(tree):
        texts = {key: text for key, node in told.items() if (text := _text(node, names)) is not None}
        if len(texts) == len(told):
            yield texts


def injections(tree: ast.Module) -> Iterator[dict[str, ast.expr]]:
    """The fields of each message that a file injects, in order."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        match call:
            case ast.Call(func=ast.Attribute(attr="inject"), args=[ast.Dict(keys=keys, values=values)]):
                yield {key: value for node, value in zip(keys, values, strict=True) if (key := _text(node, {}))}


@dataclass(frozen=True)
class Source:
    """A published prompt that is not shipped: the file that users give, and how its messages are read and known."""

    file: str
    fingerprints: frozenset[str]
    """Of its published versions; none where no copy was to be had."""
    parameter: str = "prompts"
    in_python: Callable[[ast.Module], Texts] = injected
    has_lead: bool = False
    """Whether a last message of the user's may hold a text; the task is put behind it."""

    def read(self, path: Path) -> Opening:
        """The messages of a file, in turns from the user's first. Raises ValueError naming file, field and fix.

        A Python file is read, never run; any other holds messages as a JSON list. The last message may be the user's:
        there goes the task.
        """
        try:
            told = self._told(path)
        except FileError as error:
            raise ValueError(f"{error}; {self._fix}") from error
        except ValidationError as error:
            problem = error.errors()[0]
            field = ".".join(map(str, problem["loc"])) or "the file"
            raise ValueError(f"{path}: {field}: {problem['msg']}; {self._fix}") from error
        for place, each in enumerate(told):
            if each.role != ("user", "agent")[place % 2]:
                raise ValueError(f"{path}: {place}.role: user and agent don't take turns, user first; {self._fix}")
        lead = told.pop().content if len(told) % 2 else ""
        if not told or (lead and not self.has_lead):
            raise ValueError(f"{path}: the last message is not the agent's, nor an empty one; {self._fix}")
        return Opening(tuple(each.message() for each in told), lead)

    def differs(self, path: Path | None, content: object) -> str | None:
        """Why what agents or judges are told is not what was published; None where it is."""
        if path is None:
            return f"the prompts are in Proctor's own words; give {self.file} as `{self.parameter}`"
        if not self.fingerprints:
            return f"{path}: Proctor knows no copy of the published words, so it can't tell whether these are they"
        if fingerprint(content) not in self.fingerprints:
            return f"{path}: other words than the published ones; give {self.file} as `{self.parameter}`"
        return None

    @property
    def _fix(self) -> str:
        return f"give {self.file} as `{self.parameter}`, or messages as a JSON list"

    def _told(self, path: Path) -> list[_Told]:
        if path.suffix == ".py":
            return _TOLD.validate_python([dict(each) for each in self.in_python(tree_of(path))])
        return _TOLD.validate_json(read_text(path))


def other_count(held: int, published: Mapping[str, int]) -> str | None:
    """Why so many samples are no published split; None where they are as many."""
    if held in published.values():
        return None
    splits = " or ".join(f"{count} ({name})" for name, count in published.items())
    return f"there are {held} samples; the published splits have {splits}"


def in_turns(texts: Sequence[str]) -> Texts:
    """Messages from texts, the user's first."""
    return [{"role": ("user", "agent")[place % 2], "content": text} for place, text in enumerate(texts)]


def beginning(node: ast.expr) -> str | None:
    """The text that a sum of texts begins with; None where it is no such sum."""
    if not isinstance(node, ast.BinOp):
        return None
    while isinstance(node, ast.BinOp):
        node = node.left
    return _text(node, {})


def _text(node: ast.expr | None, names: Mapping[str, str]) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return names.get(name)
    return None
