"""An agent that repeats recorded actions: for re-runs without cost, and to see whether a change moves a score."""

import os
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.errors import RequestRefused
from proctor.config.wording import first_problem
from proctor.config.yaml import FileError
from proctor.environment import ContextLimitExceeded, InputRefused
from proctor.types import Action, FinishReason

ENDED = (FinishReason.CONTEXT_LIMIT, FinishReason.REFUSED)


class RecordedTurn(BaseModel):
    """A line of the recording; further fields are ignored."""

    agent: str | None = None
    task: str
    sample: str
    epoch: int = 0
    turn: int
    action: Action | None = None
    stop: str | None = None
    """Why there is no action; what ended the trial at the endpoint is repeated as well."""


class _Turn(NamedTuple):
    task: str
    sample: str
    epoch: int
    turn: int


class RecordedAgent(ServedAgent):
    """Answers from the last line of a JSONL file with the request's task, sample, epoch and turn.

    Only the offsets of lines are in memory: 26 MB for 100,000 turns, whatever their length.
    """

    def __init__(self, path: Path, agent: str | None = None) -> None:
        """`agent` selects one of the recording's agents. Raises FileError naming the line."""
        self._path = path
        self._lines = _index(path, agent)
        self._file = os.open(path, os.O_RDONLY)

    async def answer(self, request: AgentRequest) -> AgentReply:
        task, sample = request.required("task", "sample", "turn")[:2]
        turn = _Turn(task, sample, request.number("epoch", 0), request.number("turn"))
        if turn not in self._lines:
            raise RequestRefused(
                422,
                f"nothing is recorded for task {task!r}, sample {sample!r}, epoch {turn.epoch}, turn {turn.turn}",
                code="recording_not_found",
            )
        offset, length = self._lines[turn]
        recorded = RecordedTurn.model_validate_json(os.pread(self._file, length, offset))
        if recorded.action is None:
            raise ContextLimitExceeded if recorded.stop == FinishReason.CONTEXT_LIMIT else InputRefused("as recorded")
        return AgentReply(recorded.action)


def _index(path: Path, agent: str | None) -> dict[_Turn, tuple[int, int]]:
    lines: dict[_Turn, tuple[int, int]] = {}
    agents: set[str] = set()
    offset = 0
    try:
        with path.open("rb") as file:
            for line_number, line in enumerate(file, 1):
                recorded = _parse(path, line_number, line)
                if recorded.agent is not None:
                    agents.add(recorded.agent)
                answered = recorded.action is not None or recorded.stop in ENDED
                if answered and (agent is None or recorded.agent in (None, agent)):
                    key = _Turn(recorded.task, recorded.sample, recorded.epoch, recorded.turn)
                    lines[key] = (offset, len(line))
                offset += len(line)
    except OSError as error:
        raise FileError(f"{path}: can't be read: {error}; check the path") from error
    if agent is None and len(agents) > 1:
        raise FileError(f"{path}: holds turns of {', '.join(sorted(agents))}; select one with the field `agent`")
    if not lines:
        raise FileError(f"{path}: holds no turn{f' of {agent!r}' if agent else ''}; check the file")
    return lines


def _parse(path: Path, line_number: int, line: bytes) -> RecordedTurn:
    try:
        return RecordedTurn.model_validate_json(line)
    except ValidationError as error:
        raise FileError(f"{path}:{line_number}: {first_problem(error, 'the line')}; export the turns again") from error
