"""An endpoint of each dialect for tests: it holds requests to the makers' own types and rules, and replies actions."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
from anthropic.types import Message as AnthropicMessage
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat import ChatCompletion
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

from proctor.llm.dialects import DialectName
from proctor.types import Action, ToolCall

REQUESTS: Mapping[DialectName, TypeAdapter[Any]] = {
    "chat": TypeAdapter(CompletionCreateParamsNonStreaming),
    "responses": TypeAdapter(ResponseCreateParamsNonStreaming),
    "messages": TypeAdapter(MessageCreateParamsNonStreaming),
}
REPLIES: Mapping[DialectName, Any] = {"chat": ChatCompletion, "responses": Response, "messages": AnthropicMessage}
UNTYPED = {("messages", "temperature"), ("messages", "top_k")}
"""What the maker's types have lost, and local servers still take."""
PATHS: dict[str, DialectName] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return value if isinstance(value, str | int | float | None) else [_plain(each) for each in value]


def assert_typed(dialect: DialectName, body: dict[str, Any]) -> None:
    """Fails where the makers' types refuse a request, or don't know something in it."""
    assert _plain(REQUESTS[dialect].validate_python(body)) == body


class DialectEndpoint:
    """Answers each request with `next`, thinking where it may; `bodies` are the requests."""

    def __init__(self) -> None:
        self.next = Action(content="")
        self.stop: str | None = None
        """The reason of the next reply's end; None: as the action ends."""
        self.thinks = True
        self.bodies: list[dict[str, Any]] = []
        self.requests: list[httpx.Request] = []
        self._sent: dict[str, Any] = {}
        """id of a call, or text -> the thought that it came with"""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        dialect = PATHS[request.url.path]
        body = json.loads(request.content)
        self.requests.append(request)
        self.bodies.append(body)
        typed = {name: value for name, value in body.items() if (dialect, name) not in UNTYPED}
        if dialect == "chat":  # Gemini demands the name of the function beside its result, and the types lack it
            told = [
                {k: v for k, v in each.items() if (each["role"], k) != ("tool", "name")} for each in body["messages"]
            ]
            typed["messages"] = told
        assert_typed(dialect, typed)
        reply = getattr(self, f"_{dialect}")(body)
        REPLIES[dialect].model_validate(reply)
        return httpx.Response(200, json=reply)

    def _id(self, kind: str) -> str:
        return f"{kind}_{len(self.bodies)}"

    def _calls(self, kind: str) -> list[tuple[str, ToolCall]]:
        return [(f"{self._id(kind)}_{n}", call) for n, call in enumerate(self.next.tool_calls)]

    def _chat(self, body: dict[str, Any]) -> dict[str, Any]:
        calls = [
            {"id": id_, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for id_, call in self._calls("call")
        ]
        message = {"role": "assistant", "content": self.next.content, **({"tool_calls": calls} if calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        usage = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}
        head = {"id": self._id("chatcmpl"), "object": "chat.completion", "created": 1, "model": body["model"]}
        return {**head, "choices": [choice], "usage": usage}

    def _responses(self, body: dict[str, Any]) -> dict[str, Any]:
        assert body["store"] is False
        assert body["include"] == ["reasoning.encrypted_content"]
        self._hold_items(body["input"])
        output: list[dict[str, Any]] = []
        if self.thinks:
            summary = [{"type": "summary_text", "text": "I think"}]
            thought = {"id": self._id("rs"), "type": "reasoning", "summary": summary, "encrypted_content": "z" * 40}
            output.append(thought)
        if self.next.content:
            text = {"type": "output_text", "text": self.next.content, "annotations": [], "logprobs": []}
            said = {"id": self._id("msg"), "type": "message", "role": "assistant", "status": "completed"}
            output.append({**said, "content": [text]})
        for id_, call in self._calls("call"):
            told = {"name": call.name, "arguments": call.arguments, "status": "completed"}
            output.append({"id": f"fc_{id_}", "type": "function_call", "call_id": id_, **told})
        if self.thinks and len(output) > 1:
            self._sent[output[1]["id"]] = output[0]
        cached, thought_of = {"cached_tokens": 60, "cache_write_tokens": 0}, {"reasoning_tokens": 3}
        usage = {"input_tokens": 100, "input_tokens_details": cached, "output_tokens": 7, "total_tokens": 107}
        return {
            **{"id": self._id("resp"), "object": "response", "created_at": 1, "model": body["model"]},
            **{"status": "incomplete" if self.stop else "completed", "parallel_tool_calls": True},
            **{"tool_choice": "auto", "tools": [], "output": output, "error": None, "instructions": None},
            **{"metadata": {}, "temperature": 1.0, "top_p": 1.0},
            "incomplete_details": {"reason": self.stop} if self.stop else None,
            "usage": {**usage, "output_tokens_details": thought_of},
        }

    def _hold_items(self, items: Sequence[dict[str, Any]]) -> None:
        """OpenAI's rules: a call has its output behind it, a thought stands before what it led to, and is whole."""
        waiting: set[str] = set()
        for before, item in zip([{}, *items], items, strict=False):
            if (thought := self._sent.get(item.get("id", ""))) is not None:
                assert before == thought, f"{item} lacks its thought"
            if item.get("type") == "function_call":
                waiting.add(item["call_id"])
                assert isinstance(json.loads(item["arguments"]), dict)
            elif item.get("type") == "function_call_output":
                waiting.remove(item["call_id"])
            elif item.get("role") == "user":
                assert not waiting
            if item.get("role") == "assistant":
                assert item["content"] != ""
                assert item["type"] == "message", "llama.cpp refuses one without a type"
            assert before.get("type") != "reasoning" or item.get("role", "assistant") == "assistant"
            assert before.get("type") != "reasoning" or item.get("type") != "function_call_output"
        assert items
        assert items[-1].get("type") != "reasoning"
        assert not waiting

    def _messages(self, body: dict[str, Any]) -> dict[str, Any]:
        assert self.requests[-1].headers["anthropic-version"] == "2023-06-01"
        self._hold_turns(body)
        content: list[dict[str, Any]] = []
        if self.thinks:
            content.append({"type": "thinking", "thinking": "I think", "signature": self._id("sig")})
        if self.next.content:
            content.append({"type": "text", "text": self.next.content, "citations": None})
        for id_, call in self._calls("toolu"):
            given = json.loads(call.arguments)
            content.append({"type": "tool_use", "id": id_, "name": call.name, "input": given})
            self._sent[id_] = content[0] if self.thinks else None
        usage = {"input_tokens": 30, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10}
        return {
            **{"id": self._id("msg"), "type": "message", "role": "assistant", "model": body["model"]},
            **{"content": content, "stop_sequence": None, "usage": {**usage, "output_tokens": 7}},
            "stop_reason": self.stop or ("tool_use" if self.next.tool_calls else "end_turn"),
        }

    def _hold_turns(self, body: dict[str, Any]) -> None:
        """Anthropic's rules: turns alternate, all results of calls come first in the next, no text is blank."""
        turns = body["messages"]
        assert [turn["role"] for turn in turns] == (["user", "assistant"] * len(turns))[: len(turns)]
        waiting: list[str] = []
        for turn in turns:
            blocks = turn["content"]
            assert blocks
            assert all(block["text"].strip() for block in blocks if block["type"] == "text")
            results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
            assert sorted(results) == sorted(waiting)
            assert all(block["type"] == "tool_result" for block in blocks[: len(results)])
            waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
            for id_ in waiting:
                assert self._sent.get(id_) in (None, blocks[0]), f"{id_} lacks its thought"
            assert turn["role"] == "user" or blocks[-1]["type"] != "thinking"
        assert not waiting
        assert json.dumps(body).count('"cache_control"') <= 4
