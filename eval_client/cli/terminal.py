"""A person at a terminal, or a script by standard input, as the agent: shows observations and reads answers."""

import json
import os
from collections.abc import Iterator, Sequence

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from eval_client.cli.usage import in_thread
from proctor.environment import Agent, AgentUnavailable
from proctor.observability.redaction import visible
from proctor.types import Action, Finish, Message, Observation, Tool, ToolCall

STYLES = {"system": "magenta", "user": "cyan", "tool": "yellow", "assistant": "green"}
IN_WORDS = ">"
"""Begins an answer that calls no function where functions are offered."""


class UnreadableInput(ValueError):
    """What the person typed calls no function; the message says how to."""


class TerminalPlayer(Agent):
    """Prints observations, and reads answers of one or more lines up to the line `end`."""

    def __init__(self, descriptor: int, console: Console, end: str) -> None:
        self._descriptor, self._console, self._end = descriptor, console, end
        self._turn, self._read = 0, b""

    async def act(self, observation: Observation) -> Action:
        """Raises AgentUnavailable at the end of the input."""
        self._turn += 1
        print_observation(observation, self._turn, self._console)
        how = 'a function: NAME {"argument": ...}' if observation.tools else "your answer"
        words = f"; {IN_WORDS} answers in words" if observation.tools else ""
        while True:
            mark = f'a line "{self._end}"' if self._end else "an empty line"
            print_note(f"{how}{words}; then {mark}", self._console)
            try:
                return parse_answer(await self._answer(), observation.tools, self._turn)
            except UnreadableInput as error:
                print_note(str(error), self._console)

    async def _answer(self) -> str:
        """The lines up to the end mark; empty ones before an answer are left out."""
        lines: list[str] = []
        while (line := await self._line()) is not None:
            if line != self._end:
                lines.append(line)
            elif lines or self._end:
                return "\n".join(lines)
        if not lines:
            raise AgentUnavailable("the input ended before the session did")
        return "\n".join(lines)

    async def _line(self) -> str | None:
        """The next line without its end; None at the end of the input. Neither Ctrl-C nor the end waits for one."""
        while b"\n" not in self._read and (more := await in_thread(os.read, self._descriptor, 1 << 16)):
            self._read += more
        if not self._read:
            return None
        line, _, self._read = self._read.partition(b"\n")
        return line.rstrip(b"\r").decode(errors="replace")


def parse_answer(text: str, tools: Sequence[Tool], turn: int) -> Action:
    """The action that a person typed. Without tools it is the text itself. Raises UnreadableInput.

    With tools it is one or more calls: a function's name, then its arguments as a JSON object. Where a function has one
    argument, that may follow as it is.
    """
    if not tools:
        return Action(content=text)
    if text.lstrip().startswith(IN_WORDS):
        return Action(content=text.lstrip().removeprefix(IN_WORDS).strip())
    calls: list[ToolCall] = []
    rest = text.strip()
    while rest or not calls:
        tool, rest = _named(rest, tools)
        arguments, rest = _arguments(tool, rest)
        calls.append(ToolCall(id=f"typed-{turn}-{len(calls)}", name=tool.name, arguments=arguments))
    return Action(content="", tool_calls=tuple(calls))


def _named(text: str, tools: Sequence[Tool]) -> tuple[Tool, str]:
    """The function whose name a text begins with, and the rest."""
    for tool in sorted(tools, key=lambda tool: -len(tool.name)):
        rest = text.removeprefix(tool.name)
        if rest != text and (not rest or rest[0].isspace() or rest[0] == "{"):
            return tool, rest.lstrip()
    names = ", ".join(tool.name for tool in tools)
    raise UnreadableInput(f"name a function; there are: {names}; {IN_WORDS} at the beginning answers in words")


def _arguments(tool: Tool, text: str) -> tuple[str, str]:
    """The JSON text of a call's arguments, and what follows them."""
    if text.startswith("{"):
        try:
            _, end = json.JSONDecoder().raw_decode(text)
        except ValueError as error:
            raise UnreadableInput(f"{tool.name}: its arguments are no JSON object: {error}") from None
        return text[:end], text[end:].lstrip()
    schemas = _schemas(tool)
    if not schemas or (not text and not tool.parameters.get("required")):
        return "{}", text
    (name, schema), *others = schemas.items()
    if text and not others and schema.get("type", "string") == "string":
        return json.dumps({name: text}, ensure_ascii=False), ""
    raise UnreadableInput(f'{tool.name}: give its arguments as a JSON object, {{"{name}": ...}}')


def _schemas(tool: Tool) -> dict[str, dict[str, JsonValue]]:
    """argument -> its JSON Schema, in the order declared; {} for one that has none."""
    properties = tool.parameters.get("properties")
    declared = properties if isinstance(properties, dict) else {}
    return {name: schema if isinstance(schema, dict) else {} for name, schema in declared.items()}


def print_observation(observation: Observation, turn: int, console: Console) -> None:
    """Print the messages of a turn that are new, and the functions offered."""
    where = "" if observation.conversation == "main" else f", conversation {observation.conversation}"
    again = ", which begins anew" if observation.fresh and turn > 1 else ""
    _print(console, f"\n═══ turn {turn}{where}{again} ═══", "bold")
    print_messages(observation.messages, console)
    if observation.tools:
        _print(console, "[functions]", "blue bold")
    for line in _functions(observation.tools, whole=turn == 1 or observation.fresh):
        _print(console, line)


def print_messages(messages: Sequence[Message], console: Console) -> None:
    """Print messages whole, as they are, each under its role."""
    for message in messages:
        _print(console, f"[{message.role}]", f"{STYLES[message.role]} bold")
        if message.content:
            _print(console, message.content)
        for call in message.tool_calls:
            _print(console, f"call {call.name} {call.arguments}")


def print_note(text: str, console: Console) -> None:
    """Print what Proctor says beside the session."""
    _print(console, f"── {text}", "dim")


def print_end(finish: Finish, console: Console) -> None:
    """Print the score with its parts and its evidence, or why there is none."""
    _print(console, "\n═══ the session is over ═══", "bold")
    if finish.score is None:
        _print(console, f"no score: {finish.reason}: {finish.detail.get('cause')}", "red")
        return
    _print(console, f"score {finish.score:.3f}  {finish.reason}", "bold")
    if finish.metrics:
        _print(console, "score parts: " + "  ".join(f"{name} {value:g}" for name, value in finish.metrics.items()))
    if finish.detail:
        _print(console, f"evidence: {json.dumps(finish.detail, ensure_ascii=False, indent=2)}")


def _functions(tools: Sequence[Tool], *, whole: bool) -> Iterator[str]:
    if tools and not whole:
        yield ", ".join(tool.name for tool in tools)
        return
    for tool in tools:
        yield f"{tool.name}: {tool.description}"
        for name, schema in _schemas(tool).items():
            enum = schema.get("enum")
            kind = " | ".join(map(str, enum)) if isinstance(enum, list) else str(schema.get("type", "any"))
            told = schema.get("description")
            yield f"    {name} ({kind})" + (f": {told}" if told else "")


def _print(console: Console, line: str, style: str = "") -> None:
    console.print(Text(visible(line), style=style), soft_wrap=True)
