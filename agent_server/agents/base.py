"""The interface of an agent that the server serves, with its requests and replies."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from agent_server.errors import RequestRefused
from proctor.llm.passed_on import NEEDS_METADATA
from proctor.types import Action, Message, Tool, Usage


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """A request for an answer to a whole transcript."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    sampling: Mapping[str, JsonValue] = field(default_factory=dict)
    client: str = ""
    """The host that asks."""

    def required(self, *names: str) -> tuple[str, ...]:
        """The metadata under these names. Raises RequestRefused (400) naming the missing ones and the fix."""
        missing = [name for name in names if name not in self.metadata]
        if missing:
            raise RequestRefused(
                400,
                f"metadata: this agent needs {', '.join(names)}, and {', '.join(missing)} is missing; "
                "set `metadata: true` at the agent in the plan, or send `metadata` with the request",
                code=NEEDS_METADATA,
                param="metadata",
            )
        return tuple(self.metadata[name] for name in names)

    def number(self, name: str, default: int | None = None) -> int:
        """The whole number in the metadata, whose values are texts in OpenAI's API. Raises RequestRefused (400)."""
        text = self.metadata.get(name, str(default)) if default is not None else self.required(name)[0]
        try:
            return int(text)
        except ValueError:
            raise RequestRefused(400, f"metadata.{name}: {text!r} is not a whole number", param="metadata") from None


@dataclass(frozen=True, slots=True)
class AgentReply:
    """An action and its usage, which is 0 unless a model was called, and None where that told none."""

    action: Action
    usage: Usage | None = field(default_factory=Usage)
    stop: str | None = None

    def finish_reason(self) -> str:
        """Why the answer ends, in OpenAI's terms."""
        return self.stop or ("tool_calls" if self.action.tool_calls else "stop")

    def usage_json(self) -> dict[str, JsonValue] | None:
        """The usage in OpenAI's terms; a reply without a model's tokens costs nothing, and says so.

        An empty answer without any tells none: an empty one for 0 tokens is how providers fail.
        """
        used = self.usage
        if used is None:
            return None
        prompt, completion = used.prompt_tokens, used.completion_tokens
        if not (prompt + completion or self.action.content or self.action.tool_calls):
            return None
        is_billed = used.billed_tokens or used.billed_money or not prompt + completion
        cache: JsonValue = {"cached_tokens": used.cached_tokens, "cache_write_tokens": used.cache_write_tokens}
        priced: dict[str, JsonValue] = {"cost": used.billed_money} if is_billed else {}
        return priced | {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": cache,
            "completion_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
        }


class ServedAgent(ABC):
    """An agent that has everything it needs in the request, unless it is stateful."""

    wrapped: "ServedAgent | None" = None
    """The one that this one wraps."""

    @abstractmethod
    async def answer(self, request: AgentRequest) -> AgentReply:
        """The answer. Raises RequestRefused, ContextLimitExceeded or InputRefused."""

    async def failing(self) -> RequestRefused | None:
        """How the endpoint behind the agent fails at the moment, if there is one."""
        return None if self.wrapped is None else await self.wrapped.failing()

    def shown(self) -> Mapping[str, JsonValue]:
        """What the list of models tells of it beside its name."""
        return {} if self.wrapped is None else self.wrapped.shown()

    async def end(self, session: str) -> bool:
        """Forget the conversations of a session; whether it knew any."""
        return self.wrapped is not None and await self.wrapped.end(session)
