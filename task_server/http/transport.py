"""One call to a task server, without retries: typed requests, answers and errors."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from proctor.http.client import (
    AnyClient,
    HttpFailure,
    HttpReply,
    ReplyTooLarge,
    Unreachable,
    Untrusted,
    bounded_request,
    json_headers,
)
from proctor.observability import tracing
from task_server.http.access import token_for
from task_server.wire.errors import BadReply, ServerUnreachable, TaskServerError, refusal_of
from task_server.wire.messages import Problem

MAX_REPLY_BYTES = 64 << 20
NO_CONTENT = 204

Answer = TypeVar("Answer", bound=BaseModel)


class Caller:
    """Calls task servers over one shared HTTP client.

    The token itself is sent only to the server at `home`; every other server gets the one `token_for` derives for it.
    """

    def __init__(self, http: AnyClient, token: str | None, home: str = "") -> None:
        self._http = http
        self._token = token
        self._home = f"{home.rstrip('/')}/" if home else ""
        self._at_home = json_headers(token)
        self._elsewhere: dict[str, dict[str, str]] = {}
        """origin -> the headers of requests to it"""

    async def call(
        self,
        method: str,
        url: str,
        answer: type[Answer],
        request: BaseModel | str | None = None,
        *,
        deadline_s: float,
    ) -> Answer:
        """The server's answer to a request; a text is sent as it is, as JSON. Raises TaskServerError."""
        content = request.model_dump_json() if isinstance(request, BaseModel) else request
        home = self._token is None or (self._home and url.startswith(self._home))
        headers = self._at_home if home else self._elsewhere.get("/".join(url.split("/", 3)[:3])) or self._derived(url)
        if tracing.recorders:
            headers = {**headers, **tracing.headers()}
        try:
            reply = await bounded_request(
                self._http,
                method,
                url,
                content=content.encode() if content is not None else None,
                headers=headers,
                deadline_s=deadline_s,
                max_bytes=MAX_REPLY_BYTES,
            )
        except HttpFailure as error:
            raise _failure(error) from error
        if reply.status >= 300:
            raise _refusal(f"{method} {url}", reply)
        try:
            return answer.model_validate_json(reply.body if reply.status != NO_CONTENT else b"{}")
        except ValidationError as error:
            problem = error.errors(include_input=False)[0]
            where = "".join(f"{part}: " for part in [".".join(map(str, problem["loc"]))] if part)
            raise BadReply(f"{method} {url}: not a {answer.__name__}: {where}{problem['msg']}") from error

    def _derived(self, url: str) -> dict[str, str]:
        """The headers of requests to a server away from home, with a token of its own."""
        assert self._token is not None
        origin = "/".join(url.split("/", 3)[:3])
        return self._elsewhere.setdefault(origin, json_headers(token_for(self._token, origin)))


class Done(BaseModel):
    """An answer without content."""


def _failure(error: HttpFailure) -> TaskServerError:
    if isinstance(error, ReplyTooLarge):
        return BadReply(str(error))
    if isinstance(error, Untrusted):
        return BadReply(f"{error}; name its authority (`tls.ca` in a plan, --tls-ca of a server)")
    return ServerUnreachable(str(error), never_sent=isinstance(error, Unreachable))


def _refusal(call: str, reply: HttpReply) -> TaskServerError:
    try:
        return refusal_of(Problem.model_validate_json(reply.body))
    except ValidationError:
        passing = reply.status == 429 or reply.status >= 500
        return (ServerUnreachable if passing else BadReply)(f"{call}: status {reply.status} from something else")
