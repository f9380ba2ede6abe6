"""Scores a sample: compares the answer, or runs the check scripts in its sandbox."""

import re
import secrets
from collections.abc import Callable, Sequence
from typing import Literal

from environments.operating_system.dataset import AnswerMatch, SampleRecord, ShellScript
from environments.operating_system.reply import MAX_ANSWER_BYTES
from proctor.sandbox import Result, Sandbox
from proctor.types import Value

NO_ANSWER = "None"
"""Argument of the first check if the agent committed no answer."""
StrictCheck = Literal["inside", "outside"]


class Verdict(Value):
    """Whether a sample passed, and the exit status of each script that ran."""

    passed: bool
    statuses: tuple[int, ...] = ()


def matches(match: AnswerMatch, answer: str | None) -> bool:
    """Whether an answer is the expected one; False for None."""
    if answer is None:
        return False
    answer = answer.strip() if match.strip else answer
    return answer == match.answer if match.regex is None else re.search(match.regex, answer) is not None


async def judge(
    sandbox: Sandbox, record: SampleRecord, answer: str | None, strict: StrictCheck, limit_s: float
) -> Verdict:
    """The verdict on a sample. Stops at the first script that fails; a script that exceeds `limit_s` seconds fails.

    Every script gets the answer and the outputs of earlier scripts as arguments. Its interpreter is called by absolute
    path, and no script is in the sandbox before it runs. Raises EnvironmentFault if the sandbox is gone.
    """
    if record.match is not None:
        return Verdict(passed=matches(record.match, answer))
    arguments = [NO_ANSWER if answer is None else answer]
    statuses: list[int] = []
    for check in record.checks:
        script = record.example if check is None else check
        assert script is not None
        checker = CHECKERS.get(script.name) if strict == "outside" and check is not None else None
        if checker is not None and len(arguments) > 1:
            statuses.append(0 if _holds(checker, arguments[0], arguments[1]) else 1)
        else:
            result = await run(sandbox, script, arguments, limit_s)
            statuses.append(result.status)
            arguments.append(_argument(result.output))
        if statuses[-1] != 0:
            break
    return Verdict(passed=all(status == 0 for status in statuses), statuses=tuple(statuses))


async def run(sandbox: Sandbox, script: ShellScript, arguments: Sequence[str], limit_s: float) -> Result:
    """Runs a script as a fresh process in `/`."""
    if script.language == "bash":
        return await _run(sandbox, ["/bin/bash", "-c", script.code, "--", *arguments], limit_s)
    if script.language == "python":
        return await _run(sandbox, ["/usr/bin/python3", "-c", script.code, *arguments], limit_s)
    compiler, suffix = ("/usr/bin/gcc", "c") if script.language == "c" else ("/usr/bin/g++", "cpp")
    program = f"/tmp/.{secrets.token_hex(8)}"
    await sandbox.put(f"{program}.{suffix}", script.code.encode())
    compiled = await _run(sandbox, [compiler, "-o", program, f"{program}.{suffix}"], limit_s)
    return compiled if compiled.status != 0 else await _run(sandbox, [program, *arguments], limit_s)


def variables(compiled: str) -> dict[str, str]:
    """Additional environment variables of a check. `compiled`: a folder that does not exist, where Python looks for
    compiled files."""
    return {"PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": "1"}


async def _run(sandbox: Sandbox, argv: Sequence[str], limit_s: float) -> Result:
    """Runs a process. Python in it looks for compiled files in a folder that the agent could not fill."""
    return await sandbox.run(argv, limit_s=limit_s, variables=variables(f"/{secrets.token_hex(8)}"))


def _argument(output: bytes) -> str:
    return output[:MAX_ANSWER_BYTES].replace(b"\0", b"").decode("utf-8", "replace")


def _holds(checker: Callable[[str, str], bool], given: str, expected: str) -> bool:
    try:
        return checker(given, expected)
    except ValueError:
        return False


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


_UNITS = {"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50, "Byte": 1, "": 1}


def _size(text: str) -> int:
    """A size in bytes. As in the published checker, ValueError for decimals and two-letter units such as MB."""
    text = text.strip()
    unit = next(unit for unit in _UNITS if text.endswith(unit))
    return int(text.removesuffix(unit)) * _UNITS[unit]


CHECKERS: dict[str, Callable[[str, str], bool]] = {
    "integer-match": lambda given, expected: int(given) == int(expected),
    "string-match": lambda given, expected: _plain(given) == _plain(expected),
    "containing": lambda given, expected: _plain(expected) in _plain(given),
    "in": lambda given, expected: _plain(given) in _plain(expected),
    "size-match": lambda given, expected: _size(given) == _size(expected),
}
"""The published answer-only checkers by their file's stem, for `strict_check: outside`."""
