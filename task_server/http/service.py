"""What a worker and a controller both answer, so that a client may talk to either."""

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager

from proctor.types import Summary
from task_server.wire.messages import (
    Health,
    Heartbeat,
    HeartbeatAck,
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
    WorkerList,
)


class TaskService(ABC):
    """The operations behind the routes. Each raises `errors.ApiError` where it can't."""

    @abstractmethod
    async def tasks(self, query: TasksQuery) -> TaskList:
        """The tasks and what they can take, at once or when that changes."""

    @abstractmethod
    async def samples(self, task: str, query: SamplesQuery) -> SampleList:
        """The samples of a task."""

    @abstractmethod
    async def start(self, request: StartSession) -> Started:
        """A session's first step."""

    @abstractmethod
    async def turn(self, session: str, request: TurnRequest) -> TurnResponse:
        """What came after a turn."""

    @abstractmethod
    async def end(self, session: str) -> None:
        """End a session and free what it holds."""

    @abstractmethod
    async def renew(self, request: RenewLeases) -> LeasesRenewed:
        """Keep sessions alive."""

    @abstractmethod
    async def summarize(self, task: str, request: SummarizeRequest) -> Summary:
        """The environment's own metrics over finishes."""

    @abstractmethod
    def alive(self) -> Health:
        """Who listens here."""

    @abstractmethod
    def check_ready(self) -> None:
        """Raises NotReady where sessions can't be started."""

    @abstractmethod
    def metrics(self) -> str:
        """Figures in the Prometheus text format."""

    @abstractmethod
    def running(self) -> AbstractAsyncContextManager[None]:
        """The work behind the routes, from before the first request to after the last."""

    @abstractmethod
    async def drain(self, grace_s: float) -> None:
        """Take no new sessions, let live ones go on for up to `grace_s`, then end them. May be called again, sooner."""


class PlacementService(TaskService):
    """A service that workers report to."""

    @abstractmethod
    async def heartbeat(self, beat: Heartbeat, peer: str | None) -> HeartbeatAck:
        """Take what a worker says of itself; `peer` is the address it speaks from."""

    @abstractmethod
    async def workers(self) -> WorkerList:
        """The live workers."""
