"""The agent's messages about the output of commands."""

import re

from proctor.sandbox.shell import CommandResult

MAX_CHARACTERS = 800
_CUT_MORE = 20
EMPTY = "The output of the OS is empty."
HEAD = "The output of the OS:\n\n"
TRUNCATED = "[truncated because the output is too long]"

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movements
    r"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC and the other strings: window titles, links
    r"|[ -/]+[0-~]|[0-~])"  # two and three character sequences: character sets, resets
)


def text(output: bytes) -> str:
    """Decoded output without escape sequences and trailing newlines, as agents and preflight read it."""
    return _ESCAPES.sub("", output.decode("utf-8", "replace")).rstrip("\r\n")


def render(result: CommandResult, limit_s: float, most: int = MAX_CHARACTERS) -> str:
    """The message after a command: its output, cut if it has more than `most` characters, and any notices."""
    return "\n".join([body(text(result.output), most), *_notices(result, limit_s)])


def body(output: str, most: int = MAX_CHARACTERS) -> str:
    """The message for an output without notices."""
    if not output:
        return EMPTY
    if len(output) > most:
        output = f"{output[: most - _CUT_MORE]}\n{TRUNCATED}"
    return HEAD + output


def _notices(result: CommandResult, limit_s: float) -> list[str]:
    notices = []
    if result.timed_out:
        notices.append(f"[the command was interrupted after the time limit of {limit_s:g} s]")
    if result.restarted:
        notices.append("[the shell has ended; a new one was started in /]")
    if result.gone:
        notices.append("[the shell has ended, and this system starts no new one]")
    return notices
