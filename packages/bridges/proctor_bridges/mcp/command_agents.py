"""Agents of `kind: command`: a coding agent is started for each attempt, and plays the episode by its calls."""

import asyncio
import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval_client.core.spend import Spend
from eval_client.endpoints.limited_model import BudgetExhausted
from eval_client.plan.entries import AgentEntry
from eval_client.plan.plan import Plan
from eval_client.store.records import Trial
from eval_client.trial.agent_kind import LoopAgents, LoopModel
from eval_client.trial.attempt import AttemptEnd
from proctor.environment import AgentRefused, AgentStopped, AgentUnavailable
from proctor.llm.model import Completion
from proctor.types import Action, FinishReason, Message, Observation, Tool, Usage
from proctor_bridges.command_words import filled
from proctor_bridges.mcp.command import MAX_PROMPT_BYTES, CommandProcess, mcp_config, prompt
from proctor_bridges.mcp.episode import CalledEpisode
from proctor_bridges.mcp.server import McpEpisodes, mcp_server
from task_server.client.client import Call

GRACE_S = 5.0
"""A command may end by itself for so long after its episode is over."""
_NEVER = (errno.ENOENT, errno.EACCES, errno.ENOEXEC)
"""Of a program that can't be started at any time."""


@dataclass(frozen=True)
class CommandAgents(LoopAgents):
    """What all commands of a client share."""

    episodes: McpEpisodes
    logs: Path
    agents: Mapping[str, AgentEntry]
    """The agents of `kind: command`, by name."""

    async def play(
        self,
        trial: Trial,
        spend: Spend,
        calls: dict[int, Call],
        attempted: Callable[[LoopModel], Awaitable[AttemptEnd]],
    ) -> AttemptEnd:
        """Make an attempt with a command as its model: it starts with the first observation, and ends with the attempt.

        `detail.agent_exit` of the finish is the exit code, where the command ended by itself.
        """
        model = CommandModel(self, trial, spend, calls)
        end: AttemptEnd | None = None
        scored = False
        try:
            end = await attempted(model)
            scored = end.fault() is None
        finally:
            try:
                await model.close(GRACE_S if scored else 0.0)
            except asyncio.CancelledError:
                if not scored:
                    raise  # else the score is kept, though the run is abandoned
        return model.noted(end)


@contextlib.asynccontextmanager
async def command_agents(plan: Plan, folder: Path) -> AsyncIterator[CommandAgents]:
    """The commands of a plan, with the MCP server that they play by."""
    agents = {agent.name: agent for agent in plan.agents if agent.is_command}
    logs = folder / "logs" / "commands"
    logs.mkdir(parents=True, exist_ok=True)
    async with mcp_server() as episodes:
        yield CommandAgents(episodes, logs, agents)


class CommandModel:
    """The command of an attempt in the place of a model: its next call is the answer to the observation."""

    def __init__(self, shared: CommandAgents, trial: Trial, spend: Spend, calls: dict[int, Call]) -> None:
        self._shared, self._trial, self._agent = shared, trial, shared.agents[trial.agent]
        self._spend, self._calls = spend, calls
        self._episode = CalledEpisode()
        self._observation: Observation | None = None
        self._process: CommandProcess | None = None
        self._folder: Path | None = None

    def observe(self, observation: Observation) -> None:
        """Take the observation that the next answer is for."""
        self._observation = observation

    async def __call__(
        self, messages: Sequence[Message], tools: Sequence[Tool], metadata: Mapping[str, str]
    ) -> Completion:
        """The next call. Raises AgentStopped, AgentUnavailable, AgentRefused, BudgetExhausted."""
        assert self._observation is not None
        self._episode.show(self._observation, tools)
        if self._process is None:
            if exhausted := self._spend.exhausted():
                raise BudgetExhausted(exhausted)
            self._process = await self._start()
        call = Call(self._agent.name, time.monotonic())
        self._calls[id(call)] = call
        try:
            action = await self._next(self._process)
        finally:
            del self._calls[id(call)]
        self._spend.unmetered.add(self._agent.name)
        return Completion(
            action=action,
            usage=Usage(),
            metered=False,
            model=self._agent.model or "",
            stop=None,
            seconds=time.monotonic() - call.since,
            tries=1,
        )

    async def _start(self) -> CommandProcess:
        url = self._shared.episodes.add(self._trial.task, self._episode)
        text = prompt((await self._episode.offer()).instructions).replace("\0", "?")  # no word holds a NUL
        try:
            return self._begun(url, text)
        except (OSError, ValueError) as error:
            raise AgentUnavailable(f"agents.{self._agent.name}.command: {error}") from error

    def _begun(self, url: str, text: str) -> CommandProcess:
        self._folder = folder = Path(tempfile.mkdtemp(prefix="proctor-agent-"))
        config = folder / "mcp.json"
        config.write_text(mcp_config(url), encoding="utf-8")
        if len(text.encode()) > MAX_PROMPT_BYTES:
            (folder / "prompt.md").write_text(text, encoding="utf-8")
            text = "Do what the file prompt.md in this folder says."
        words = filled(self._agent.command, {"prompt": text, "mcp_config": str(config), "url": url})
        ours = {name: value for name, value in os.environ.items() if not name.startswith("PROCTOR_")}
        log = self._shared.logs / f"trial-{self._trial.id}-attempt-{self._trial.attempts}.log"
        try:
            return CommandProcess(words, folder, ours, log)
        except OSError as error:
            if error.errno in _NEVER:
                raise AgentRefused(f"agents.{self._agent.name}.command: {words[0]}: {error}") from error
            raise

    async def _next(self, process: CommandProcess) -> Action:
        """The next call; where the command has ended and left none, why there is none."""
        calling = asyncio.create_task(self._episode.next_action())
        ending = asyncio.create_task(process.ended())
        try:
            await asyncio.wait((calling, ending), return_when=asyncio.FIRST_COMPLETED)
            if calling.done():
                return calling.result()
        finally:
            calling.cancel()
            ending.cancel()
        if process.exit_code == 0 and self._episode.reached:
            raise AgentStopped(FinishReason.TURN_LIMIT)
        said = await process.last_words() or "it printed nothing"
        if process.exit_code == 0:
            raise AgentUnavailable(
                f"{self._agent.harness} ended without having connected to the episode; check its log-in and that it "
                f"loads the MCP server: {said}"
            )
        raise AgentUnavailable(
            f"{self._agent.harness} ended before its episode was over, with exit code {process.exit_code}: {said}"
        )

    def noted(self, end: AttemptEnd) -> AttemptEnd:
        """The end of the attempt, with the command's exit code where it ended by itself."""
        code = self._process.exit_code if self._process is not None else None
        if end.finish is None or code is None:
            return end
        detail = {**end.finish.detail, "agent_exit": code}
        return end.model_copy(update={"finish": end.finish.model_copy(update={"detail": detail})})

    async def close(self, grace_s: float) -> None:
        """Answer what the command still calls, end it, and remove its folder."""
        self._episode.end()
        try:
            if self._process is not None:
                await self._process.end(grace_s)
        finally:
            if self._folder is not None:
                await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
