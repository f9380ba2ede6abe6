"""The solved examples before every question: three of our own, or those of a file in AgentBench's format."""

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from environments.mind2web import prompt
from environments.mind2web.pages.markup import ElementChoice, Rendered
from proctor.published import Source
from proctor.types import Message, Value

Prompt = Literal["cot", "plain"]
PUBLISHED = Source(
    file="AgentBench v0.2's llm_prompt_cot.json or llm_prompt.json",
    fingerprints=frozenset(("db27cb6156cd2901f39e19f95349a6b1", "4bd6c68d6441f0a50591d70176b37fb9")),
    parameter="examples",
)


class _Example(Value):
    """A question about a generated page, with its answer."""

    page: str
    task: str
    previous: tuple[str, ...]
    choices: tuple[str, ...]
    thought: str
    answer: str


_OWN = TypeAdapter(tuple[_Example, ...])
_OWN_FILE = Path(__file__).with_name("own_examples.json")


@cache
def own_examples(style: Prompt) -> tuple[Message, ...]:
    """Three solved examples on generated pages, with thoughts (`cot`) or without."""
    solved = _OWN.validate_json(_OWN_FILE.read_bytes())
    return tuple(message for example in solved for message in _messages(example, style))


def _messages(example: _Example, style: Prompt) -> tuple[Message, Message]:
    page = Rendered(example.page, tuple(ElementChoice("", label) for label in example.choices))
    asked = prompt.asked(page, example.task, example.previous)
    thought = f"Thought: {example.thought}\n" if style == "cot" else ""
    return asked, Message(role="assistant", content=thought + example.answer)
