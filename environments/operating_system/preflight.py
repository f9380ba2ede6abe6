"""Finds samples that can't be played here: plays set-up and example of each twice, before a run pays for answers."""

import re
from typing import Literal, NamedTuple

from environments.operating_system.dataset import SampleRecord
from environments.operating_system.observation import text
from environments.operating_system.policies import as_bash, reads_arguments
from environments.operating_system.scoring import judge, run
from environments.operating_system.session import SessionRules, SetUpFailed, ShellSession
from proctor.environment import EnvironmentFault
from proctor.sandbox.base import Engine

Problem = Literal["network", "init", "racy", "example", "fault"]
_NETWORK_COMMAND = re.compile(
    r"\b(apt(?:-get)?\s[^|;&\n]*(?:install|update)|pip3?\s[^|;&\n]*install|npm\s+i(?:nstall)?|git\s+clone|curl|wget|ping"
    r"|nslookup|dig|nc)\s([^|;&\n]*)"
)
_NETWORK_TROUBLE = re.compile(
    r"(?i)could ?n.t resolve|could not resolve|failure in name resolution|failure resolving|name or service not known"
    r"|network is unreachable|no route to host|unable to locate package|no installation candidate"
)
"""What programs say that miss a network."""
_LOOPBACK = re.compile(r"(?<![\w.:-])(?:localhost|ip6-(?:localhost|loopback)|127(?:\.\d{1,3}){3}|::1)(?![\w.-])")
_MAX_WHY = 200


class SampleFinding(NamedTuple):
    """Why a sample can't be played, or can't be judged."""

    sample: str
    problem: Problem
    why: str


class SampleTrial(NamedTuple):
    """Result of a sample's set-up and example in a fresh sandbox; `problem` is None if both passed."""

    problem: Literal["init", "example"] | None = None
    why: str = ""


async def inspect(
    record: SampleRecord, rules: SessionRules, engine: Engine, bridge: Engine | None
) -> SampleFinding | None:
    """The problem of a sample, or None. Raises EnvironmentFault if the engine fails.

    `bridge` creates sandboxes with a network, to retry samples that fail without one; None if there is no network.
    """
    first, second = [await _in_fresh_sandbox(engine, record, rules, typed=typed) for typed in (False, True)]
    if first.problem is None and second.problem is None:
        unproved = _network_command(record) if record.example is None else None
        if unproved is None or await has_way_out(engine):
            return None
        return _finding(record, "network", f"{unproved}; no example tells whether that matters")
    if first.problem is None or second.problem is None:
        again = await _in_fresh_sandbox(engine, record, rules, typed=first.problem is None)
        if again.problem is None:
            return _finding(record, "racy", f"it passes once and fails once: {first.why or second.why}")
        return _finding(record, again.problem, again.why)
    needed = await _network_need(record, rules, bridge, first.why)
    if needed is not None:
        return _finding(record, "network", needed)
    return _finding(record, first.problem, first.why)


def _finding(record: SampleRecord, problem: Problem, why: str) -> SampleFinding:
    return SampleFinding(record.id, problem, why[:_MAX_WHY])


async def has_way_out(engine: Engine) -> bool:
    """Whether the sandboxes of an engine have a default route; False if it can create no sandbox."""
    try:
        async with engine.sandbox() as sandbox:
            routes = (await sandbox.run(["/bin/cat", "/proc/net/route"])).output.decode("ascii", "replace")
    except EnvironmentFault:
        return False
    return any(line.split()[1:2] == ["00000000"] for line in routes.splitlines())


async def require_whole_kernel(engine: Engine, runtime: str) -> None:
    """Raises EnvironmentFault if a runtime refuses system calls of samples, or hides written files from the engine.

    Debian 12's gVisor refuses statx, so `ls -l` and `stat` fail there and right commands would score as wrong.
    """
    async with engine.sandbox() as sandbox:
        probe = await sandbox.run(["stat", "--format=%n", "/"])
        await sandbox.run(["touch", "/srv/probe"])
        changes = await sandbox.changes()
    if probe.status != 0:
        output = probe.output.decode(errors="replace").strip()
        raise EnvironmentFault(
            f"runtime {runtime!r}: its kernel refuses what samples need ({output}); install a newer one, or leave "
            "`runtime` out"
        )
    if changes is not None and "/srv/probe" not in changes:
        raise EnvironmentFault(
            f"runtime {runtime!r} hides the files that sandboxes write, so tampering with checks can't be seen; let it "
            "write to the container's own layer (runsc: --overlay2=none), or leave `runtime` out"
        )


async def _network_need(record: SampleRecord, rules: SessionRules, bridge: Engine | None, why: str) -> str | None:
    """The reason for the problem `network` of a sample that fails because of `why`; None if it is another one's."""
    if bridge is not None and (await _in_fresh_sandbox(bridge, record, rules, typed=False)).problem is None:
        return "it fails without a network, and passes with one"
    if (called := _network_command(record)) is not None:
        return f"it fails; {called}"
    said = _NETWORK_TROUBLE.search(why)
    return said and f"it fails, and says {said[0]!r}: {why}"


async def _in_fresh_sandbox(engine: Engine, record: SampleRecord, rules: SessionRules, *, typed: bool) -> SampleTrial:
    """Runs set-up, the example and the checks after it; the example's output is the answer if a check reads one.

    The example runs as a check does, or is typed into the agent's shell, where it may see other processes.
    """
    async with engine.sandbox(record.image) as sandbox:
        try:
            shell = await ShellSession(sandbox, record, {}, rules).set_up()
        except SetUpFailed as failed:
            return SampleTrial("init", " ".join(str(failed).split()).removeprefix(f"{record.id}: "))
        if record.example is None or not record.checks:
            return SampleTrial()
        if typed:
            output = (await shell.execute(as_bash(record.example), limit_s=rules.command_limit_s)).output
        else:
            output = (await run(sandbox, record.example, [], rules.check_limit_s)).output
        printed = text(output)
        answer = printed if any(map(reads_arguments, record.checks)) else None
        if (await judge(sandbox, record, answer, rules.strict_check, rules.check_limit_s)).passed:
            return SampleTrial()
    typed_in = "typed into the agent's shell, " if typed else ""
    return SampleTrial("example", f"{typed_in}its example, which printed {printed[:60]!r}, does not pass its checks")


def _network_command(record: SampleRecord) -> str | None:
    """The reason for the problem `network` if a bash script calls a network command on another host; else None."""
    scripts = (*record.init, record.start, record.example, *record.checks)
    for script in scripts:
        if script is None or script.language != "bash":
            continue
        for called in _NETWORK_COMMAND.finditer(f"{script.code}\n"):
            if _LOOPBACK.search(called[2]) is None:
                return f"it calls {called[1]} without a network"
    return None
