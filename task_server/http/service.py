"""The operations that workers and controllers share, so that a client can use either."""

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager

from proctor.types import Summary
from task_server.wire.messages import (
    NOBODY,
    Health,
    LeasesRenewed,
    RenewLeases,
    SampleList,
    SamplesQuery,
    Sender,
    Started,
    StartSession,
    SummarizeRequest,
    TaskList,
    TasksQuery,
    TurnRequest,
    TurnResponse,
)
from task_server.wire.worker_messages import Heartbeat, HeartbeatAck, RunList, WorkerList, WorkersQuery


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
    async def tasks(self, query: TasksQuery, sender: Sender = NOBODY) -> TaskList:
        """The tasks and their capacity, at once or at the next change; free slots are those for the sender."""

    @abstractmethod
    async def samples(self, task: str, query: SamplesQuery) -> SampleList:
        """The samples of a task."""

    @abstractmethod
    async def start(self, request: StartSession, sender: Sender = NOBODY) -> Started:
        """Start a session, or find the one that an equal request started; its current step."""

    @abstractmethod
    async def turn(self, session: str, request: TurnRequest, sender: Sender = NOBODY) -> TurnResponse:
        """Answer a turn; the next step."""

    @abstractmethod
    async def end(self, session: str, sender: Sender = NOBODY) -> None:
        """End a session and free its resources."""

    @abstractmethod
    async def runs(self) -> RunList:
        """Which runs hold and want sessions."""

    @abstractmethod
    async def renew(self, request: RenewLeases, sender: Sender = NOBODY) -> LeasesRenewed:
        """Renew the leases of sessions; without sessions it only says that the sender plays, or that it yields."""

    @abstractmethod
    async def summarize(self, task: str, request: SummarizeRequest) -> Summary:
        """The environment's own metrics over finishes."""

    @abstractmethod
    def alive(self) -> Health:
        """This server's role, URL and version."""

    def check_alive(self) -> None:
        """Raises NotReady where only a restart can help."""

    @abstractmethod
    def check_ready(self) -> None:
        """Raises NotReady while sessions can't be started."""

    @abstractmethod
    def metrics(self) -> str:
        """Metrics in the Prometheus text format."""


class PlacementService(TaskService):
    """A service that workers report to."""

    @abstractmethod
    async def heartbeat(self, heartbeat: Heartbeat, peer: str | None, takes_all: bool = False) -> HeartbeatAck:
        """Record a worker's heartbeat; `peer` is the address that it comes from.

        With `takes_all` the answer has every token that the worker is to accept.
        """

    @abstractmethod
    async def workers(self, query: WorkersQuery) -> WorkerList:
        """The live workers."""
