"""A session on a task server as one object, which an agent can play to its finish."""

import secrets

from proctor.environment import Agent, AgentStopped
from proctor.types import Finish, Observation
from task_server.client.client import TaskClient
from task_server.wire.messages import Act, Finished, Observed, Started, Step
from task_server.wire.offered_tools import OfferedTools
from task_server.wire.turns import Reply, stop_of


class RemoteSession:
    """A started session. `async with await RemoteSession.start(...)` ends it on exit."""

    def __init__(self, client: TaskClient, session: str, started: Started) -> None:
        self.id = session
        self.worker = started.worker
        self.url = started.url
        self.step: Step = started.step
        """The current step: the observation to answer, or the finish."""
        self._client, self._offered = client, OfferedTools()

    @classmethod
    async def start(cls, client: TaskClient, task: str, sample: str, seed: int = 0) -> "RemoteSession":
        """Start a session under a new random id. Raises TaskServerError."""
        session = secrets.token_hex(16)
        return cls(client, session, await client.start(session, task, sample, seed))

    async def __aenter__(self) -> "RemoteSession":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.end(self.id, self.url)

    async def reply(self, reply: Reply) -> Step:
        """Answer the current turn; the next step. Raises TaskServerError, and ValueError if the session is finished."""
        if not isinstance(self.step, Observed):
            raise ValueError("the session is finished")
        self.step = await self._client.turn(self.url, self.id, self.step.turn, reply)
        return self.step

    async def play(self, agent: Agent) -> Finish:
        """Let an agent answer every turn; the session's finish. Raises TaskServerError and what the agent raises."""
        while not isinstance(self.step, Finished):
            await self.reply(await _answer(agent, self._offered.observation(self.step)))
        return self.step.finish


async def _answer(agent: Agent, observation: Observation) -> Reply:
    try:
        return Act(action=await agent.act(observation))
    except AgentStopped as stopped:
        return stop_of(stopped)
