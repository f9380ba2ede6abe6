"""The published instruction and examples, read from AgentBench's folder of the task, which the user provides."""

import ast
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from environments.alfworld import prompt
from environments.alfworld.texts import TASK_TYPES, TaskType
from proctor.config.yaml import read_text
from proctor.published import Source, injected, tree_of
from proctor.types import Message, Value

EXAMPLES = "prompts/alfworld_multiturn_plan_first.json"
PROMPT = Source(
    file="AgentBench v0.2's folder src/server/tasks/alfworld",
    fingerprints=frozenset(("a21e333bae6c2da26eb42b0ac045fc0b",)),
)
_NAMES: Mapping[TaskType, str] = dict(
    zip(TASK_TYPES, ("put", "clean", "heat", "cool", "examine", "puttwo"), strict=True)
)
_FIX = f"give {PROMPT.file} as `prompts`"
_TEXTS = TypeAdapter(dict[str, list[str]])


class Published(Value):
    """The published texts that precede a game."""

    instruction: str
    consent: str
    examples: dict[TaskType, tuple[str, ...]]
    """The texts of a solved game in turns, the user's first."""

    def before(self, type_: TaskType) -> tuple[Message, ...]:
        """The messages before a game of this type."""
        first, *others = self.examples[type_]
        texts = (self.instruction, self.consent, prompt.EXAMPLE + first, *others)
        return tuple(
            Message(role="assistant" if place % 2 else "user", content=text) for place, text in enumerate(texts)
        )

    def texts(self) -> list[object]:
        """All texts, in a fixed order: what digests and fingerprints are made of."""
        return [self.instruction, self.consent, [self.examples[type_] for type_ in TASK_TYPES]]


def read_prompts(folder: Path) -> Published:
    """The texts of the folder, whose Python is not run. Raises ValueError naming file, field and fix."""
    tree = tree_of(folder / "task.py")
    instruction = _returned(tree, "get_task_instruction")
    consent = next((each["content"] for each in injected(tree) if each.get("role") == "agent"), None)
    if instruction is None or consent is None:
        raise ValueError(f"{folder / 'task.py'}: no instruction with its consent; {_FIX}")
    path = folder / EXAMPLES
    try:
        texts = _TEXTS.validate_json(read_text(path))
    except ValidationError as error:
        raise ValueError(f"{path}: {error.errors()[0]['msg']}; {_FIX}") from error
    for name in _NAMES.values():
        if not texts.get(name):
            raise ValueError(f"{path}: {name}: no example of this name; {_FIX}")
    return Published(
        instruction=instruction,
        consent=consent,
        examples={type_: tuple(texts[name]) for type_, name in _NAMES.items()},
    )


def _returned(tree: ast.Module, name: str) -> str | None:
    """The text that the last `return` of a function of this name gives; None where there is none."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name]
    for statement in reversed(functions[0].body if functions else []):
        match statement:
            case ast.Return(value=ast.Constant(value=str(text))):
                return text
    return None
