"""A person as an agent: shows each observation, and reads the answer from lines or from an editor."""

import asyncio
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue
from rich.console import Console

from eval_client.cli.person.lines import TypedLines
from eval_client.cli.person.shown import print_messages, print_note, print_observation, transcript_text
from eval_client.cli.person.typed import (
    IN_WORDS,
    UnreadableInput,
    argument_schemas,
    made_call,
    parse_answer,
    parse_argument,
)
from proctor.environment import Agent, AgentUnavailable
from proctor.session.transcript import Transcript
from proctor.types import Action, Message, Observation, Tool

EDIT, HISTORY = ":e", ":h"
"""What a person types on a terminal instead of an answer."""
BELOW = "----- Write the answer above this line. What is below is left out. -----"


class TerminalPlayer(Agent):
    """Shows observations on a console, and reads answers from a terminal, a pipe or a file."""

    def __init__(self, lines: TypedLines, console: Console, *, end: str, editor: bool, terminal: bool) -> None:
        self._lines, self._console = lines, console
        self._end, self._editor, self._terminal = end, editor, terminal
        self._transcript = Transcript()
        self._turn = 0
        self.editing = False
        """Whether an editor has the terminal; Ctrl-C is the editor's then."""

    async def act(self, observation: Observation) -> Action:
        """Raises AgentUnavailable at the end of the input."""
        self._turn += 1
        history = self._transcript.observe(observation)
        print_observation(observation, self._turn, self._console)
        action = await self._answer(observation, history)
        self._transcript.answer(observation, action)
        return action

    async def _answer(self, observation: Observation, history: Sequence[Message]) -> Action:
        edit = self._editor
        while True:
            try:
                if edit:
                    return parse_answer(await self._edited(observation, history), observation.tools, self._turn)
                return await self._typed(observation)
            except UnreadableInput as error:
                print_note(str(error), self._console)
                edit = False
            except _Command as command:
                edit = str(command) == EDIT
                if str(command) == HISTORY:
                    print_messages(history, self._console)

    async def _typed(self, observation: Observation) -> Action:
        """The action of the lines up to the end mark."""
        print_note(self._how_to_answer(observation.tools), self._console)
        lines: list[str] = []
        while (line := await self._lines.next()) is not None:
            if self._terminal and not lines and line in (EDIT, HISTORY):
                raise _Command(line)
            if line == self._end:
                if lines or self._end:
                    break
                continue  # empty lines before an answer
            lines.append(line)
            alone = next((tool for tool in observation.tools if tool.name == line.strip()), None)
            if len(lines) == 1 and alone is not None:
                return Action(content="", tool_calls=(made_call(alone, await self._arguments(alone), self._turn),))
        if line is None and not lines:
            raise AgentUnavailable("the input ended before the session did")
        return parse_answer("\n".join(lines), observation.tools, self._turn)

    async def _arguments(self, tool: Tool) -> str:
        """The arguments of a function that was named alone, each asked for; an empty line leaves one out."""
        given: dict[str, JsonValue] = {}
        for name, schema in argument_schemas(tool).items():
            self._console.print(f"  {name} ({schema.get('type', 'string')}): ", end="", markup=False)
            line = await self._lines.next()
            if line is None:
                raise AgentUnavailable("the input ended before the session did")
            if line:
                given[name] = parse_argument(tool, name, line)
        return json.dumps(given, ensure_ascii=False)

    def _how_to_answer(self, tools: Sequence[Tool]) -> str:
        mark = f'a line "{self._end}"' if self._end else "an empty line"
        commands = f"; {EDIT} opens your editor, {HISTORY} shows the whole conversation" if self._terminal else ""
        if not tools:
            return f"your answer, then {mark}{commands}"
        how = f'NAME {{"argument": ...}}, or NAME alone; {IN_WORDS} answers in words'
        return f"a function: {how}; then {mark}{commands}"

    async def _edited(self, observation: Observation, history: Sequence[Message]) -> str:
        """What the person wrote in the editor. Raises UnreadableInput where that is nothing."""
        program = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "answer.md"
            below = transcript_text(history, observation.tools)
            file.write_text(f"\n\n{BELOW}\n{below}", encoding="utf-8")
            self.editing = True
            try:
                ended = await asyncio.to_thread(subprocess.run, [*shlex.split(program), str(file)], check=False)
            except OSError as error:
                raise UnreadableInput(f"the editor {program!r} can't be started ({error}); set EDITOR") from error
            finally:
                self.editing = False
            text = file.read_text(encoding="utf-8", errors="replace").partition(BELOW)[0].strip()
        if ended.returncode or not text:
            raise UnreadableInput(f"{program} ended without an answer")
        return text


class _Command(Exception):
    """A command was typed instead of an answer: EDIT or HISTORY."""
