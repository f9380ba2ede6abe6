"""One call to a task server, without retries: typed requests, answers and errors."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from proctor.config.tokens import AccessTokens
from proctor.http.client import (
    HttpClient,
    HttpFailure,
    HttpReply,
    ReplyTooLarge,
    Unreachable,
    Untrusted,
    bounded_request,
)
from proctor.observability import tracing
from proctor.types import with_keys_once
from task_server.http.access import token_for
from task_server.wire.errors import BadReply, ServerUnreachable, TaskServerError, Unauthorized, refusal_of
from task_server.wire.messages import Problem

MAX_REPLY_BYTES = 64 << 20
NO_CONTENT = 204
NONE: Mapping[str, str] = MappingProxyType({})

Answer = TypeVar("Answer", bound=BaseModel)


class Caller:
    """Calls task servers over one shared HTTP client.

    The token itself is sent only to the server at `home`; every other server gets the one `token_for` derives for it.
    Where it is refused, the call is repeated with each other one.
    """

    def __init__(
        self, http: HttpClient, tokens: AccessTokens | str | None, home: str = "", sender: Mapping[str, str] = NONE
    ) -> None:
        """`sender` are headers that say who sends, in every request."""
        self._http, self._sender = http, sender
        self._tokens = AccessTokens.given(tokens)
        self._may_change = self._tokens.may_change
        self._token = self._tokens.current
        """The token that the headers have."""
        self._home = f"{home.rstrip('/')}/" if home else ""
        self._at_home = self._headers(self._token)
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
        headers: Mapping[str, str] = NONE,
    ) -> Answer:
        """The server's answer to a request; a text is sent as it is, as JSON. Raises TaskServerError.

        `headers` are sent beside those of the token.
        """
        content = request.model_dump_json() if isinstance(request, BaseModel) else request
        token, refused = self._tokens.current if self._may_change else self._token, list[str]()
        while True:
            if token != self._token:
                self._token, self._at_home, self._elsewhere = token, self._headers(token), {}
            home = token is None or (self._home and url.startswith(self._home))
            own = self._at_home if home else self._elsewhere.get("/".join(url.split("/", 3)[:3])) or self._derived(url)
            if headers or tracing.recorders:
                own = {**own, **headers, **(tracing.headers() if tracing.recorders else NONE)}
            try:
                reply = await bounded_request(
                    self._http,
                    method,
                    url,
                    content=content.encode() if content is not None else None,
                    headers=own,
                    deadline_s=deadline_s,
                    max_bytes=MAX_REPLY_BYTES,
                )
            except HttpFailure as error:
                raise _failure(error) from error
            if reply.status != Unauthorized.status or token is None:
                break
            refused.append(token)
            if (token := self._tokens.other(refused)) is None:
                break
        if reply.status >= 300:
            failure = _refusal(f"{method} {url}", reply)
            if isinstance(failure, Unauthorized) and refused:
                raise Unauthorized(f"{method} {url}: the token{self._of_source()} was refused: {failure}")
            raise failure
        try:
            read = answer.model_validate_json(reply.body if reply.status != NO_CONTENT else b"{}")
            if b'"finish"' in reply.body or b'"metrics"' in reply.body:  # the last of two would be taken, silently
                json.loads(reply.body, object_pairs_hook=with_keys_once)
            return read
        except ValidationError as error:
            problem = error.errors(include_input=False)[0]
            where = "".join(f"{part}: " for part in [".".join(map(str, problem["loc"]))] if part)
            raise BadReply(f"{method} {url}: not a {answer.__name__}: {where}{problem['msg']}") from error
        except ValueError as error:
            raise BadReply(f"{method} {url}: not a {answer.__name__}: {error}") from error

    def _of_source(self) -> str:
        return f" of {self._tokens.source}" if self._tokens.source else ""

    def _derived(self, url: str) -> dict[str, str]:
        """The headers of requests to a server away from home, with a token of its own."""
        assert self._token is not None
        origin = "/".join(url.split("/", 3)[:3])
        return self._elsewhere.setdefault(origin, self._headers(token_for(self._token, origin)))

    def _headers(self, token: str | None) -> dict[str, str]:
        bearer = {} if token is None else {"Authorization": f"Bearer {token}"}
        return {"Content-Type": "application/json", **bearer, **self._sender}


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
