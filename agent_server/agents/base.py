"""The interface of an agent that the server serves, with its requests and replies."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from proctor.llm.wire import Usage
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
    """An action and its usage, which is 0 unless a model was called."""

    action: Action
    usage: Usage = field(default_factory=Usage)
    stop: str | None = None

    def finish_reason(self) -> str:
        """Why the answer ends, in OpenAI's terms."""
        return self.stop or ("tool_calls" if self.action.tool_calls else "stop")

    def usage_json(self) -> dict[str, JsonValue]:
        """The usage in OpenAI's terms; a reply without a model's tokens costs nothing, and says so."""
        prompt, completion = self.usage.prompt_tokens, self.usage.completion_tokens
        free: dict[str, JsonValue] = {} if prompt + completion else {"cost": 0}
        return free | {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": self.usage.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": self.usage.reasoning_tokens},
        }


class ServedAgent(ABC):
    """A stateless agent: everything it needs is in the request."""

    @abstractmethod
    async def answer(self, request: AgentRequest) -> AgentReply:
        """The answer. Raises RequestRefused, ContextLimitExceeded or AgentUnavailable."""
