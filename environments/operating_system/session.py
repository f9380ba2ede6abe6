"""Plays one sample: set-up, rounds, verdict."""

from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from environments.operating_system.dataset import SampleRecord
from environments.operating_system.observation import render, text
from environments.operating_system.policies import as_bash
from environments.operating_system.prompt import OWN, opening
from environments.operating_system.reply import Bash, Commit, Invalid, ShellAction, parse
from environments.operating_system.scoring import StrictCheck, Verdict, judge, run
from environments.operating_system.tampering import Guard, named_by_checks
from proctor.environment import Agent, AgentStopped, EnvironmentFault
from proctor.published import TASK_STATUS, Opening
from proctor.sandbox.base import Sandbox
from proctor.sandbox.shell import Shell
from proctor.tools import ReplyReader, TextReader, UnreadableCall
from proctor.types import Finish, FinishReason, Observation, asked_and_answered

ROUNDS = 8
Profile = Literal["compat", "errata", "strict"]
OnInitError = Literal["fail", "continue"]


class SetUpFailed(EnvironmentFault):
    """A sample's own init or start script failed."""


@dataclass(frozen=True)
class SessionRules:
    """Settings by which a sample is played and judged."""

    profile: Profile
    command_limit_s: float
    check_limit_s: float
    on_init_error: OnInitError
    strict_check: StrictCheck


@dataclass
class ShellSession:
    """A sample in its sandbox, to be played once.

    `judged` holds the sample by the data to judge it with (`compat`, `errata`); profile `strict` uses that of `compat`.
    """

    sandbox: Sandbox
    record: SampleRecord
    judged: dict[Profile, SampleRecord]
    rules: SessionRules
    prompt: Opening = OWN
    reader: ReplyReader[ShellAction] = field(default_factory=lambda: TextReader(parse))
    warnings: list[str] = field(default_factory=list)
    rounds: int = 0
    tampered: tuple[str, ...] | None = ()
    """Changed paths of programs and libraries that judge the agent; None if the engine can't see changes."""

    async def play(self, agent: Agent) -> Finish:
        """Plays the sample. Raises AgentUnavailable, and EnvironmentFault if set-up or sandbox fails."""
        guard = Guard(self.sandbox, set().union(*map(named_by_checks, self.judged.values())))
        await guard.note_image()
        shell = await self.set_up()
        if self._has_checks() and (self.record.init or self.record.start):
            await guard.begin()
        answer: str | None = None
        try:
            reason, answer = await self._converse(agent, shell)
        except AgentStopped as stopped:
            reason = stopped.reason
        verdicts = await self._judge(answer, guard) if reason is FinishReason.COMPLETED else {}
        return self._finish(reason, answer, verdicts)

    async def set_up(self) -> Shell:
        """Runs the init and start scripts and returns the agent's shell. Raises SetUpFailed if a script fails."""
        for number, script in enumerate(self.record.init, 1):
            result = await run(self.sandbox, script, [], self.rules.check_limit_s)
            if result.timed_out:
                raise SetUpFailed(f"{self.record.id}: init script {number} took longer than check_limit_s")
            self._require(f"init script {number}", result.status, result.output)
        shell = Shell(self.sandbox)
        if self.record.start is not None:
            typed = await shell.execute(as_bash(self.record.start), limit_s=self.rules.command_limit_s)
            self._require("start script", None if typed.timed_out else typed.status, typed.output)
        return shell

    def _has_checks(self) -> bool:
        return any(record.kind == "check" for record in self.judged.values())

    def _require(self, what: str, status: int | None, output: bytes) -> None:
        if status == 0:
            return
        problem = f"{what} ended with status {status}: {text(output)[-300:]}"
        if self.rules.on_init_error == "fail":
            raise SetUpFailed(f"{self.record.id}: {problem}")
        self.warnings.append(problem)

    async def _converse(self, agent: Agent, shell: Shell) -> tuple[FinishReason, str | None]:
        messages = opening(self.record.description, self.prompt)
        while self.rounds < ROUNDS:
            reply = await agent.act(Observation(messages=messages, tools=self.reader.tools))
            self.rounds += 1
            parsed = self.reader.read(reply)
            match parsed.actions[0]:
                case Invalid(reason):
                    return FinishReason(reason), None
                case Bash(code) if self.rounds < ROUNDS:
                    result = await shell.execute(code, limit_s=self.rules.command_limit_s)
                    messages = parsed.answered([render(result, self.rules.command_limit_s)])
                case UnreadableCall(why):
                    messages = parsed.answered([why])
                case Commit(answer):
                    return FinishReason.COMPLETED, answer
        return self.reader.limit_reason(), None

    async def _judge(self, answer: str | None, guard: Guard) -> dict[Profile, Verdict]:
        """The verdict with each set of data. Profile `strict` looks for tampering again after the checks, since a
        background job of the agent may have waited for them."""
        if self._has_checks():
            self.tampered = await guard.look()
        verdicts = await self._verdicts(answer)
        if self._has_checks() and self.rules.profile == "strict":
            self.tampered = await guard.look()
        return verdicts

    async def _verdicts(self, answer: str | None) -> dict[Profile, Verdict]:
        verdicts: dict[Profile, Verdict] = {}
        for profile, record in self.judged.items():
            same = next((verdicts[done] for done in verdicts if self.judged[done] == record), None)
            verdicts[profile] = same or await judge(
                self.sandbox, record, answer, self.rules.strict_check, self.rules.check_limit_s
            )
        return verdicts

    def _finish(self, reason: FinishReason, answer: str | None, verdicts: dict[Profile, Verdict]) -> Finish:
        passed = {profile: profile in verdicts and verdicts[profile].passed for profile in self.judged}
        if "compat" in passed and self.tampered is not None:
            passed["strict"] = passed["compat"] and not self.tampered
        statuses: dict[str, JsonValue] = {profile: list(verdict.statuses) for profile, verdict in verdicts.items()}
        return Finish(
            reason=reason,
            score=float(passed[self.rules.profile]),
            metrics=self.reader.metrics()
            | {"rounds": float(self.rounds), **{f"passed_{name}": float(ok) for name, ok in passed.items()}},
            detail={
                **asked_and_answered(self.record.description, self.record.wanted, answer or ""),
                "sample": self.record.id,
                "kind": self.record.kind,
                "labels": list(self.record.labels),
                "answer": answer,
                "upstream_status": TASK_STATUS[reason],
                "check_statuses": statuses,
                "tampered": None if self.tampered is None else list(self.tampered),
                "warnings": list(self.warnings),
            },
        )
