"""Pure: the wire of AgentBench v0.2's controller, and its translation."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, JsonValue, model_validator

from proctor.types import AGENTBENCH_REASON, AGENTBENCH_STATUS, Finish, FinishReason, Message, Summary
from proctor_bridges.gateway.foreign_session import ForeignSession, Offer, act
from task_server.wire.messages import Stop
from task_server.wire.turns import Reply


def _as_text(value: object) -> object:
    """A text as v0.2's models take it: numbers are their texts."""
    return str(value) if isinstance(value, int | float) else value


def _as_number(value: object) -> object:
    """An integer as v0.2's models take it: what Python's `int` takes."""
    if value is None or not isinstance(value, int | float | str):
        return value
    try:
        return int(value)
    except (ValueError, OverflowError):
        return value


def _as_index(value: object) -> object:
    """An index as v0.2's models take it: an integer where it can be one, else a text."""
    number = _as_number(value)
    return number if isinstance(number, int) else _as_text(value)


Text = Annotated[str, BeforeValidator(_as_text)]
Number = Annotated[int, BeforeValidator(_as_number)]
Index = Annotated[int | str, BeforeValidator(_as_index)]
ESCAPED = "id:"
RUNNING, CANCELLED = "running", "cancelled"


class StartSample(BaseModel):
    """`POST /start_sample`."""

    name: Text
    index: Index


class AgentOutput(BaseModel):
    """What the agent did."""

    status: Literal["normal", "cancelled", "agent context limit"] = "normal"
    content: Text | None = None

    @model_validator(mode="after")
    def _normal_says_something(self) -> "AgentOutput":
        if self.status == "normal" and self.content is None:
            raise ValueError("If status is NORMAL, content should not be None")
        return self


class Interact(BaseModel):
    """`POST /interact`."""

    session_id: Number
    agent_response: AgentOutput


class SessionId(BaseModel):
    """`POST /cancel`."""

    session_id: Number


class HistoryItem(BaseModel):
    """A message of a stored result."""

    role: Literal["user", "agent"]
    content: Text


class TaskOutput(BaseModel):
    """The result of a sample, as its client stored it."""

    index: Index | None = None
    status: Literal[
        "running", "completed", "agent context limit", "agent validation failed", "agent invalid action",
        "task limit reached", "unknown", "task error", "cancelled",
    ] = "running"  # fmt: skip
    result: JsonValue = None
    history: list[HistoryItem] | None = None


class CalculateOverall(BaseModel):
    """`POST /calculate_overall`."""

    name: Text
    results: list[TaskOutput]


def index_of(sample: str) -> Index:
    """A sample's id as v0.2's clients can keep it: they turn every text that reads as an integer into one."""
    try:
        number = int(sample)
    except ValueError:
        return ESCAPED + sample if sample.startswith(ESCAPED) else sample
    return number if str(number) == sample else ESCAPED + sample


def sample_of(index: Index) -> str:
    """The sample of an index."""
    return str(index).removeprefix(ESCAPED)


def history(messages: Iterable[Message]) -> list[dict[str, str]]:
    """The transcript as `user` and `agent` by turns, beginning with `user`; neighbours of one role are joined."""
    turns: list[dict[str, str]] = []
    for message in messages:
        role = "agent" if message.role == "assistant" else "user"
        if not turns and role == "agent":
            turns.append({"role": "user", "content": ""})
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n\n{message.content}"
        else:
            turns.append({"role": role, "content": message.content})
    return turns


def reply_of(output: AgentOutput) -> Reply:
    """The agent's answer; not for one that cancels."""
    if output.status == "agent context limit":
        return Stop(reason=FinishReason.CONTEXT_LIMIT)
    return act(output.content or "")


def output(session: ForeignSession, *, cancelled: bool = False) -> dict[str, Any]:
    """How the session stands, as the answer to a start and to a step."""
    status: str = CANCELLED if cancelled else RUNNING
    result: JsonValue = None
    if not cancelled and isinstance(session.state, Finish):
        status, result = AGENTBENCH_STATUS[session.state.reason], result_of(session.state)
    index = None if status == RUNNING else index_of(session.sample)
    stands = {"index": index, "status": status, "result": result, "history": history(session.history)}
    return {"session_id": session.id, "output": stands}


def result_of(finish: Finish) -> JsonValue:
    """What v0.2 keeps of a finish: the cause of a fault, else all of it."""
    return str(finish.detail["cause"]) if finish.score is None else finish.model_dump(mode="json")


def finish_of(output: TaskOutput) -> Finish | None:
    """The finish that a stored result was made of; None if it has no score. Raises ValueError for what is none."""
    if output.status not in AGENTBENCH_REASON or not isinstance(output.result, dict):
        return None
    known = {name: output.result[name] for name in ("score", "metrics", "detail") if name in output.result}
    return Finish.model_validate({**known, "reason": AGENTBENCH_REASON[output.status]})


def overall(summary: Summary, scored: int, results: int) -> dict[str, JsonValue]:
    """The metrics of a task over the results of a run."""
    return {
        "score": summary.metrics.get(summary.primary),
        "stderr": summary.standard_error,
        "n": results,
        "coverage": scored / results if results else None,
        **summary.metrics,
    }


def workers(offers: Mapping[str, Offer]) -> dict[str, Any]:
    """The tasks that answer in texts, each with one worker that has all its slots."""
    return {
        name: {
            "indices": indices(offer),
            "workers": {
                "0": {
                    "id": 0,
                    "address": "",
                    "capacity": offer.total,
                    "current": offer.total - offer.free,
                    "last_visit": time.time(),
                    "status": 0 if offer.waiting is None else 1,
                    "locked": False,
                }
            },
        }
        for name, offer in offers.items()
        if offer.catalogue.protocol == "text"
    }


def indices(offer: Offer) -> list[Index]:
    """The indices of a task's samples."""
    return [index_of(sample) for sample in offer.catalogue.samples]


def sessions(live: Sequence[ForeignSession]) -> dict[str, Any]:
    """The live sessions by id."""
    return {
        str(session.id): {
            "name": session.task.task,
            "index": index_of(session.sample),
            "start": session.started_at,
            "last_update": session.updated_at,
            "worker_id": 0,
            "locked": session.lock.locked(),
        }
        for session in live
    }
