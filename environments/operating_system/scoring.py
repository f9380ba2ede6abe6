"""Scores a sample: compares the answer, or runs the check scripts in its sandbox. Summarizes many finishes."""

import re
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

from environments.operating_system.dataset import AnswerMatch, SampleRecord, ShellScript
from environments.operating_system.reply import MAX_ANSWER_BYTES
from proctor.environment import EnvironmentFault
from proctor.sandbox.base import Result, Sandbox
from proctor.summary import means
from proctor.types import Finish, FinishReason, Summary, Value

CANNOT_START = 126
NO_ANSWER = "None"
"""Argument of the first check if the agent committed no answer."""
StrictCheck = Literal["inside", "outside"]
_FLOORS = {
    "dev-dev": "1 of the 26 samples of dev",
    "train-train_first60": "11 of the 60 samples of the train extract",
}
"""By the file of published samples that was played."""
OWN_PROMPT_NOTE = "The instruction is in our own words; the output forms it asks for are the published ones."
OWN_FUNCTIONS_NOTE = "Instruction and functions are in our own words; the functions are those of AgentBench FC."


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
    """Runs a script as a fresh process in `/`; status 126 where that can't start for what ran in the sandbox."""

    async def work(box: Sandbox) -> Result:
        return await _run_script(box, script, arguments, limit_s)

    try:
        return await work(sandbox)
    except EnvironmentFault:
        if not await sandbox.is_spoiled(work):
            raise
        return Result(status=CANNOT_START, output=b"")


async def _run_script(sandbox: Sandbox, script: ShellScript, arguments: Sequence[str], limit_s: float) -> Result:
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


def summarize(finishes: Sequence[Finish], wording: str | None) -> Summary:
    """Success rate over the scored samples, and pass counts by kind and label. Faults are counted, never scored 0.

    `wording` is the note on the instruction; None for the published one.
    """
    scored = [finish for finish in finishes if finish.score is not None]
    counts: Counter[str] = Counter()
    for finish in scored:
        for group in _groups(finish):
            counts[f"{group}.total"] += 1
            counts[f"{group}.passed"] += int(finish.score == 1.0)
    metrics = {"acc": sum(finish.score == 1.0 for finish in scored) / len(scored)} if scored else {}
    for profile in ("compat", "errata", "strict"):
        known = [value for finish in scored if (value := finish.metrics.get(f"passed_{profile}")) is not None]
        metrics |= means({f"acc_{profile}": known})
    seen = [bool(paths) for finish in scored if (paths := finish.detail.get("tampered")) is not None]
    if seen:
        metrics["tampered"] = sum(seen)
    metrics |= {"scored": len(scored)} | ({"coverage": len(scored) / len(finishes)} if finishes else {})
    metrics |= {name: counts[name] for name in sorted(counts)}
    for reason in FinishReason:
        metrics[reason.value] = sum(finish.reason is reason for finish in finishes)
    notes = (*_notes(finishes), *([wording] if wording else []))
    return Summary(primary="acc", metrics={name: float(value) for name, value in metrics.items()}, notes=notes)


def _groups(finish: Finish) -> list[str]:
    labels = finish.detail.get("labels", [])
    return [
        f"kind.{finish.detail.get('kind')}",
        *(f"label.{label}" for label in (labels if isinstance(labels, list) else [])),
    ]


def _notes(finishes: Sequence[Finish]) -> tuple[str, ...]:
    notes = []
    faults = sum(finish.reason.is_fault for finish in finishes)
    if faults:
        notes.append(f"{faults} of {len(finishes)} finishes are faults and left out of acc.")
    if faults == len(finishes):
        notes.append("No sample was scored, so there is no acc.")
    tampered = sum(bool(finish.detail.get("tampered")) for finish in finishes)
    if tampered:
        notes.append(
            f"In {tampered} samples the agent changed programs or libraries that judge it (`tampered` in the detail); "
            "profile strict scores these 0, the others do not."
        )
    played = {str(finish.detail.get("sample")).rpartition("-")[0] for finish in finishes}
    notes.extend(f"An agent that always answers 0 passes {_FLOORS[file]}." for file in sorted(played & _FLOORS.keys()))
    return tuple(notes)
