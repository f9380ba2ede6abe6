"""Whether a sample can be played here: its set-up and its example, once, before a run pays for answers."""

import re
from typing import Literal, NamedTuple

from environments.operating_system.checks import StrictCheck, judge, run
from environments.operating_system.dataset import Record, Script
from environments.operating_system.observation import text
from environments.operating_system.policies import reads_arguments
from environments.operating_system.session import Session, SetUpFailed
from environments.sandbox import Sandbox

Problem = Literal["network", "init", "racy", "example", "fault"]
_NETWORK_PROGRAMS = re.compile(
    r"\b(apt(?:-get)?\s[^|;&\n]*(?:install|update)|pip3?\s[^|;&\n]*install|npm\s+i(?:nstall)?|git\s+clone|curl|wget|ping"
    r"|nslookup|dig|nc)\s"
)
_TOLD = 200


class Finding(NamedTuple):
    """Why a sample can't be played, or can't be judged."""

    sample: str
    problem: Problem
    why: str


async def inspect(sandbox: Sandbox, session: Session, *, has_network: bool) -> Finding | None:
    """What is wrong with a session's sample, None where nothing is. Raises EnvironmentFault of the engine itself."""
    record = session.record
    called = None if has_network else _network_program(record)
    if called is not None:
        return Finding(record.id, "network", f"it calls {called}, and there is no network")
    try:
        await session.set_up()
    except SetUpFailed as failed:
        return Finding(record.id, "init", str(failed)[:_TOLD])
    if record.example is None or not record.checks:
        return None
    rules = session.rules
    passed, printed = await _play_example(sandbox, record, record.example, rules.strict_check, rules.check_limit_s)
    if passed:
        return None
    again = await _play_example(sandbox, record, record.example, rules.strict_check, rules.check_limit_s)
    if again != (passed, printed):
        return Finding(record.id, "racy", f"its example printed {printed[:60]!r}, then {again[1][:60]!r}")
    return Finding(record.id, "example", f"its example, which printed {printed[:60]!r}, does not pass its checks")


async def _play_example(
    sandbox: Sandbox, record: Record, example: Script, strict: StrictCheck, limit_s: float
) -> tuple[bool, str]:
    """Whether the checks pass after the example, with what it printed as the answer where one is read; and that."""
    printed = text((await run(sandbox, example, [], limit_s)).output)
    answer = printed if any(map(reads_arguments, record.checks)) else None
    return (await judge(sandbox, record, answer, strict, limit_s)).passed, printed


def _network_program(record: Record) -> str | None:
    """What a sample's scripts call that needs a network, as far as their text shows."""
    scripts = (*record.init, record.start, record.example, *record.checks)
    found = (_NETWORK_PROGRAMS.search(f"{script.code}\n") for script in scripts if script and script.language == "bash")
    return next((match[1] for match in found if match), None)
