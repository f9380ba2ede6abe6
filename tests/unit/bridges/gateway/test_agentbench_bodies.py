"""Bodies that AgentBench v0.2 refuses are refused, and those that it takes are taken with the same values.

The oracle is pydantic 1 with models of the published fields, as v0.2's servers use it.
"""

import json
import random
from enum import StrEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ValidationError, v1

from proctor_bridges.gateway import agentbench as wire

ANYTHING: tuple[Any, ...] = (
    *(None, True, False, 0, 7, -1, 1.5, 1e300, 10**30, "", "7", " 7 ", "007", "1.5", "1_0", "a", "é", "id:7"),
    *([], ["a"], {}, {"status": "normal"}, "normal", "cancelled", "agent context limit", "completed", "no such status"),
)
STATUSES = (*("normal", "cancelled", "agent context limit"), "running", "completed", "task limit reached", "unknown")


class AgentStatus(StrEnum):
    NORMAL = "normal"
    CANCELLED = "cancelled"
    CONTEXT = "agent context limit"


class Start(v1.BaseModel):
    name: str
    index: int | str


class Agent(v1.BaseModel):
    status: AgentStatus = AgentStatus.NORMAL
    content: str | None = None

    @v1.root_validator(skip_on_failure=True)
    def says_something(cls, values: dict[str, Any]) -> dict[str, Any]:  # noqa: N805 - of pydantic's version 1
        if values["status"] is AgentStatus.NORMAL and values["content"] is None:
            raise ValueError("nothing said")
        return values


class Step(v1.BaseModel):
    session_id: int
    agent_response: Agent


class Cancel(v1.BaseModel):
    session_id: int


class Item(v1.BaseModel):
    role: Literal["user", "agent"]
    content: str


class Result(v1.BaseModel):
    index: int | str | None = None
    status: Literal[
        "running", "completed", "agent context limit", "agent validation failed", "agent invalid action",
        "task limit reached", "unknown", "task error", "cancelled",
    ] = "running"  # fmt: skip
    result: bool | int | float | str | list[Any] | dict[str, Any] | None = None
    history: list[Item] | None = None


class Sums(v1.BaseModel):
    name: str
    results: list[Result]


PAIRS: tuple[tuple[type[v1.BaseModel], type[BaseModel]], ...] = (
    (Start, wire.StartSample), (Step, wire.Interact), (Cancel, wire.SessionId), (Sums, wire.CalculateOverall),
)  # fmt: skip


def fields(chance: random.Random, **sound: Any) -> dict[str, Any]:
    """Sound fields, of which some are left out, or are anything."""
    kept = {name: value for name, value in sound.items() if chance.random() > 0.1}
    return {name: chance.choice(ANYTHING) if chance.random() < 0.3 else value for name, value in kept.items()}


def body(chance: random.Random, model: type[v1.BaseModel]) -> Any:
    agent = fields(chance, status=chance.choice(STATUSES), content="hm", length=1)
    item = fields(chance, role=chance.choice(("user", "agent", "system")), content="a")
    result = fields(
        chance, index=chance.choice((0, "a", None)), status=chance.choice(STATUSES), history=[item], result=1
    )
    sound: dict[Any, dict[str, Any]] = {
        Start: {"name": "t", "index": chance.choice((0, "007", "a"))},
        Step: {"session_id": 5, "agent_response": agent},
        Cancel: {"session_id": "5"},
        Sums: {"name": "t", "results": [result]},
    }
    return chance.choice(ANYTHING) if chance.random() < 0.02 else fields(chance, **sound[model], further=1)


def published(model: type[v1.BaseModel], given: Any) -> dict[str, Any] | None:
    """The values that v0.2 takes; None where it answers 422."""
    try:
        taken: dict[str, Any] | None = json.loads(model.parse_obj(given).json()) if isinstance(given, dict) else None
    except v1.ValidationError:
        return None
    return taken


def ours(model: type[BaseModel], given: Any) -> dict[str, Any] | None:
    try:
        return model.model_validate_json(json.dumps(given)).model_dump(mode="json")
    except ValidationError:
        return None


@pytest.mark.parametrize("count", [1_000, pytest.param(20_000, marks=pytest.mark.thorough)])
def test_bodies_are_taken_and_refused_as_published(count: int) -> None:
    chance, refused = random.Random(1), 0
    for _ in range(count):
        model, mine = chance.choice(PAIRS)
        given = body(chance, model)
        wanted = published(model, given)
        refused += wanted is None
        found = ours(mine, given)
        if wanted is not None and model is Sums:  # what a result holds is read as it is, no text becomes a number
            for each, taken in zip(wanted["results"], (found or wanted)["results"], strict=True):
                each["result"] = taken["result"]
        assert found == wanted, given
    assert count / 10 < refused < count * 0.9
