"""Pure: the wire of AgentRL's controller, and its translation."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel, Field, JsonValue

from proctor.llm.dialects.chat import WireToolCalls, tool_call_json, tool_json
from proctor.types import AGENTBENCH_STATUS, Action, Finish, FinishReason, Message, Observation, Tool
from proctor_bridges.gateway.agentbench import RUNNING
from proctor_bridges.gateway.foreign_session import ForeignSession
from task_server.wire.messages import Act


class StartTask(BaseModel):
    """`POST start_sample`."""

    name: str
    index: int | str
    custom_task: JsonValue = None


class AssistantMessage(WireToolCalls):
    """An assistant message of OpenAI's shape, its calls read as those of endpoints are."""

    role: Literal["assistant"] = "assistant"
    content: str | list[dict[str, JsonValue]] | None = None


class AgentMessages(BaseModel):
    """`POST interact`."""

    messages: list[AssistantMessage] = Field(default_factory=list)


class NotOneMessage(ValueError):
    """A step is answered by one message."""


def keeps_alive(asked: AgentMessages) -> bool:
    """Whether the messages say nothing: with `controller_renew` the client sends such a one while its model works."""
    return all(not message.content and not message.tool_calls for message in asked.messages)


def reply_of(asked: AgentMessages) -> Act:
    """The agent's answer. Raises NotOneMessage."""
    if len(asked.messages) != 1:
        raise NotOneMessage(f"send one assistant message for each turn, not {len(asked.messages)}")
    [message] = asked.messages
    return Act(action=Action(content=text_of(message.content), tool_calls=message.calls()))


def text_of(content: str | list[dict[str, JsonValue]] | None) -> str:
    """The text of a content, which may be in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return content or ""


def output(session: ForeignSession) -> dict[str, Any]:
    """How the session stands, as the answer to a start and to a step. A fault has no score in its measures."""
    state = session.state
    if isinstance(state, Observation):
        return _output(messages(session, state), state.tools, RUNNING, 0.0, {})
    score = {} if state.score is None else {"score": state.score}
    stands = _output([], (), status_of(state.reason), state.score or 0.0, {**score, **state.metrics})
    return {**stands, "result": result_of(state)}


def status_of(reason: FinishReason) -> str:
    """The status of an end; this wire has none for a context limit."""
    return AGENTBENCH_STATUS[FinishReason.TURN_LIMIT if reason is FinishReason.CONTEXT_LIMIT else reason]


def messages(session: ForeignSession, observed: Observation) -> list[dict[str, Any]]:
    """What is new. A history that begins anew is sent whole, from a system message: by that its client knows."""
    if not session.anew:
        return [message_of(each, session.given_ids) for each in observed.messages]
    whole = [message_of(each) for each in session.history]
    return whole if whole[0]["role"] == "system" else [{"role": "system", "content": ""}, *whole]


def _output(
    messages: list[dict[str, Any]], tools: tuple[Tool, ...], status: str, reward: float, measures: dict[str, float]
) -> dict[str, Any]:
    return {
        "messages": messages,
        "tools": [tool_json(each) for each in tools] or None,
        "status": status,
        "finish": status != RUNNING,
        "reward": reward,
        "metric": measures,
        "metrics": measures,
    }


def result_of(finish: Finish) -> JsonValue:
    """The cause of a fault, else the detail."""
    return str(finish.detail["cause"]) if finish.score is None else finish.detail


def message_of(message: Message, given_ids: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """A message in OpenAI's shape. What answers a call has the id that the client gave it, where it gave one."""
    shaped: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        shaped["tool_calls"] = [tool_call_json(call) for call in message.tool_calls]
    id_ = message.tool_call_id
    return shaped if id_ is None else {**shaped, "tool_call_id": given_ids.get(id_) or id_}
