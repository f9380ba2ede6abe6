"""Pure: the command of an agent that owns its loop, and what its words get in place of `{prompt}` and the like."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from proctor.config.problems import FieldError
from proctor.config.wording import nearest

CommandWords = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...],
    Field(exclude_if=lambda words: not words),
]
"""A program and its arguments; no shell reads them."""
PLACES = ("prompt", "mcp_config", "url")
"""What may stand in braces in a word."""
EXAMPLE = '[claude, -p, "{prompt}", --mcp-config, "{mcp_config}"]'
MAX_PROMPT_BYTES = 100_000
"""Limit of a prompt as a word: Linux takes words of 128 KiB."""
_PLACE = re.compile(r"\{\{([A-Za-z_]+)\}\}|\{([A-Za-z_]+)\}")
"""In two braces a name stands for itself, in one pair of braces."""


def check_command(words: Sequence[str]) -> None:
    """Raises FieldError where a command can't be run, or could not reach its episode."""
    if not words:
        raise FieldError(("command",), f"missing; list the program and its arguments, such as {EXAMPLE}")
    if "/" in words[0] and not Path(words[0]).is_absolute():
        text = f"{words[0]!r} is a relative path, but the command runs in a folder of its own; write the absolute path"
        raise FieldError(("command",), text)
    named = [name for word in words for _, name in _PLACE.findall(word) if name]
    for name in named:
        if name not in PLACES:
            close = nearest(name, PLACES)
            meant = f"; did you mean {{{close}}}?" if close else ""
            known = ", ".join(f"{{{place}}}" for place in PLACES)
            text = f"unknown {{{name}}}; known are: {known}{meant}; if the program is to get it, write {{{{{name}}}}}"
            raise FieldError(("command",), text)
    if not {"mcp_config", "url"} & set(named):
        raise FieldError(
            ("command",), "no word holds {mcp_config} or {url}, so the command could not reach its episode; add one"
        )


def filled(words: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The words with the values in place of what stands in braces."""
    return [_PLACE.sub(lambda place: f"{{{place[1]}}}" if place[1] else values[place[2]], word) for word in words]


def mcp_config(url: str) -> str:
    """The text of a configuration file that names one MCP server, as Claude Code and others read it."""
    return json.dumps({"mcpServers": {"proctor": {"type": "http", "url": url}}}, indent=1)


def prompt(opening: str) -> str:
    """What the agent is asked to do; `opening` are the messages that the episode begins with."""
    return (
        "Play one episode to its end by the tools of the MCP server proctor. They are all that acts in the episode; no "
        "file on this machine belongs to it. Call one tool at a time, and go on until a result says that the episode "
        f"is over.\n\nThe episode begins:\n\n{opening}"
    )
