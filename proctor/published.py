"""Tells whether data, prompts, limits and sampling are those of the published scores.

One rule holds for `not_comparable_because` of every environment: scores are comparable only with the published data,
prompts, judge, temperatures and lengths, with no limit below the usual ones, and in a profile that corrects none of
these. Published data and prompts are not shipped: users supply the files, and hashes identify their content.
"""

import ast
import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

from proctor.config.wording import first_problem
from proctor.config.yaml import FileError, read_text
from proctor.digest import json_digest
from proctor.types import AGENTBENCH_STATUS, FinishReason, Message

AGENTBENCH_SAMPLING: Mapping[str, JsonValue] = {"temperature": 0}
"""Sampling in all AgentBench v0.2 tasks: configs/agents/openai-chat.yaml; arXiv 2308.03688, section 4.1."""
TASK_STATUS: Mapping[FinishReason, str] = {**AGENTBENCH_STATUS, FinishReason.INVALID_FORMAT: "agent invalid action"}
"""The word of AgentBench v0.2's own tasks for each finish reason; they have one for both invalid ones."""


class _PublishedMessage(BaseModel):
    """A message as AgentBench writes it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    role: Literal["user", "agent"]
    content: str

    def message(self) -> Message:
        return Message(role="user" if self.role == "user" else "assistant", content=self.content)


_MESSAGES = TypeAdapter(list[_PublishedMessage])
Texts = Iterable[Mapping[str, str]]
"""Messages as `role` and `content`."""


class Opening(NamedTuple):
    """The messages before the task, and `lead`, the text that the task is appended to."""

    messages: tuple[Message, ...]
    lead: str = ""


def fingerprint(content: object) -> str:
    """32 hex digits, a hash of a text, or of an opening's roles, contents and lead."""
    if isinstance(content, Opening):
        content = [[each.role, each.content] for each in content.messages] + ([content.lead] if content.lead else [])
    return json_digest(content)


def injected(tree: ast.Module) -> Texts:
    """The messages of a file's calls `inject({"role": ..., "content": ...})`, in order.

    Values are literal texts or names of texts; a call with any other value is skipped.
    """
    names = texts_of(tree)
    for message in injections(tree):
        texts = {key: text for key, node in message.items() if (text := _text(node, names)) is not None}
        if len(texts) == len(message):
            yield texts


def injections(tree: ast.Module) -> Iterator[dict[str, ast.expr]]:
    """The fields, as syntax trees, of the message in each `inject` call of a file, in order."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        match call:
            case ast.Call(func=ast.Attribute(attr="inject"), args=[ast.Dict(keys=keys, values=values)]):
                yield {key: value for node, value in zip(keys, values, strict=True) if (key := _text(node, {}))}


@dataclass(frozen=True)
class Source:
    """A published prompt that is not shipped: the file that users supply, how it is read and identified."""

    file: str
    fingerprints: frozenset[str]
    """Fingerprints of the published versions; empty where no published copy was available."""
    parameter: str = "prompts"
    in_python: Callable[[ast.Module], Texts] = injected
    has_lead: bool = False
    """Whether a last message of the user's may hold a text, to which the task is appended."""

    def read(self, path: Path) -> Opening:
        """The messages of a file, alternately the user's and the agent's. Raises ValueError naming file, field and fix.

        A Python file is parsed, never run; any other file holds the messages as a JSON list. The last message may be
        the user's: the task is appended to it.
        """
        try:
            messages = self._messages(path)
        except FileError as error:
            raise ValueError(f"{error}; {self._fix}") from error
        except ValidationError as error:
            raise ValueError(f"{path}: {first_problem(error)}; {self._fix}") from error
        for place, each in enumerate(messages):
            if each.role != ("user", "agent")[place % 2]:
                raise ValueError(f"{path}: {place}.role: user and agent must alternate, the user first; {self._fix}")
        lead = messages.pop().content if len(messages) % 2 else ""
        if not messages or (lead and not self.has_lead):
            raise ValueError(f"{path}: the last message is not the agent's, nor an empty one; {self._fix}")
        return Opening(tuple(each.message() for each in messages), lead)

    def differs(self, path: Path | None, content: object) -> str | None:
        """Why prompts are not the published ones, or can't be verified; None where they are the published ones."""
        if path is None:
            return f"the prompts are in Proctor's own words; give {self.file} as `{self.parameter}`"
        if not self.fingerprints:
            return f"{path}: Proctor has no fingerprint of the published prompts, so these can't be verified"
        if fingerprint(content) not in self.fingerprints:
            return f"{path}: other words than the published ones; give {self.file} as `{self.parameter}`"
        return None

    @property
    def _fix(self) -> str:
        return f"give {self.file} as `{self.parameter}`, or messages as a JSON list"

    def _messages(self, path: Path) -> list[_PublishedMessage]:
        if path.suffix == ".py":
            return _MESSAGES.validate_python([dict(each) for each in self.in_python(tree_of(path))])
        return _MESSAGES.validate_json(read_text(path))


