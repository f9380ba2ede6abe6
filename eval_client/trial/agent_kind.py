"""Agents that own their loop: packages add kinds of them under entry points of the group `proctor.agent_kinds`."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from eval_client.core.spend import Spend
from eval_client.plan.entries import agent_kind
from eval_client.plan.plan import Plan
from eval_client.store.records import Trial
from eval_client.trial.attempt import AttemptEnd
from eval_client.trial.episode import Model, SessionServer, TrialHistory
from proctor.agent_function import Answered, Ask
from proctor.config.task import TaskDefinition
from proctor.environment import Agent
from proctor.types import Message, Observation, Tool
from task_server.client.client import Call

if TYPE_CHECKING:
    from rich.console import Console


class LoopModel(Model, Protocol):
    """Such an agent in the place of a model: what it does next is the answer to an observation."""

    def observe(self, observation: Observation) -> None:
        """Take the observation that the next answer is for."""


class LoopAgents(ABC):
    """The agents of one kind of a run, on this client."""

    @abstractmethod
    async def play(
        self,
        trial: Trial,
        spend: Spend,
        calls: dict[int, Call],
        attempted: Callable[[LoopModel], Awaitable[AttemptEnd]],
    ) -> AttemptEnd:
        """Make an attempt with an agent that is started for it, and ends with it."""


class AgentKind(Protocol):
    """A kind of agents that own their loop."""

    def check(self, command: Sequence[str]) -> None:
        """Raises FieldError where a plan's `command` can't be run, or could not reach its episode."""

    def started(self, plan: Plan, folder: Path) -> AbstractAsyncContextManager[LoopAgents]:
        """The agents of this kind of a plan; `folder` is the run's."""

    def shown(self, task: str, console: "Console") -> AbstractAsyncContextManager[Agent]:
        """An agent that someone else starts, for one episode of a task, which is shown on a console."""


class ModelCaller(Protocol):
    """What is around an agent's model: a function, or a program in a task's container."""

    alike: list[str]
    """What its last calls raised, all the same."""

    async def __call__(
        self, messages: Sequence[Message], tools: Sequence[Tool], metadata: Mapping[str, str], model: Ask, /
    ) -> Answered:
        """The answer to an observation. Raises AgentStopped and FunctionRaised."""


class InstalledAgent(SessionServer, ModelCaller, Protocol):
    """A program in a container, for one attempt, to which all turns of its session are one: their answer is its log."""


class InstalledKind(Protocol):
    """Agents that run in a task's container, and ask a model from there."""

    def check(self, command: Sequence[str]) -> None:
        """Raises FieldError where a plan's `command` can't be run."""

    def check_task(self, task: TaskDefinition) -> None:
        """Raises FieldError where such agents can't play a plan's task, or would reach more than their endpoint."""

    def begun(self, plan: Plan, agent: str, history: TrialHistory, server: SessionServer) -> InstalledAgent:
        """The agent in one attempt; it stands between the attempt and the task server."""


@contextlib.asynccontextmanager
async def loop_agents(plan: Plan, folder: Path) -> AsyncIterator[LoopAgents | None]:
    """The agents of a plan that own their loop; None where it has none."""
    if not any(agent.is_command for agent in plan.agents):
        yield None
        return
    loaded: AgentKind = agent_kind("command")
    async with loaded.started(plan, folder) as agents:
        yield agents
