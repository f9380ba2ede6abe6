"""Pure: how a foreign server's end of a session becomes a finish."""

from collections.abc import Sequence

from pydantic import JsonValue

from environments.foreign.calls import shown
from proctor.environment import EnvironmentFault
from proctor.types import AGENTBENCH_REASON, Finish, FinishReason

RUNNING = "running"
USUAL = ("", "/score", "/result", "/reward", "/is_correct", "/success")
"""Where tasks put their score: JSON pointers into `result`."""


def finish(status: str, result: JsonValue, pointers: Sequence[str]) -> Finish:
    """The finish of a session by its status and its result. Raises EnvironmentFault for what is no score."""
    if status not in AGENTBENCH_REASON:
        raise EnvironmentFault(f"the task ended with {status!r}: {shown(result)}")
    reason, found = AGENTBENCH_REASON[status], score(result, pointers)
    if found is None and result is None and reason is not FinishReason.COMPLETED:
        found = 0.0  # AgentBench's own tasks leave the result out where the agent failed
    if found is None:
        where = ", ".join(repr(pointer) for pointer in pointers)
        raise EnvironmentFault(f"score: no number from 0 to 1 at {where} of the result: {shown(result)}")
    return Finish(reason=reason, score=found, detail={"status": status, "result": result})


def score(result: JsonValue, pointers: Sequence[str]) -> float | None:
    """The first number or truth value at one of the pointers; None where it is not from 0 to 1."""
    for pointer in pointers:
        value = at(result, pointer)
        if isinstance(value, int | float):
            return float(value) if 0 <= value <= 1 else None
    return None


def at(value: JsonValue, pointer: str) -> JsonValue:
    """The value at a JSON pointer (RFC 6901); None where nothing is."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value