def records_hash(records: Iterable[object]) -> str:
    """SHA-256 in hex digits of parsed records in their order: spacing, line ends and the order of keys don't matter."""
    state = hashlib.sha256()
    for record in records:
        text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        state.update(text.encode(errors="surrogatepass") + b"\n")
    return state.hexdigest()


def records_of(lines: str) -> Iterator[JsonValue]:
    """The records of a text of JSON Lines. Raises ValueError where one is not JSON."""
    return (json.loads(line) for line in lines.split("\n") if line.strip())


def other_records(data: Path | None, records: Iterable[object], published: Mapping[str, str]) -> str | None:
    """Why records are not those of one of the published files (name -> `records_hash`); None where they are."""
    if records_hash(records) in published.values():
        return None
    return f"{data}: its records are not those of {' or '.join(published)}; give one of these files unchanged"


def lowered(settings: BaseModel, *names: str) -> str | None:
    """Which of these limits is below its default, with which published scores can be reached; None where none is."""
    for name in names:
        value, usual = getattr(settings, name), type(settings).model_fields[name].default
        if value < usual:
            return f"{name} is {value:g}, below the usual {usual:g}; leave it out"
    return None


def unlike(given: Mapping[str, JsonValue], published: Mapping[str, JsonValue]) -> tuple[list[str], list[str]]:
    """The sampling fields that lack the published value, and those that the published requests did not have."""
    others = [name for name, value in published.items() if not _equal(given.get(name), value)]
    return others, sorted(given.keys() - published.keys())


def _equal(one: JsonValue, other: JsonValue) -> bool:
    """Whether two JSON values are equal; 0 and 0.0 are, 0 and false are not."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def in_turns(texts: Sequence[str]) -> Texts:
    """Texts as messages, alternately the user's and the agent's."""
    return [{"role": ("user", "agent")[place % 2], "content": text} for place, text in enumerate(texts)]


def beginning(node: ast.expr) -> str | None:
    """The text that a sum of texts (`+`) begins with; None where the node is no such sum."""
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


def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a published Python file, which is read and never run. Raises FileError."""
    text = read_text(path)
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise FileError(f"{path}:{error.lineno or 1}: {error.msg}; give the published file as it is") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise FileError(f"{path}: can't be read as Python: {error}; give the published file as it is") from error


def texts_of(tree: ast.Module) -> dict[str, str]:
    """The texts that the file assigns to names at its top level; the last one of each name."""
    found: dict[str, str] = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                found[name] = text
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str(text))):
                found[name] = text
    return found


def value_of(tree: ast.Module, name: str) -> object:
    """The first literal that the file assigns to a name at its top level; None where there is none."""
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                with contextlib.suppress(ValueError, RecursionError, MemoryError):
                    return ast.literal_eval(value)
    return None
