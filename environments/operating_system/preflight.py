"""Whether a sample can be played here: its set-up and its example, played twice, before a run pays for answers."""

import re
from typing import Literal, NamedTuple

from environments.operating_system.dataset import SampleRecord
from environments.operating_system.observation import text
from environments.operating_system.policies import reads_arguments
from environments.operating_system.scoring import judge, run
from environments.operating_system.session import SessionRules, SetUpFailed, ShellSession
from proctor.environment import EnvironmentFault
from proctor.sandbox import Engine, Sandbox

Problem = Literal["network", "init", "racy", "example", "fault"]
_NETWORK_COMMAND = re.compile(
    r"\b(apt(?:-get)?\s[^|;&\n]*(?:install|update)|pip3?\s[^|;&\n]*install|npm\s+i(?:nstall)?|git\s+clone|curl|wget|ping"
    r"|nslookup|dig|nc)\s([^|;&\n]*)"
)
_LOOPBACK = re.compile(r"(?<![\w.:-])(?:localhost|ip6-(?:localhost|loopback)|127(?:\.\d{1,3}){3}|::1)(?![\w.-])")
_TOLD = 200


class SampleFinding(NamedTuple):
    """Why a sample can't be played, or can't be judged."""

    sample: str
    problem: Problem
    why: str


class SampleTrial(NamedTuple):
    """What became of a sample's set-up and example in a sandbox of its own; without a problem where both did well."""

    problem: Literal["init", "example"] | None = None
    why: str = ""


async def inspect(
    record: SampleRecord, rules: SessionRules, engine: Engine, bridge: Engine | None
) -> SampleFinding | None:
    """What is wrong with a sample, None where nothing is. Raises EnvironmentFault of the engine itself.

    `bridge` makes sandboxes with a network, for samples that fail without one; None where there is nothing to try.
    """
    first, second = [await _in_fresh_sandbox(engine, record, rules) for _ in range(2)]
    if first.problem is None and second.problem is None:
        return None
    if first.problem is None or second.problem is None:
        return SampleFinding(record.id, "racy", f"it passes once and fails once: {first.why or second.why}")
    needed = _network_command(record) if bridge is None else await _with_network(record, rules, bridge)
    if needed is not None:
        return SampleFinding(record.id, "network", needed)
    return SampleFinding(record.id, first.problem, first.why)


async def has_way_out(engine: Engine) -> bool:
    """Whether the sandboxes of an engine have a default route; False where it makes none."""
    try:
        async with engine.sandbox() as sandbox:
            routes = (await sandbox.run(["/bin/cat", "/proc/net/route"])).output.decode("ascii", "replace")
    except EnvironmentFault:
        return False
    return any(line.split()[1:2] == ["00000000"] for line in routes.splitlines())


async def _with_network(record: SampleRecord, rules: SessionRules, bridge: Engine) -> str | None:
    """Why a sample needs a network: it passes where there is one. None where it fails there too."""
    trial = await _in_fresh_sandbox(bridge, record, rules)
    return "it fails without a network, and passes with one" if trial.problem is None else None


async def _in_fresh_sandbox(engine: Engine, record: SampleRecord, rules: SessionRules) -> SampleTrial:
    async with engine.sandbox(record.image) as sandbox:
        try:
            await ShellSession(sandbox, record, {}, rules).set_up()
        except SetUpFailed as failed:
            return SampleTrial("init", " ".join(str(failed).split())[:_TOLD])
        return await _play_example(sandbox, record, rules)


async def _play_example(sandbox: Sandbox, record: SampleRecord, rules: SessionRules) -> SampleTrial:
    """Whether the checks pass after the example, with what it printed as the answer where one is read."""
    if record.example is None or not record.checks:
        return SampleTrial()
    printed = text((await run(sandbox, record.example, [], rules.check_limit_s)).output)
    answer = printed if any(map(reads_arguments, record.checks)) else None
    if (await judge(sandbox, record, answer, rules.strict_check, rules.check_limit_s)).passed:
        return SampleTrial()
    return SampleTrial("example", f"its example, which printed {printed[:60]!r}, does not pass its checks")


def _network_command(record: SampleRecord) -> str | None:
    """What a sample's scripts call that needs a network, as far as their text shows; this machine itself is none."""
    scripts = (*record.init, record.start, record.example, *record.checks)
    for script in scripts:
        if script is None or script.language != "bash":
            continue
        for called in _NETWORK_COMMAND.finditer(f"{script.code}\n"):
            if _LOOPBACK.search(called[2]) is None:
                return f"it fails, and calls {called[1]} without a network"
    return None
