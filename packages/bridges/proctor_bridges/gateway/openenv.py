"""OpenEnv's values: frames, actions, observations and MCP calls, translated. Nothing here does I/O."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import to_json

from proctor.llm.dialects.chat import messages_json, tool_json
from proctor.types import Action, Finish, Tool, ToolCall
from proctor_bridges.gateway.foreign_session import ForeignSession

Object: TypeAlias = dict[str, JsonValue]
MOST_CALLS = 32
"""Tool calls of one action."""
MOST_ERRORS = 10
"""Errors of one frame that are told."""
MOST_SHOWN = 200
"""Bytes of an input that are told with its error."""
RESET_FIRST = "there is no episode; send a `reset` frame first"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


FrameType = Literal["reset", "step", "state", "mcp", "close"]


class ClientFrame(_Strict):
    """A frame of a client."""

    type: FrameType
    data: dict[str, JsonValue] = Field(default_factory=dict)


class EnvReset(BaseModel):
    """Which sample an episode is of; fields that other environments know are passed over."""

    sample: str | None = None
    index: int | None = None
    split: str | None = None
    seed: Annotated[int, Field(ge=0)] | None = None
    episode_id: Annotated[str, Field(max_length=255)] | None = None


def _flat(call: object) -> object:
    """A tool call as Chat Completions writes it, without the object `function` around its name."""
    if isinstance(call, dict) and isinstance(call.get("function"), dict):
        return {**call["function"], "id": call.get("id", "")}
    return call


class EnvCall(_Strict):
    """A tool call of an action."""

    id: str = ""
    name: str
    arguments: dict[str, JsonValue] | str = ""

    def text(self) -> str:
        """The arguments as JSON."""
        return self.arguments if isinstance(self.arguments, str) else _json(self.arguments)


class EnvAction(_Strict):
    """What an agent does: its reply's text, and in a tools task its calls."""

    content: str = ""
    tool_calls: list[Annotated[EnvCall, BeforeValidator(_flat)]] = Field(default_factory=list, max_length=MOST_CALLS)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


class RpcRequest(_Strict):
    """A JSON-RPC request."""

    jsonrpc: Literal["2.0"]
    method: str
    params: dict[str, JsonValue] = Field(default_factory=dict)
    id: str | int | None = None


class RpcError(Exception):
    """A JSON-RPC request fails with this code and message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


NO_PARAMS, NO_METHOD, INTERNAL, INVALID_REQUEST = -32602, -32601, -32603, -32600


def read_action(data: Mapping[str, JsonValue]) -> Action:
    """The action of a step. An object with neither `content` nor `tool_calls` is the agent's JSON reply itself.

    Raises ValidationError.
    """
    if "content" not in data and "tool_calls" not in data:
        return Action(content=_json({name: value for name, value in data.items() if name != "metadata"}))
    read = EnvAction.model_validate(data)
    return calling(read.content, read.tool_calls)


def calling(content: str, calls: Sequence[EnvCall]) -> Action:
    """An action with these calls."""
    made = (ToolCall(id=call.id, name=call.name, arguments=call.text()) for call in calls)
    return Action(content=content, tool_calls=tuple(made))


def complaints(error: ValidationError) -> list[dict[str, object]]:
    """The first errors as OpenEnv's servers send them, without what is long."""
    return [
        {
            **each,
            "loc": tuple(part[:MOST_SHOWN] if isinstance(part, str) else part for part in each["loc"]),
            "input": each["input"] if len(to_json(each["input"])) <= MOST_SHOWN else None,
        }
        for each in error.errors(include_context=False)[:MOST_ERRORS]
    ]


def chosen(reset: EnvReset, task: str, samples: Sequence[str], turn: int) -> str:
    """The sample of an episode: by id, by index, by seed, else the one whose turn it is. Raises ValueError."""
    if reset.split not in (None, task):
        raise ValueError(f"split: there is only {task!r}")
    if reset.sample is not None:
        return reset.sample
    if not samples:
        raise ValueError(f"task {task!r} has no samples")
    if reset.index is None:
        return samples[(turn if reset.seed is None else reset.seed) % len(samples)]
    if not 0 <= reset.index < len(samples):
        raise ValueError(f"index: the task has samples 0 to {len(samples) - 1}")
    return samples[reset.index]


