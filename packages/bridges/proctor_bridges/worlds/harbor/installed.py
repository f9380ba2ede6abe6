"""Agents of `kind: installed`, on the client: the requests of a program in a task's container, and its run's end."""

import asyncio
from collections.abc import Mapping, Sequence

from pydantic_core import from_json, to_json

from eval_client.plan.plan import Plan
from eval_client.trial.episode import SessionServer, TrialHistory
from proctor.agent_function import Answered, Ask, FunctionRaised, is_cancelled
from proctor.environment import AgentRefused, AgentStopped
from proctor.llm.dialects import PATHS
from proctor.llm.wire import Request, Written
from proctor.observability.redaction import redacted
from proctor.session.time_limit import TIME_LIMIT
from proctor.types import Action, FinishReason, Message, Tool, Usage
from proctor_bridges.worlds.harbor.program import ENDED, REQUESTS, Asked, Program, ProgramEnd, RelayReply, refusal
from task_server.client.client import ReplyLog
from task_server.wire.messages import Act, Finished, Observed, Started, Step, Stop

_SHOWN = 500


class InstalledRun:
    """One attempt: it answers the program's requests by the model, and stands before the task server for the attempt.

    The requests come as turns of the session; to the attempt they are all its first turn, whose answer is the log.
    """

    def __init__(self, plan: Plan, agent: str, history: TrialHistory, server: SessionServer) -> None:
        self._agent, self._limits = plan.agent(agent), plan.trial_limits(agent)
        self._dialect = plan.endpoint_of(self._agent).dialect
        self._history, self._server = history, server
        self._turn = 1
        self._step: Step | None = None
        self._answered = 0
        self._stopped: AgentStopped | None = None
        """How the last request ended, where the model stopped there."""
        self.alike: list[str] = []

    async def start(
        self, session: str, task: str, sample: str, seed: int, *, digest: str, log: ReplyLog, begun: bool
    ) -> Started:
        """As `SessionServer.start`."""
        started = await self._server.start(session, task, sample, seed, digest=digest, log=log, begun=begun)
        self._task, self._at = task, (started.url, session, log)
        return started

    async def turn(self, url: str, session: str, n: int, reply: Act | Stop, log: ReplyLog) -> Step:
        """Answer the session's own turn, unless it is over."""
        if isinstance(self._step, Finished):
            return self._step
        return await self._server.turn(url, session, self._turn, reply, log)

    async def blocked_s(self, url: str, session: str) -> float:
        """As `SessionServer.blocked_s`."""
        return await self._server.blocked_s(url, session)

    async def __call__(
        self, messages: Sequence[Message], tools: Sequence[Tool], metadata: Mapping[str, str], model: Ask, /
    ) -> Answered:
        """The log of the run. Raises FunctionRaised, AgentStopped, AgentRefused where no task of this name plays it."""
        entry = self._agent
        program = Program(
            command=entry.command,
            install=entry.install or "",
            model=entry.model or entry.name,
            dialect=self._dialect,
            session=self._at[1],
        )
        step = await self._next(program.action())
        while isinstance(step, Observed) and step.observation.conversation == REQUESTS:
            before_s = _waited_s()
            reply = await self._reply(Asked.of(step.observation), model)
            told = reply.model_copy(update={"waited_s": _waited_s() - before_s})
            step = await self._next(Action(content=told.model_dump_json()))
        if isinstance(step, Finished):
            return Answered(Action(content=""))
        if step.observation.conversation != ENDED:
            raise AgentRefused(
                f"agents.{entry.name}: task {self._task!r} plays no installed agents: give it `environment: harbor` "
                "with the parameter `network: relay`"
            )
        return Answered(Action(content=self._log(ProgramEnd.of(step.observation))))

    async def _next(self, action: Action) -> Step:
        """What comes after an answer to the session's current turn."""
        self._step = step = await self._server.turn(*self._at[:2], self._turn, Act(action=action), self._at[2])
        self._turn = step.turn if isinstance(step, Observed) else self._turn
        return step

    async def _reply(self, asked: Asked, model: Ask) -> RelayReply:
        """What the program gets for a request. Raises AgentStopped at a limit of the trial."""
        limits, calls = self._limits, self._history.calls
        spent = sum(Usage.of(call).total for call in calls)
        if limits.turns is not None and self._answered >= limits.turns:
            raise AgentStopped(FinishReason.TURN_LIMIT)
        if limits.tokens is not None and spent >= limits.tokens:
            raise AgentStopped(FinishReason.TURN_LIMIT)
        try:
            body = from_json(asked.body)
            body["model"] = self._agent.model or self._agent.name
            if self._dialect == "chat" and body.get("stream"):
                body["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}
            headers = {str(name): value for name, value in asked.headers.items()}
            written = Written.of(Request(PATHS[self._dialect], headers, to_json(body), is_written=True))
        except (ValueError, TypeError):
            return refusal("the request's body is no JSON object, or it came without the header Content-Length")
        try:
            await model(written)
        except AgentStopped as stopped:
            self._stopped = stopped
            return refusal(written.cause)
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            raise FunctionRaised("a request of the program failed") from None  # its own failure says how
        assert written.reply is not None
        self._answered, self._stopped = self._answered + 1, None
        kind = written.reply.headers.get("content-type", "application/json")
        return RelayReply.made(written.reply.status, kind, written.reply.body)

    def _log(self, end: ProgramEnd) -> str:
        """What the program printed, where its run counts. Raises FunctionRaised, or what its last request ended by."""
        if self._stopped is not None:
            raise self._stopped
        if end.late or (end.status == 0 and self._answered):
            return redacted(end.log)
        how = "without an answer of its model" if end.status == 0 else f"with exit code {end.status}"
        asked = f"{end.refused}; " if end.refused and not self._answered else ""
        said = redacted(end.log)[-_SHOWN:].strip() or "it printed nothing"
        raise FunctionRaised(f"{self._agent.harness} ended {how}: {asked}{said}")


def _waited_s() -> float:
    """How long the attempt has waited for what is not timed."""
    limit = TIME_LIMIT.get()
    return 0.0 if limit is None else limit.waited_s
