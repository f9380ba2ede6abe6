"""Scripted policies of this environment, each a function of the transcript only."""

import re
import shlex
from collections.abc import Sequence
from random import Random

from environments.operating_system.dataset import SampleRecord, ShellScript
from environments.operating_system.observation import EMPTY, HEAD
from environments.operating_system.scoring import variables
from proctor.environment import Policy
from proctor.sandbox.base import ENVIRONMENT
from proctor.types import Action, Message

_NO_FOLDER = "/nothing-compiled"
"""A folder that does not exist, for Python's compiled files: the example runs as a check does, and always the same."""
_RANDOM_COMMANDS = ("ls /", "pwd", "ls -a ~ | wc -l", "cat /etc/hostname", "uname -s", "nproc", "touch /tmp/x")


def gold(record: SampleRecord) -> Policy:
    """A policy that answers with the expected text, or runs the example and answers with its output if one is read."""

    def policy(_: str, transcript: Sequence[Message]) -> Action:
        if record.match is not None and record.match.answer is not None:
            return answer(record.match.answer)
        if record.example is None:
            return finish()
        if not _has_run(transcript):
            return bash(as_checked(record.example))
        answers = record.match is not None or any(map(reads_arguments, record.checks))
        return answer(" ".join(last_output(transcript).split("\n")).strip()) if answers else finish()

    return policy


def reads_arguments(check: ShellScript | None) -> bool:
    """Whether a check's text reads its arguments, and so the answer; True for None, the example's output."""
    if check is None:
        return True
    return re.search(r"\$[1@*#]|\$\{[1@*#]" if check.language == "bash" else r"\bargv\b", check.code) is not None


def naive(_: str, transcript: Sequence[Message]) -> Action:
    """Lists the first path in the problem, or the home directory, and answers with the number of lines."""
    if not _has_run(transcript):
        path = re.search(r"(?:/[\w.-]*\w)+|~(?:/[\w.-]*\w)*", transcript[-1].content)
        return bash(f"ls {path[0] if path else '~'} | wc -l")
    number = re.search(r"\d+", last_output(transcript))
    return answer(number[0]) if number else finish()


def random(sample: str, seed: int) -> Policy:
    """A policy of random well-formed actions: a command, a small number as the answer, or `finish`."""

    def policy(_: str, transcript: Sequence[Message]) -> Action:
        chance = Random(f"{seed}/{sample}/{len(transcript)}")
        kind = chance.choice(("bash", "bash", "answer", "finish"))
        if kind == "bash":
            return bash(chance.choice(_RANDOM_COMMANDS))
        return finish() if kind == "finish" else answer(str(chance.randrange(10)))

    return policy


def bash(code: str) -> Action:
    """A reply that runs code."""
    return Action(content=f"Think: I run a command.\n\nAct: bash\n\n```bash\n{code}\n```")


def answer(text: str) -> Action:
    """A reply with an answer."""
    return Action(content=f"Think: I know the answer.\n\nAct: answer({text})")


def finish() -> Action:
    """A reply that ends the sample without an answer."""
    return Action(content="Think: It is done.\n\nAct: finish")


def _has_run(transcript: Sequence[Message]) -> bool:
    """Whether the last message is the output of a command, not the problem."""
    return transcript[-1].content.startswith((HEAD, EMPTY))


def last_output(transcript: Sequence[Message]) -> str:
    """The output of the last command as it was shown; empty if there was none."""
    content = transcript[-1].content
    return content.removeprefix(HEAD) if content.startswith(HEAD) else ""


def as_bash(script: ShellScript) -> str:
    """A script as a shell command."""
    if script.language == "bash":
        return script.code
    if script.language == "python":
        return f"/usr/bin/python3 -c {shlex.quote(script.code)}"
    compiler = "gcc -x c" if script.language == "c" else "g++ -x c++"
    return f"printf %s {shlex.quote(script.code)} | {compiler} -o /tmp/example - && /tmp/example"


def as_checked(script: ShellScript) -> str:
    """A shell command that runs a script as checks are run: a fresh process in `/` with a check's environment."""
    match script.language:
        case "bash":
            program = ["/bin/bash", "-c", script.code, "--"]
        case "python":
            program = ["/usr/bin/python3", "-c", script.code]
        case _:
            program = ["/bin/bash", "-c", as_bash(script)]
    settings = [f"{name}={value}" for name, value in {**ENVIRONMENT, **variables(_NO_FOLDER)}.items()]
    return f"(cd / && exec {shlex.join(['/usr/bin/env', '-i', *settings, *program])})"
