"""The errors of task servers: one exception class per problem type, the same on both sides of the wire."""

from typing import ClassVar

from proctor.observability.redaction import redacted
from proctor.session.kept_replies import KeptReply
from task_server.wire.messages import Problem, ProblemType


class TaskServerError(Exception):
    """A request to a task server failed. Secrets are redacted from `detail`, on the server's side and the client's."""

    retryable: ClassVar[bool] = False
    """True if the same request may succeed later."""

    def __init__(self, detail: str = "", retry_after_s: float | None = None) -> None:
        self.detail = redacted(detail)
        super().__init__(self.detail or type(self).__name__)
        self.retry_after_s = retry_after_s


class ServerUnreachable(TaskServerError):
    """No complete answer came: the connection failed or broke, or the deadline passed."""

    retryable = True

    def __init__(self, detail: str, never_sent: bool = False) -> None:
        super().__init__(detail)
        self.never_sent = never_sent
        """True if the server certainly never received the request."""


class ServerAway(TaskServerError):
    """The server answers nobody: a start was not sent to it, or it was waited for long enough."""


class BadReply(TaskServerError):
    """The answer does not follow this protocol, or its server is not trusted."""


class ApiError(TaskServerError):
    """An error that a server answered with, as a problem document."""

    type: ClassVar[ProblemType]
    status: ClassVar[int]
    title: ClassVar[str]

    def problem(self) -> Problem:
        """The error as the document that is sent."""
        return Problem(
            type=self.type,
            title=self.title,
            detail=self.detail,
            retryable=self.retryable,
            retry_after_s=self.retry_after_s,
        )


class BadRequest(ApiError):
    """The request is malformed, or there is no such route."""

    type, status, title = "bad_request", 400, "The server does not accept this request"


class Unauthorized(ApiError):
    """The token is missing, wrong, or for another route."""

    type, status, title = "unauthorized", 401, "A valid bearer token is needed"


class Forbidden(ApiError):
    """The request is not allowed from its address or origin, whatever its token."""

    type, status, title = "forbidden", 403, "This is not allowed from there"


class TooLarge(ApiError):
    """The request's body is over 8 MiB, or 64 MiB for a summary and a start."""

    type, status, title = "too_large", 413, "The request is too large"


class UnknownTask(ApiError):
    """No worker holds a task of this name."""

    type, status, title = "unknown_task", 404, "No such task"


class UnknownSample(ApiError):
    """The task has no sample of this id."""

    type, status, title = "unknown_sample", 404, "No such sample"


class SessionLost(ApiError):
    """The session is gone; only a new session can go on."""


class UnknownSession(SessionLost):
    """The session was never started here, was ended, or its lease expired."""

    type, status, title = "unknown_session", 404, "No such session"


class WorkerLost(SessionLost):
    """The worker that held the session is gone."""

    type, status, title = "worker_lost", 410, "The session's worker is lost"


class TurnConflict(ApiError):
    """The turn is not the current one, or got another answer before; or a worker's name belongs to another process."""

    type, status, title = "turn_conflict", 409, "The turn can't be applied"


class OtherClient(ApiError):
    """Another client of the run has the session."""


class SessionHeld(OtherClient):
    """Another client has the session, and was heard within 10 s. Once it is silent for so long, a retry gets it."""

    type, status, title, retryable = "session_held", 409, "Another client has the session", True


class SessionTaken(OtherClient):
    """Another client has got the session, as this one had been silent for 10 s: this client must stop."""

    type, status, title = "session_taken", 409, "Another client has taken the session"


class DigestDiffers(ApiError):
    """The task's data, prompts or settings are not those that the run began with."""

    type, status, title = "digest_differs", 409, "The task is not the one that the run began with"


class InWork(ApiError):
    """The environment needs over 20 s for the step; a retry waits on. `replies` are for the client's journal."""

    type, status, title, retryable = "in_work", 503, "The step is still in work", True

    def __init__(
        self, detail: str = "", retry_after_s: float | None = None, replies: tuple[KeptReply, ...] = ()
    ) -> None:
        super().__init__(detail, retry_after_s)
        self.replies = replies

    def problem(self) -> Problem:
        return super().problem().model_copy(update={"replies": self.replies})


class NoCapacity(ApiError):
    """Every slot of the task is taken."""

    type, status, title, retryable = "no_capacity", 429, "No free slot", True


class NotReady(ApiError):
    """The server or the task can't serve the request now; later it may."""

    type, status, title, retryable = "not_ready", 503, "Not ready", True


class Internal(ApiError):
    """The server failed; its log has the cause."""

    type, status, title = "internal", 500, "The server failed"


_BY_TYPE = {
    kind.type: kind
    for parent in (ApiError, SessionLost, OtherClient)
    for kind in parent.__subclasses__()
    if kind not in (SessionLost, OtherClient)
}
UNKNOWN_FIELD = "Extra inputs are not permitted"
"""A server's message about a field it does not know. Servers of this version know every field that we send."""
OLDER = "unknown to the task server, which is older than its client; upgrade controller and workers before clients"


def refusal_of(problem: Problem) -> ApiError:
    """The exception for a server's problem document."""
    if problem.type == InWork.type:
        return InWork(problem.detail, problem.retry_after_s, problem.replies)
    if problem.type == BadRequest.type:
        return BadRequest(problem.detail.replace(UNKNOWN_FIELD, OLDER), problem.retry_after_s)
    return _BY_TYPE[problem.type](problem.detail, problem.retry_after_s)
