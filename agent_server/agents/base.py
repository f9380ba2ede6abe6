"""What the server asks of an agent it serves."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from proctor.llm import Usage
from proctor.types import Action, Message, Tool


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """A request for an answer to a whole transcript."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    sampling: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AgentReply:
    """An action and what it cost: nothing, unless a model was asked."""

    action: Action
    usage: Usage = field(default_factory=Usage)
    stop: str | None = None

    def finish_reason(self) -> str:
        """Why the answer ends, in OpenAI's terms."""
        return self.stop or ("tool_calls" if self.action.tool_calls else "stop")

    def usage_json(self) -> dict[str, int]:
        """The cost in OpenAI's terms."""
        prompt, completion = self.usage.prompt_tokens, self.usage.completion_tokens
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


class ServedAgent(ABC):
    """An agent without memory: everything it needs is in the request."""

    @abstractmethod
    async def answer(self, ask: AgentRequest) -> AgentReply:
        """The answer. Raises Refused, ContextLimitExceeded or AgentUnavailable."""
