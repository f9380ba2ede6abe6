"""The configuration of an agent server: its agents, address and token."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue, model_validator

from proctor.config.problems import FieldError
from proctor.config.task import TaskDefinition
from proctor.config.tokens import AccessTokens
from proctor.config.wording import NAME, VARIABLE
from proctor.config.yaml import FileError
from proctor.environment import PolicyKind
from proctor.http import is_loopback
from proctor.http.auth import Access
from proctor.http.tls import NO_TLS, ServerTls
from proctor.llm.config import ChatConfig
from proctor.types import Value


def _asks_once(chat: ChatConfig) -> ChatConfig:
    for name in ("max_retry_s", "max_tries", "patience_s"):
        if name in chat.model_fields_set:
            raise FieldError((name,), "an agent server asks once; set it at the endpoint in the plan")
    return chat


Chat = Annotated[ChatConfig, AfterValidator(_asks_once)]


class _Agent(Value):
    name: str = Field(pattern=NAME)
    """The `model` of requests for this agent."""
    concurrency: int | None = Field(default=None, ge=1)
    """Requests answered at once; one more is rejected with 429."""
    context_chars: int | None = Field(default=None, ge=1)
    """Characters of transcript; one more is rejected with `context_length_exceeded`."""
    latency_s: float = Field(default=0.0, ge=0)
    """Seconds to wait before each answer, for load tests."""


class PolicyConfig(_Agent):
    """A policy of the tasks' environments: reference, naive or random."""

    kind: PolicyKind


class RecordedConfig(_Agent):
    """Repeats the actions of an earlier run."""

    kind: Literal["recorded"]
    path: Path
    """JSONL lines with task, sample, epoch, turn and action."""
    agent: str | None = None
    """The agent whose turns to repeat, where the file holds those of several."""


class FunctionConfig(_Agent):
    """A function or a class of your own; a plain one is called in as many threads as its concurrency says."""

    kind: Literal["function"]
    function: str = Field(pattern=":")
    """`./agent.py:answer`, or `module:answer`."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """What a function gets by name with each call, a class when it is made."""
    chat: Chat | None = None
    """The model that it gets as `model`; each call is one request, and a turn that is asked again is paid again."""


class ProxiedConfig(_Agent):
    """A model at another endpoint, to which each request is sent once."""

    kind: Literal["proxied"]
    chat: Chat


AgentConfig = Annotated[PolicyConfig | RecordedConfig | FunctionConfig | ProxiedConfig, Field(discriminator="kind")]


def _relative(agent: AgentConfig, folder: Path) -> AgentConfig:
    if isinstance(agent, RecordedConfig):
        return agent.model_copy(update={"path": folder / agent.path})
    if isinstance(agent, FunctionConfig):
        from proctor.own_files.loading import admit  # servers without functions do without

        agent = agent.model_copy(update={"function": admit(agent.function, folder)})
    if isinstance(agent, FunctionConfig | ProxiedConfig) and agent.chat is not None:
        return agent.model_copy(update={"chat": agent.chat.relative_to(folder)})
    return agent


class AgentServerConfig(Value):
    """The settings of an agent server."""

    host: str = "127.0.0.1"
    """Any address but a loopback one needs a token."""
    port: int = Field(default=0, ge=0, le=65535)
    """0 selects a free port."""
    tasks: tuple[TaskDefinition, ...] = ()
    """The tasks that policy agents (reference, naive, random) can play."""
    agents: tuple[AgentConfig, ...] = Field(min_length=1)
    token_env: str = Field(default="PROCTOR_TOKEN", pattern=VARIABLE)
    """Name of the variable with the bearer token of all requests; on loopback it may be unset, then none is needed."""
    max_request_bytes: int = Field(default=16 << 20, ge=1024)
    tls: ServerTls = NO_TLS

    @model_validator(mode="after")
    def _consistent(self) -> "AgentServerConfig":
        names = [agent.name for agent in self.agents]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"agents: the name {name!r} is used twice; give each agent its own name")
        for agent in self.agents:
            if isinstance(agent, PolicyConfig) and not self.tasks:
                raise ValueError(f"tasks: agent {agent.name!r} of kind {agent.kind} needs some; name a task file")
        return self

    def relative_to(self, folder: Path) -> "AgentServerConfig":
        """A copy with all paths resolved against a folder, normally that of the file."""
        tasks = tuple(task.relative_to(folder) for task in self.tasks)
        agents = tuple(_relative(agent, folder) for agent in self.agents)
        return self.model_copy(update={"tasks": tasks, "agents": agents, "tls": self.tls.relative_to(folder)})

    def access(self) -> Access:
        """The tokens of requests. Raises FileError where a needed one is missing, ValueError where one is invalid."""
        tokens, metrics = AccessTokens.of(self.token_env), AccessTokens.of("PROCTOR_METRICS_TOKEN")
        if not (tokens or is_loopback(self.host)):
            raise FileError(
                f"host: {self.host} can be reached by others, so a token is needed; "
                f"set the variable {self.token_env} to a long random text, or bind 127.0.0.1"
            )
        return Access(tokens, metrics=metrics)
