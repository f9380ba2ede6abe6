"""What a person at a terminal sees: messages, functions, and the end of a session."""

import json
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from eval_client.cli.person.typed import argument_schemas
from proctor.observability.redaction import visible
from proctor.types import Finish, Message, Observation, Tool

STYLES = {"system": "magenta", "user": "cyan", "tool": "yellow", "assistant": "green"}
FUNCTIONS = "[functions]"


def print_observation(observation: Observation, turn: int, console: Console) -> None:
    """Print the messages of a turn that are new, and the functions offered."""
    where = "" if observation.conversation == "main" else f", conversation {visible(observation.conversation)}"
    again = ", which begins anew" if observation.fresh and turn > 1 else ""
    _print(console, f"\n═══ turn {turn}{where}{again} ═══", "bold")
    print_messages(observation.messages, console)
    if observation.tools:
        _print(console, FUNCTIONS, "blue bold")
    for line in _functions(observation.tools, whole=turn == 1 or observation.fresh):
        _print(console, line, "")


def print_messages(messages: Sequence[Message], console: Console) -> None:
    """Print messages whole, as they are, each under its role."""
    for message in messages:
        _print(console, f"[{message.role}]", f"{STYLES[message.role]} bold")
        for line in _body(message):
            _print(console, line, "")


def print_note(text: str, console: Console) -> None:
    """Print what Proctor says beside the session."""
    _print(console, f"── {text}", "dim")


def print_end(finish: Finish, console: Console) -> None:
    """Print the score with its parts and its evidence, or why there is none."""
    _print(console, "\n═══ the session is over ═══", "bold")
    if finish.score is None:
        _print(console, f"no score: {finish.reason}: {visible(str(finish.detail.get('cause')))}", "red")
        return
    _print(console, f"score {finish.score:.3f}  {finish.reason}", "bold")
    if finish.metrics:
        _print(console, "score parts: " + "  ".join(f"{name} {value:g}" for name, value in finish.metrics.items()), "")
    if finish.detail:
        _print(console, f"evidence: {visible(json.dumps(finish.detail, ensure_ascii=False, indent=2))}", "")


def transcript_text(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    """The functions offered and a whole conversation, as plain text."""
    lines = [FUNCTIONS, *_functions(tools, whole=True)] if tools else []
    for message in messages:
        lines += [f"[{message.role}]", *_body(message)]
    return "\n".join(lines) + "\n"


def _body(message: Message) -> Iterator[str]:
    if message.content:
        yield visible(message.content)
    for call in message.tool_calls:
        yield f"call {visible(call.name)} {visible(call.arguments)}"


def _functions(tools: Sequence[Tool], *, whole: bool) -> Iterator[str]:
    if tools and not whole:
        yield ", ".join(visible(tool.name) for tool in tools)
        return
    for tool in tools:
        yield f"{visible(tool.name)}: {visible(tool.description)}"
        yield from _arguments(tool)


def _arguments(tool: Tool) -> Iterator[str]:
    for name, schema in argument_schemas(tool).items():
        enum = schema.get("enum")
        kind = " | ".join(map(str, enum)) if isinstance(enum, list) else str(schema.get("type", "any"))
        told = schema.get("description")
        yield visible(f"    {name} ({kind})" + (f": {told}" if told else ""))


def _print(console: Console, line: str, style: str) -> None:
    console.print(Text(line, style=style), soft_wrap=True)