def result(session: ForeignSession, *, again: bool = False) -> dict[str, object]:
    """The answer to a reset or a step. `again`: the episode was over before, and its reward was given."""
    state = session.state
    finish = state if isinstance(state, Finish) else None
    shown: dict[str, object] = {"messages": [], "text": "", "tools": [], "conversation": "main", "fresh": False}
    if not isinstance(state, Finish):
        shown |= {
            "messages": messages_json(state.messages),
            "text": state.messages[-1].content if state.messages else "",
            "tools": [tool_json(tool) for tool in state.tools],
            "conversation": state.conversation,
            "fresh": state.fresh,
        }
    shown |= {"turn": session.turn, "sample": session.sample, "finish": finish and _finish(finish)}
    return {
        "observation": shown,
        "reward": None if finish is None or again else finish.score,
        "done": finish is not None,
    }


def state(session: ForeignSession | None, task: str, episode_id: str | None) -> dict[str, object]:
    """The state of an episode, or of none."""
    score = session.state.score if session is not None and isinstance(session.state, Finish) else None
    return {
        "episode_id": episode_id,
        "step_count": session.turn if session is not None else 0,
        "task": task,
        "sample": session.sample if session is not None else None,
        "score": score,
    }


def cause(finish: Finish) -> str:
    """Why a session ended as a fault."""
    return f"the session ended without a score: {finish.detail.get('cause', finish.reason.value)}"


def listed(tools: Sequence[Tool]) -> dict[str, object]:
    """The result of `tools/list`."""
    return {
        "tools": [
            {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters} for tool in tools
        ]
    }


def called(session: ForeignSession) -> dict[str, object]:
    """The result of `tools/call`: the messages that answer the call, and the episode's end."""
    state = session.state
    texts = ["The episode is over."] if isinstance(state, Finish) else [each.content for each in state.messages]
    shown = result(session)
    return {
        "content": [{"type": "text", "text": text} for text in texts],
        "structuredContent": {"reward": shown["reward"], "done": shown["done"]},
        "isError": False,
        "data": "\n".join(texts),
    }


def schemas() -> dict[str, object]:
    """The JSON Schemas of a task; an action may also be any other object, which is then the reply."""
    fields: dict[str, object] = {
        "messages": {"type": "array", "items": {"type": "object"}, "description": "new ones, as in Chat Completions"},
        "text": {"type": "string", "description": "the last message's content"},
        "tools": {"type": "array", "items": {"type": "object"}, "description": "as in Chat Completions"},
        "conversation": {"type": "string"},
        "fresh": {"type": "boolean", "description": "whether the conversation's history is to be dropped"},
        "turn": {"type": "integer", "description": "how many actions were taken"},
        "sample": {"type": "string"},
        "finish": {"type": ["object", "null"], "description": "reason, score and metrics, when the episode is over"},
        "done": {"type": "boolean"},
        "reward": {"type": ["number", "null"], "description": "the score, when the episode is over"},
    }
    known: dict[str, object] = {
        "episode_id": {"type": ["string", "null"]},
        "step_count": {"type": "integer", "minimum": 0},
        "task": {"type": "string"},
        "sample": {"type": ["string", "null"]},
        "score": {"type": ["number", "null"]},
    }
    action = EnvAction.model_json_schema() | {"required": ["content"], "additionalProperties": True}
    observation = {"title": "ProctorObservation", "type": "object", "properties": fields}
    state = {"title": "ProctorState", "type": "object", "properties": known}
    return {"action": action, "observation": observation, "state": state, "reset_observation": observation}


def _finish(finish: Finish) -> dict[str, object]:
    return {"reason": finish.reason.value, "score": finish.score, "metrics": finish.metrics}


def _json(value: object) -> str:
    return to_json(value).decode()
