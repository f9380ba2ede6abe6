"""What an agent is asked.

The fixed words are those of MindAct's multiple-choice prompt (arXiv 2306.06070, section 4.2), as AgentBench asks it
(arXiv 2308.03688, Appendix I); the solved examples are theirs too, see `examples/NOTICE.md`.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from environments.mind2web.markup import Choice, Rendered
from environments.types import Message, Value

Prompt = Literal["cot", "plain"]
LETTERS = "ABCDEF"
NONE = LETTERS[0]
PREVIOUS = 5
"""Earlier actions that are told."""


class _Example(Value):
    """A question with its answer."""

    page: str
    task: str
    previous: tuple[str, ...]
    choices: tuple[str, ...]
    thought: str
    answer: str


_EXAMPLES = TypeAdapter(tuple[_Example, ...])
_EXAMPLE_FILE = Path(__file__).with_name("examples") / "examples.json"


def question(page: Rendered, task: str, previous: Sequence[str]) -> str:
    """What is asked about a page, without the page; ends with a line feed. `previous` are all earlier actions."""
    lines = (
        "Based on the HTML webpage above, try to complete the following task:",
        f"Task: {task}",
        "Previous actions:",
        *(previous[-PREVIOUS:] or ("None",)),
        "What should be the next action? Please select from the following choices (If the correct action is not in the "
        "page above, please select A. 'None of the above'):",
        "",
        f"{NONE}. None of the above",
        *(f"{chr(ord(NONE) + at)}. {choice.label}" for at, choice in enumerate(page.choices, 1)),
    )
    return "\n".join(lines) + "\n"


def messages(page: Rendered, task: str, previous: Sequence[str], style: Prompt) -> tuple[Message, ...]:
    """A dialogue of its own: three solved examples, then the page and the question about it."""
    return (*examples(style), Message(role="user", content=_asked(page, task, previous)))


@cache
def examples(style: Prompt) -> tuple[Message, ...]:
    """The solved examples, with thoughts (`cot`) or without."""
    solved = _EXAMPLES.validate_json(_EXAMPLE_FILE.read_bytes())
    return tuple(message for example in solved for message in _solved(example, style))


def _solved(example: _Example, style: Prompt) -> tuple[Message, Message]:
    page = Rendered(example.page, tuple(Choice("", label) for label in example.choices))
    asked = _asked(page, example.task, example.previous).removesuffix("\n")
    thought = f"Thought: {example.thought}\n" if style == "cot" else ""
    return Message(role="user", content=asked), Message(role="assistant", content=thought + example.answer)


def _asked(page: Rendered, task: str, previous: Sequence[str]) -> str:
    return f"'''\n{page.text}\n'''\n\n{question(page, task, previous)}"
