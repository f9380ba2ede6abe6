"""Tasks of AgentRL and AgentBench FC, played by their own workers: straight, or through their controller."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field, JsonValue, ValidationError

from proctor.digest import digest_of
from proctor.environment import Agent, EnvironmentFault
from proctor.tools import Protocol
from proctor.types import Action, Finish, Message, Observation, Tool, ToolCall
from proctor_bridges.worlds.calls import RUNNING, ForeignReply, finish, shown
from proctor_bridges.worlds.task import ForeignTask


class EnvOutput(BaseModel):
    """How a session stands: what is new since the last answer."""

    messages: tuple[dict[str, Any], ...] = ()
    tools: tuple[dict[str, Any], ...] | None = None
    status: str
    finish: bool = False
    reward: float | None = None
    metric: dict[str, JsonValue] = Field(default_factory=dict)
    metrics: dict[str, JsonValue] = Field(default_factory=dict)
    result: JsonValue = None

    def measured(self) -> dict[str, JsonValue]:
        """All measures: workers call them `metric`, controllers `metrics`."""
        return {**self.metric, **self.metrics}


class AgentRL(ForeignTask):
    """A task of AgentRL or AgentBench FC that its own worker plays and judges."""

    score: Literal["metrics.score", "reward"] = "metrics.score"
    """Where the score is."""
    protocol: Protocol = "tools"
    """How the task takes answers: by calls of its functions, or by texts."""

    def digest(self) -> str:
        indices = list(self.indices().values())
        return digest_of((type(self).__name__, self.revision, indices, self.score, self.protocol))

    def start_request(self, index: JsonValue) -> dict[str, JsonValue]:
        return {**super().start_request(index), "custom_task": None}

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        request = self.start_request(self.indices()[sample])
        async with self.servers.session(request, started) as (address, (session, begun)):
            output, first = begun, True
            try:
                while output.status == RUNNING:
                    action = await agent.act(observation(output, first=first))
                    first = False
                    output = await self._interact(address, session, assistant(action))
            finally:
                if output.status == RUNNING:
                    await self.servers.cancel(address, *self._addressed(session, {}))
        return self._finish(output)

    async def _interact(self, address: str, session: str, message: JsonValue) -> EnvOutput:
        return output_of(await self.servers.interact(address, *self._addressed(session, {"messages": [message]})))

    def _addressed(self, session: str, body: dict[str, JsonValue]) -> tuple[JsonValue, Mapping[str, str]]:
        """A request of a session: a controller is told the session in a header, a worker in the body."""
        if self.url is not None:
            return body or None, {"session_id": session}
        if not session.isdecimal():
            raise EnvironmentFault(f"the answer to the start names no session: {session!r}")
        return {"session_id": int(session), **body}, {}

    def _finish(self, output: EnvOutput) -> Finish:
        measured: dict[str, JsonValue] = {"metrics": output.measured(), "reward": output.reward}
        pointer = "/reward" if self.score == "reward" else "/metrics/score"
        end = finish(output.status, measured if self.score == "reward" or output.measured() else None, (pointer,))
        metrics = {name: value for name, value in numbers(output.measured()).items() if name != "score"}
        detail: dict[str, JsonValue] = {"status": output.status, "result": output.result}
        return Finish(reason=end.reason, score=end.score, metrics=metrics, detail=detail)


def numbers(measured: Mapping[str, JsonValue]) -> dict[str, float]:
    """The finite numbers among the measures: a finish can hold no other."""
    return {
        name: float(value)
        for name, value in measured.items()
        if isinstance(value, int | float) and abs(value) <= sys.float_info.max
    }


def started(reply: ForeignReply) -> tuple[str, EnvOutput]:
    """The session's id and how it stands. Raises EnvironmentFault."""
    return reply.headers.get("session_id", ""), output_of(reply.body)


def output_of(body: JsonValue) -> EnvOutput:
    """The answer of a server. Raises EnvironmentFault."""
    inner = body.get("env_out", body) if isinstance(body, dict) else body
    try:
        return EnvOutput.model_validate(inner)
    except ValidationError as error:
        raise EnvironmentFault(f"the answer is none of AgentRL: {shown(body)}") from error


def observation(output: EnvOutput, *, first: bool) -> Observation:
    """What the agent is shown: a system message begins the history anew."""
    messages = tuple(map(message_of, output.messages))
    fresh = not first and any(message.role == "system" for message in messages)
    return Observation(messages=messages, tools=tuple(map(tool_of, output.tools or ())), fresh=fresh)


def message_of(message: Mapping[str, Any]) -> Message:
    """A message of OpenAI's shape. Raises EnvironmentFault."""
    try:
        return Message(
            role=message["role"],
            content=text_of(message.get("content")),
            tool_calls=tuple(map(call_of, message.get("tool_calls") or ())),
            tool_call_id=message.get("tool_call_id"),
        )
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise EnvironmentFault(f"the task sent a message that can't be read: {shown(dict(message))}") from error


def text_of(content: Any) -> str:
    """The text of a message's content, which may be in parts."""
    if isinstance(content, Sequence) and not isinstance(content, str):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def call_of(call: Mapping[str, Any]) -> ToolCall:
    """A call in a message of OpenAI's shape."""
    return ToolCall(id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"])


def tool_of(tool: Mapping[str, Any]) -> Tool:
    """A function as the task offers it. Raises EnvironmentFault."""
    try:
        function = tool["function"]
        return Tool(
            name=function["name"],
            description=function.get("description") or "",
            parameters=function.get("parameters") or {},
        )
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise EnvironmentFault(f"the task offers a function that can't be read: {shown(dict(tool))}") from error


def assistant(action: Action) -> dict[str, JsonValue]:
    """The agent's answer as a message."""
    if not action.tool_calls:
        return {"role": "assistant", "content": action.content}
    calls: list[JsonValue] = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in action.tool_calls
    ]
    return {"role": "assistant", "content": action.content or None, "tool_calls": calls}
