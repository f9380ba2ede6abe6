"""The operations that workers and controllers share, so that a client can use either."""

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager

from proctor.types import Summary
from task_server.wire.messages import (
    Health,
    LeasesRenewed,
    RenewLeases,
    SampleList,
    SamplesQuery,
    Started,
    StartSession,
    SummarizeRequest,
    TaskList,
    TasksQuery,
    TurnRequest,
    TurnResponse,
)
from task_server.wire.worker_messages import Heartbeat, HeartbeatAck, WorkerList


class Service(ABC):
    """What a process runs behind its app."""

    @abstractmethod
    def running(self) -> AbstractAsyncContextManager[None]:
        """Runs the service's background work; entered before the first request and left after the last."""

    @abstractmethod
    async def drain(self, grace_s: float) -> None:
        """Start no new sessions, let live ones go on for up to `grace_s`, then end them.

        May be called again before that, with a shorter grace.
        """


class TaskService(Service):
    """The operations behind the routes. Each raises ApiError when it fails."""

    @abstractmethod
    async def tasks(self, query: TasksQuery) -> TaskList:
        """The tasks and their capacity, at once or at the next change."""

    @abstractmethod
    async def samples(self, task: str, query: SamplesQuery) -> SampleList:
        """The samples of a task."""

    @abstractmethod
    async def start(self, request: StartSession) -> Started:
        """Start a session, or find the one that an equal request started; its current step."""

    @abstractmethod
    async def turn(self, session: str, request: TurnRequest) -> TurnResponse:
        """Answer a turn; the next step."""

    @abstractmethod
    async def end(self, session: str) -> None:
        """End a session and free its resources."""

    @abstractmethod
    async def renew(self, request: RenewLeases) -> LeasesRenewed:
        """Renew the leases of sessions."""

    @abstractmethod
    async def summarize(self, task: str, request: SummarizeRequest) -> Summary:
        """The environment's own metrics over finishes."""

    @abstractmethod
    def alive(self) -> Health:
        """This server's role, URL and version."""

    @abstractmethod
    def check_ready(self) -> None:
        """Raises NotReady while sessions can't be started."""

    @abstractmethod
    def metrics(self) -> str:
        """Metrics in the Prometheus text format."""


class PlacementService(TaskService):
    """A service that workers report to."""

    @abstractmethod
    async def heartbeat(self, heartbeat: Heartbeat, peer: str | None) -> HeartbeatAck:
        """Record a worker's heartbeat; `peer` is the address that it comes from."""

    @abstractmethod
    async def workers(self) -> WorkerList:
        """The live workers."""
