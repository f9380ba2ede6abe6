"""Plays one task: the agent's turns in its container, then its tests, which write the reward."""

import asyncio
import json
import math
import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pydantic_core import to_jsonable_python

from environments.operating_system.functions import toolset
from environments.operating_system.observation import render, text
from environments.operating_system.reply import Bash, Commit, ShellAction, parse
from environments.operating_system.tampering import Guard
from proctor.environment import Agent, AgentStopped, EnvironmentFault
from proctor.observability.logging import known_id
from proctor.sandbox.base import Sandbox
from proctor.sandbox.shell import Shell
from proctor.tools import CallReader, Protocol, ReplyReader, TextReader, Toolset, UnreadableCall
from proctor.types import Finish, FinishReason, Message, Observation, asked_and_answered
from proctor_bridges.worlds.harbor.program import ENDED, Program
from proctor_bridges.worlds.harbor.tasks import HarborTask, packed

if TYPE_CHECKING:
    from proctor_bridges.worlds.harbor.environment import Harbor
    from proctor_bridges.worlds.harbor.sandboxes import Box

_SYSTEM = """\
You work in a Linux system as root, by bash in one shell that stays open; it is in the task's working directory. A \
command gets no input and must end by itself: start what is to go on running in the background. An output that is too \
long is cut. In each turn first think, then """
_HOW: Mapping[Protocol, str] = {
    "tools": 'call one function. When the task is done, call "finish_action": the result is judged then.',
    "text": "take one action. To run bash code, print\n\nAct: bash\n\n```bash\n# the code\n```\n\n"
    "When the task is done, print this line, and the result is judged:\n\nAct: finish",
}
_NO_ACTION = 'Your reply has no action. Print "Act: bash" with a block of bash code, or "Act: finish".'
_LOGS, _REWARD = "/logs/verifier", "reward"
_FOLDERS = f'mkdir -p /logs/agent {_LOGS} /logs/artifacts "$0" && chmod 777 /logs/*'
_CLEAN = f"rm -rf -- /tests {_LOGS} && mkdir -p {_LOGS} && chmod 777 {_LOGS}"
_SHOWN, _MOST_WATCHED = 2000, 100


class TaskVerdict(NamedTuple):
    """What the tests said."""

    output: str
    """The end of what they printed."""
    rewards: Mapping[str, float] = {}
    """By their names; empty where what the agent did kept the tests from giving one."""
    tampered: tuple[str, ...] = ()
    """Files of the tests that were changed while they ran."""


def reader(protocol: Protocol) -> ReplyReader[ShellAction]:
    """Reads the replies of one session: calls of `os`'s functions without that for an answer, or texts."""
    if protocol == "tools":
        functions = toolset(thought_answers=False).functions
        return CallReader(Toolset(tuple(each for each in functions if each.name != "answer_action")), strict=True)
    return TextReader(lambda reply: parse(reply, lenient=True))


