"""Where `proctor play` plays: an environment in this process, or a task on a task server."""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from eval_client.cli.usage import UsageProblem
from proctor.config.secrets import secret
from proctor.config.task import TaskDefinition
from proctor.environment import Agent, AgentUnavailable, Environment, EnvironmentFault, protocol_of
from proctor.session.play import play_to_finish
from proctor.types import Finish, FinishReason
from task_server.wire.errors import TaskServerError

if TYPE_CHECKING:
    from task_server.client.client import TaskClient
    from task_server.client.session import RemoteSession

RENEW_S = 20.0
"""A session is renewed so often while its agent thinks; its lease is three times as long."""


class PlayableTask(ABC):
    """A task whose samples can be played one at a time, within `opened`."""

    name: str

    @abstractmethod
    def opened(self) -> contextlib.AbstractAsyncContextManager[Sequence[str]]:
        """Begin, with the ids of the samples. Raises UsageProblem."""

    @abstractmethod
    def settings(self) -> str:
        """What to know before the first turn, to be put behind the sample's id."""

    @abstractmethod
    async def play(self, sample: str, agent: Agent, seed: int) -> Finish:
        """Play a sample to its end. Raises UsageProblem where it can't begin."""


class TaskInProcess(PlayableTask):
    """An environment in this process."""

    def __init__(self, task: TaskDefinition, world: Environment) -> None:
        self.name = task.name
        self._task, self._world = task, world

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Sequence[str]]:
        yield self._world.samples()

    def settings(self) -> str:
        turns = "" if self._world.max_turns is None else f", at most {self._world.max_turns} turns"
        fields = {"protocol": protocol_of(self._world), **self._task.parameters}
        return turns + "".join(f", {field}: {value}" for field, value in fields.items())

    async def play(self, sample: str, agent: Agent, seed: int) -> Finish:
        async with contextlib.AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(self._world.lifespan())
            except EnvironmentFault as error:
                raise UsageProblem(str(error)) from error
            return await play_to_finish(self._world, sample, agent, seed)


class TaskOnServer(PlayableTask):
    """A task on a worker, or on the workers of a controller."""

    def __init__(self, url: str, name: str) -> None:
        self.name = name
        self._url = url

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Sequence[str]]:
        from proctor.http.client import http_client
        from task_server.client.client import TaskClient

        try:
            token = secret("PROCTOR_TOKEN")
        except ValueError as error:
            raise UsageProblem(str(error)) from error
        async with http_client() as http:
            self._client = TaskClient(self._url, http, token.get_secret_value() if token else None, patience_s=5.0)
            try:
                listed = await self._client.samples(self.name)
            except TaskServerError as error:
                raise UsageProblem(f"--controller {self._url}: {error}") from error
            self._protocol = listed.protocol
            yield listed.samples

    def settings(self) -> str:
        return f", protocol: {self._protocol}, at {self._url}"

    async def play(self, sample: str, agent: Agent, seed: int) -> Finish:
        from task_server.client.session import RemoteSession

        try:
            started = await RemoteSession.start(self._client, self.name, sample, seed)
        except TaskServerError as error:
            raise UsageProblem(f"--controller {self._url}: {error}") from error
        async with started as session:
            renewing = asyncio.create_task(_renew(self._client, session))
            try:
                return await session.play(agent)
            except AgentUnavailable as error:
                return Finish.fault(FinishReason.AGENT_ERROR, str(error))
            except TaskServerError as error:
                return Finish.fault(FinishReason.TASK_ERROR, str(error))
            finally:
                renewing.cancel()


async def _renew(client: "TaskClient", session: "RemoteSession") -> None:
    """Renew the lease of a session until cancelled; a failure shows in the next turn."""
    while True:
        await asyncio.sleep(RENEW_S)
        with contextlib.suppress(TaskServerError):
            await client.renew(session.url, [session.id])
