"""OpenAI Chat Completions on the server's side: parses requests and writes replies."""

import secrets
import time
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import to_json

from agent_server.agents.base import AgentReply, AgentRequest
from agent_server.errors import RequestRefused
from proctor.llm.config import RESERVED
from proctor.llm.dialects.chat import WireToolCalls, tool_call_json
from proctor.llm.wire import Wire
from proctor.types import Message, Tool


def _text(content: object) -> object:
    """The text of `content`, which may be null or text parts. Raises ValueError for other parts."""
    if not isinstance(content, list):
        return "" if content is None else content
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    if len(texts) != len(content) or not all(isinstance(text, str) for text in texts):
        raise ValueError("only text parts are supported")
    return "".join(str(text) for text in texts)


def _system(role: object) -> object:
    return "system" if role == "developer" else role


class ChatMessage(WireToolCalls):
    role: Annotated[Literal["system", "user", "assistant", "tool"], BeforeValidator(_system)]
    content: Annotated[str, BeforeValidator(_text)] = ""
    tool_call_id: str | None = None

    def value(self) -> Message:
        calls = self.calls() if self.role == "assistant" else ()
        return Message(
            role=self.role, content=self.content, tool_calls=calls, tool_call_id=self.tool_call_id, echo=self.echo()
        )


class ChatFunction(Wire):
    name: str
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None


class ChatTool(Wire):
    type: Literal["function"] = "function"
    function: ChatFunction

    def value(self) -> Tool:
        function = self.function
        return Tool(name=function.name, description=function.description or "", parameters=function.parameters or {})


class ChatStreamOptions(Wire):
    include_usage: bool = False


class ChatRequest(Wire):
    """`POST /v1/chat/completions`. All other fields are sampling, which only proxied agents use."""

    model_config = ConfigDict(extra="allow")

    model: str
    """Name of the agent."""
    messages: list[ChatMessage] = Field(min_length=1)
    tools: list[ChatTool] | None = None
    metadata: dict[str, str] | None = None
    """task, sample, conversation, seed, epoch, turn; the built-in agents need some of them."""
    n: Literal[1] | None = None
    stream: bool | None = None
    stream_options: ChatStreamOptions | None = None

    def agent_request(self, client: str = "") -> AgentRequest:
        """The request as agents get it, from this host."""
        return AgentRequest(
            messages=tuple(message.value() for message in self.messages),
            tools=tuple(tool.value() for tool in self.tools or ()),
            metadata=self.metadata or {},
            sampling={name: value for name, value in (self.model_extra or {}).items() if name not in RESERVED},
            client=client,
        )


def parse_request(body: bytes) -> ChatRequest:
    """Parse the body of a request. Raises RequestRefused (400) naming the field."""
    try:
        return ChatRequest.model_validate_json(body)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in problem["loc"]) or None
        raise RequestRefused(400, f"{field or 'body'}: {problem['msg']}", param=field) from None


def completion(agent: str, answer: AgentReply) -> bytes:
    """The reply to a request without `stream`."""
    message: dict[str, object] = {"role": "assistant", "content": answer.action.content, "refusal": None}
    calls = answer.action.tool_calls
    if calls:
        message["content"] = answer.action.content or None
        message["tool_calls"] = [{**tool_call_json(call), **call.echo} for call in calls]
    message |= answer.action.echo
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish_reason()}
    return to_json({**_head(agent, "chat.completion"), "choices": [choice], "usage": answer.usage_json()})


def chunks(agent: str, answer: AgentReply, include_usage: bool) -> Iterator[bytes]:
    """The server-sent events of a streamed reply: role, content, tool calls, finish, usage if asked for, end."""
    head = _head(agent, "chat.completion.chunk")
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}]
    if answer.action.content:
        deltas.append({"content": answer.action.content})
    deltas += [
        {"tool_calls": [{"index": index, **tool_call_json(call)}]}
        for index, call in enumerate(answer.action.tool_calls)
    ]
    for delta in deltas:
        yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": answer.finish_reason()}]})
    if include_usage:
        yield _event({**head, "choices": [], "usage": answer.usage_json()})
    yield b"data: [DONE]\n\n"


def _head(agent: str, kind: str) -> dict[str, object]:
    return {"id": f"chatcmpl-{secrets.token_hex(12)}", "object": kind, "created": int(time.time()), "model": agent}


def _event(data: object) -> bytes:
    return b"data: " + to_json(data) + b"\n\n"
