"""What an agent server serves, where, and to whom."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, model_validator

from proctor.config.task import NAME, TaskDefinition
from proctor.config.yaml import FileError
from proctor.environment import PolicyKind
from proctor.http.server import is_loopback
from proctor.http.tls import NO_TLS, ServerTls
from proctor.llm import ChatConfig, secret
from proctor.types import Value


class _Agent(Value):
    name: str = Field(pattern=NAME)
    """What requests give as `model`."""
    concurrency: int | None = Field(default=None, ge=1)
    """Requests answered at once; one more gets 429."""
    context_chars: int | None = Field(default=None, ge=1)
    """Characters of transcript; one more gets `context_length_exceeded`."""
    latency_s: float = Field(default=0.0, ge=0)
    """Wait before each answer, for load tests."""


class PolicyConfig(_Agent):
    """A policy of the tasks' own environments: their solution, a weak heuristic, or chance."""

    kind: PolicyKind


class RecordedConfig(_Agent):
    """The actions of an earlier run."""

    kind: Literal["recorded"]
    path: Path
    """JSONL lines with task, sample, epoch, turn and action."""
    agent: str | None = None
    """Whose turns, where the file holds several agents'."""


class HumanConfig(_Agent):
    """The person at the server's terminal."""

    kind: Literal["human"]


class ProxiedConfig(_Agent):
    """A model of another endpoint, within limits of its own."""

    kind: Literal["proxied"]
    chat: ChatConfig
    max_in_flight: int | None = Field(default=None, ge=1)
    """Requests at the endpoint at once; further ones queue."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    """Further ones queue, for 30 s at most; then they get 429."""


AgentConfig = Annotated[PolicyConfig | RecordedConfig | HumanConfig | ProxiedConfig, Field(discriminator="kind")]


class AgentServerConfig(Value):
    """An agent server."""

    host: str = "127.0.0.1"
    """Any address but a loopback one needs a token."""
    port: int = Field(default=0, ge=0, le=65535)
    """0 takes a free one."""
    tasks: tuple[TaskDefinition, ...] = ()
    """What the agents reference, naive and random know to play."""
    agents: tuple[AgentConfig, ...] = Field(min_length=1)
    token_env: str = Field(default="PROCTOR_TOKEN", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Name of the variable with the bearer token that every request must show; unset on loopback, none is asked for."""
    max_request_bytes: int = Field(default=16 << 20, ge=1024)
    tls: ServerTls = NO_TLS

    @model_validator(mode="after")
    def _consistent(self) -> "AgentServerConfig":
        names = [agent.name for agent in self.agents]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"agents: the name {name!r} stands twice; give each agent its own name")
        if sum(agent.kind == "human" for agent in self.agents) > 1:
            raise ValueError("agents: there is one terminal; keep one agent of kind human")
        for agent in self.agents:
            if isinstance(agent, PolicyConfig) and not self.tasks:
                raise ValueError(f"tasks: agent {agent.name!r} of kind {agent.kind} needs some; name a task file")
        return self

    def relative_to(self, folder: Path) -> "AgentServerConfig":
        """The same configuration with all paths taken relative to a folder, normally its file's own."""
        tasks = tuple(task.relative_to(folder) for task in self.tasks)
        agents = tuple(
            agent.model_copy(update={"path": folder / agent.path}) if isinstance(agent, RecordedConfig) else agent
            for agent in self.agents
        )
        return self.model_copy(update={"tasks": tasks, "agents": agents, "tls": self.tls.relative_to(folder)})

    def token(self) -> SecretStr | None:
        """The token that requests must show. Raises FileError where one is needed and missing, ValueError for none."""
        token = secret(self.token_env)
        if token is None and not is_loopback(self.host):
            raise FileError(
                f"host: {self.host} can be reached by others, so a token is needed; "
                f"set the variable {self.token_env} to a long random text, or bind 127.0.0.1"
            )
        return token
