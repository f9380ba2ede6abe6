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

Answer = TypeVar("Answer", bound=BaseModel)


class Caller:
    """Calls task servers over one shared HTTP client.

    The token itself is sent only to the server at `home`; every other server gets the one `token_for` derives for it.
    """

    def __init__(self, http: AnyClient, token: str | None, home: str = "") -> None:
        self._http = http
        self._token = token
        self._home = f"{home.rstrip('/')}/" if home else ""
        self._tokens: dict[str, str] = {}

    async def call(
        self,
        method: str,
        url: str,
        answer: type[Answer],
        request: BaseModel | bytes | None = None,
        *,
        deadline_s: float,
    ) -> Answer:
        """The server's answer to a request; bytes are sent as they are, as JSON. Raises TaskServerError."""
        reply = await self._reply(method, url, request, deadline_s)
        try:
            return answer.model_validate_json(reply.body)
        except ValidationError as error:
            raise BadReply(f"{method} {url}: not a {answer.__name__}: {error.errors()[0]['msg']}") from error

    async def done(self, method: str, url: str, *, deadline_s: float) -> None:
        """A request whose answer has no content. Raises TaskServerError."""
        await self._reply(method, url, None, deadline_s)

    async def _reply(self, method: str, url: str, request: BaseModel | bytes | None, deadline_s: float) -> HttpReply:
        content = json_of(request) if isinstance(request, BaseModel) else request
        try:
            reply = await bounded_request(
                self._http,
                method,
                url,
                content=content,
                headers={**json_headers(self._token_of(url)), **tracing.headers()},
                deadline_s=deadline_s,
                max_bytes=MAX_REPLY_BYTES,
            )
        except ReplyTooLarge as error:
            raise BadReply(str(error)) from error
        except Untrusted as error:
            raise BadReply(f"{error}; name its authority (`tls.ca` in a plan, --tls-ca of a server)") from error
        except HttpFailure as error:
            raise ServerUnreachable(str(error), never_sent=isinstance(error, Unreachable)) from error
        if reply.status >= 300:
            raise _refusal(f"{method} {url}", reply)
        return reply

    def _token_of(self, url: str) -> str | None:
        if self._token is None or (self._home and url.startswith(self._home)):
            return self._token
        scheme, _, rest = url.partition("://")
        origin = f"{scheme}://{rest.partition('/')[0]}"
        if origin not in self._tokens:
            self._tokens[origin] = token_for(self._token, origin)
        return self._tokens[origin]


def json_of(request: BaseModel) -> bytes:
    """A request as the JSON bytes that are sent."""
    return request.model_dump_json().encode()


def _refusal(call: str, reply: HttpReply) -> TaskServerError:
    try:
        return refusal_of(Problem.model_validate_json(reply.body))
    except ValidationError:
        passing = reply.status == 429 or reply.status >= 500
        return (ServerUnreachable if passing else BadReply)(f"{call}: status {reply.status} from something else")
