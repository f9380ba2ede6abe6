"""Tasks of AgentBench v0.2, played by their own workers: straight, or through their controller."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, Field, JsonValue, ValidationError

from proctor.digest import digest_of
from proctor.environment import Agent, AgentStopped, EnvironmentFault
from proctor.types import Finish, FinishReason, Message, Observation
from proctor_bridges.worlds.calls import RUNNING, USUAL, ForeignReply, finish, shown
from proctor_bridges.worlds.task import ForeignTask


class HistoryTurn(BaseModel):
    """One turn of a history."""

    role: Literal["user", "agent"]
    content: str

    def message(self) -> Message:
        """The turn as a message."""
        return Message(role="user" if self.role == "user" else "assistant", content=self.content)


class Output(BaseModel):
    """How a session stands."""

    status: str
    result: JsonValue = None
    history: tuple[HistoryTurn, ...] | None = None


class Stand(BaseModel):
    """The answer to a start and to a step."""

    session_id: int
    output: Output


class AgentBenchV02(ForeignTask):
    """A task of AgentBench v0.2 that its own worker plays and judges."""

    score: Annotated[str, Field(pattern=r"^(/.*)?$")] | None = None
    """A JSON pointer to the score in `result`; None tries the places where tasks usually put it."""

    def digest(self) -> str:
        return digest_of((type(self).__name__, self.revision, list(self.indices().values()), self.score))

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        async with self.servers.session(self.start_request(self.indices()[sample]), started) as (address, first):
            stand = first
            seen: tuple[HistoryTurn, ...] = ()
            try:
                while stand.output.status == RUNNING:
                    history = stand.output.history or ()
                    response = await respond(agent, observation(seen, history))
                    seen = answered(history, response)
                    step: JsonValue = {"session_id": stand.session_id, "agent_response": response}
                    stand = stand_of(await self.servers.interact(address, step))
            finally:
                if stand.output.status == RUNNING:
                    await self.servers.cancel(address, {"session_id": stand.session_id})
        pointers = USUAL if self.score is None else (self.score,)
        return finish(stand.output.status, stand.output.result, pointers)


def started(reply: ForeignReply) -> Stand:
    """The answer to a start. Raises EnvironmentFault."""
    return stand_of(reply.body)


def stand_of(body: JsonValue) -> Stand:
    """The answer of a server. Raises EnvironmentFault."""
    try:
        return Stand.model_validate(body)
    except ValidationError as error:
        raise EnvironmentFault(f"the answer is none of AgentBench v0.2: {shown(body)}") from error


def observation(seen: Sequence[HistoryTurn], history: Sequence[HistoryTurn]) -> Observation:
    """What is new in a history that goes on from what the agent has seen; all of any other."""
    goes_on = tuple(history[: len(seen)]) == tuple(seen)
    new = history[len(seen) :] if goes_on else history
    return Observation(messages=tuple(turn.message() for turn in new), fresh=not goes_on)


async def respond(agent: Agent, observed: Observation) -> dict[str, JsonValue]:
    """The agent's answer, or that its context is over. Raises AgentStopped for other limits of ours."""
    try:
        return {"status": "normal", "content": (await agent.act(observed)).content}
    except AgentStopped as stopped:
        if stopped.reason is not FinishReason.CONTEXT_LIMIT:
            raise
        return {"status": "agent context limit", "content": None}


def answered(history: Sequence[HistoryTurn], response: dict[str, JsonValue]) -> tuple[HistoryTurn, ...]:
    """The history with the agent's answer, as its worker keeps it."""
    content = response["content"]
    return (*history, HistoryTurn(role="agent", content=content)) if isinstance(content, str) else tuple(history)