@dataclass
class TaskSession:
    """A task in its container, to be played once."""

    task: HarborTask
    box: "Box"
    world: "Harbor"
    steps: int = 0
    unreadable: int = 0
    is_late: bool = False
    program_log: str | None = None
    """What a program printed that did the task."""

    def __post_init__(self) -> None:
        self.reader = reader(self.world.protocol)

    async def play(self, agent: Agent) -> Finish | Program:
        """From the instruction to the reward, or to the program that is to do the task instead of turns.

        Raises AgentUnavailable, and EnvironmentFault.
        """
        return await self._played(partial(self._converse, agent))

    async def play_by(self, program: Program, agent: Agent) -> Finish:
        """As `play`, by a program whose requests the agent answers, and at last the end of its run."""
        played = await self._played(partial(self._run, program, agent))
        assert isinstance(played, Finish)
        return played

    async def _played(self, working: Callable[[], Awaitable[FinishReason | Program]]) -> Finish | Program:
        guard = Guard(self.box.sandbox)
        await guard.note_image()
        made = await self.box.sandbox.run(["/bin/sh", "-c", _FOLDERS, self.box.folder])
        if made.status != 0:
            raise EnvironmentFault(f"the container gets no folders for logs: {text(made.output)[-300:]}")
        await guard.begin()
        try:
            reason = await working()
        except AgentStopped as stopped:
            reason = stopped.reason
        if isinstance(reason, Program):
            return reason
        seen, verdict = await guard.look(), await self._verdict()
        return self._finish(reason, verdict, None if seen is None else sorted({*seen, *verdict.tampered}))

    async def _run(self, program: Program, agent: Agent) -> FinishReason:
        """Have a program do the task."""
        from proctor_bridges.worlds.harbor.relay import ProgramRun, relay_beside  # needs the extra `os`

        run = ProgramRun(program, self.box, agent, self._agent_s)
        try:
            async with relay_beside(self.box.container, self.task.limits.max_age_s) as relay:
                end = await run.run(self.task.instruction, relay)
        finally:
            self.steps, self.program_log = run.requests, run.log
        self.is_late = end.late
        await agent.act(end.observation(ENDED))
        return FinishReason.TURN_LIMIT if end.late else FinishReason.COMPLETED

    @property
    def _agent_s(self) -> float:
        """The agent's time."""
        return (self.task.file.agent.timeout_sec or self.world.agent_limit_s) * self.world.time_factor

    async def _converse(self, agent: Agent) -> FinishReason | Program:
        clock, shell = asyncio.get_running_loop().time, Shell(self.box.sandbox)
        exports = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in self.box.variables.items())
        await shell.execute(f"{exports}\ncd {shlex.quote(self.box.folder)}")
        ends = clock() + self._agent_s
        how, asked = _SYSTEM + _HOW[self.world.protocol], self.task.instruction
        messages: tuple[Message, ...] = (Message(role="system", content=how), Message(role="user", content=asked))
        while self.steps < self.world.max_steps:
            reply = await agent.act(Observation(messages=messages, tools=self.reader.tools))
            begins = self.steps == 0 and self.world.network == "relay"
            if begins and (program := Program.begun_by(reply, known_id("session"))) is not None:
                return program
            if clock() >= ends:
                self.is_late = True
                return FinishReason.TURN_LIMIT
            self.steps += 1
            parsed = self.reader.read(reply)
            if isinstance(parsed.actions[0], Commit):
                return FinishReason.COMPLETED
            messages = parsed.answered([await self._answer(shell, parsed.actions[0], exports, ends - clock())])
        nothing_read = self.world.protocol == "text" and self.unreadable == self.steps
        return FinishReason.INVALID_FORMAT if nothing_read else self.reader.limit_reason()

    async def _answer(self, shell: Shell, action: ShellAction | UnreadableCall, exports: str, left_s: float) -> str:
        """What the agent is told after a turn."""
        if not isinstance(action, Bash):
            self.unreadable += 1
            return action.why if isinstance(action, UnreadableCall) else _NO_ACTION
        limit_s = max(0.1, min(self.world.command_limit_s, left_s))
        ran = await shell.execute(action.code, limit_s=limit_s)
        if ran.restarted:
            await shell.execute(exports)
        return render(ran, round(limit_s, 1), self.world.output_characters)

    async def _verdict(self) -> TaskVerdict:
        """The verdict on the state of the container. Raises EnvironmentFault where the tests give no reward.

        If they give one in a fresh container, and again none in this one, that is what the agent did, and no fault.
        """
        try:
            return await self._judged(self.box.sandbox)
        except EnvironmentFault as fault:
            if not await self.box.sandbox.is_spoiled(self._judged):
                raise
            return TaskVerdict(str(fault))

    async def _judged(self, sandbox: Sandbox) -> TaskVerdict:
        tests, limit_s = self.task.folder / "tests", self.task.file.verifier_s * self.world.time_factor
        if (cleaned := await sandbox.run(["/bin/sh", "-c", _CLEAN])).status != 0:
            raise EnvironmentFault(f"/tests can't be emptied: {text(cleaned.output)[-300:]}")
        await sandbox.unpack(packed(tests, "test.sh"))
        files = [f"/tests/{path.relative_to(tests).as_posix()}" for path in sorted(tests.rglob("*")) if path.is_file()]
        before = {path: await sandbox.fingerprint(path) for path in files[:_MOST_WATCHED]}
        command = ["/bin/sh", "-c", 'cd "$0" && exec /tests/test.sh', self.box.folder]
        ran = await sandbox.run(command, limit_s=limit_s, variables={**self.box.variables, **self.task.judging})
        output = text(ran.output)[-_SHOWN:]
        if ran.timed_out:
            raise EnvironmentFault(f"tests/test.sh took longer than {limit_s:g} s: {output}")
        try:
            found = [await sandbox.content(f"{_LOGS}/{name}") for name in ("reward.json", "reward.txt")]
            rewards = read_rewards(*found)
        except ValueError as error:
            raise EnvironmentFault(f"tests/test.sh ended with status {ran.status}; {error}: {output}") from error
        changed = [path for path in before if await sandbox.fingerprint(path) != before[path]]
        return TaskVerdict(output, rewards, tuple(changed))

    def _finish(self, reason: FinishReason, verdict: TaskVerdict, tampered: list[str] | None) -> Finish:
        counts = {"steps": self.steps, "unreadable_replies": self.unreadable, "late": self.is_late}
        counts |= {"spoiled": not verdict.rewards} | ({} if tampered is None else {"tampered": bool(tampered)})
        rewards = {name if name == _REWARD else f"reward_{name}": value for name, value in verdict.rewards.items()}
        metadata = to_jsonable_python(self.task.file.metadata)
        log = {} if self.program_log is None else {"program_log": self.program_log[-_SHOWN:]}
        said = verdict.output.strip().rpartition("\n")[2]
        words = asked_and_answered(self.task.instruction, "tests/test.sh gives reward 1", said)
        return Finish(
            reason=reason,
            score=score(verdict.rewards, self.world.reward),
            metrics={**self.reader.metrics(), **rewards, **{name: float(count) for name, count in counts.items()}},
            detail={**words, "metadata": metadata, "tampered": tampered, "verifier_output": verdict.output, **log},
        )


def read_rewards(in_json: bytes | None, in_text: bytes | None) -> dict[str, float]:
    """The rewards of a reward.json, else that of a reward.txt. Raises ValueError where there is none."""
    if in_json is None and in_text is None:
        raise ValueError("it left no reward.txt or reward.json")
    try:
        found = json.loads(in_json) if in_json is not None else {_REWARD: float(in_text or b"")}
        rewards = {str(name): value + 0.0 for name, value in found.items()}
    except (ValueError, TypeError, AttributeError, OverflowError):
        rewards = {}
    if not rewards or not all(map(math.isfinite, rewards.values())):
        raise ValueError("its reward.txt is no number" if in_json is None else "its reward.json has not numbers alone")
    return rewards


def score(rewards: Mapping[str, float], name: str | None) -> float:
    """The reward of that name, else the only one, else `reward`; 0 without any. Raises EnvironmentFault."""
    if not rewards:
        return 0.0
    chosen = name or (next(iter(rewards)) if len(rewards) == 1 else _REWARD)
    if chosen not in rewards:
        raise EnvironmentFault(
            f"there is no reward {chosen!r} but {', '.join(rewards)}: name one in the field `reward`"
        )
    return min(1.0, max(0.0, rewards[chosen]))
