"""One request to the endpoint of a model, and what it comes to."""

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from proctor.connection.connection import Connection
from proctor.connection.event_stream import EVENT_BYTES
from proctor.connection.keys import KeyUnavailable
from proctor.environment import AgentRefused, AgentUnavailable, RequestRejected, ToolsRefused
from proctor.http.client import DeadlineExceeded, HttpClient, HttpFailure, HttpReply, Unreachable, bounded_request
from proctor.llm.config import ChatConfig
from proctor.llm.dialects import dialect_of
from proctor.llm.dialects.messages import HEADERS
from proctor.llm.outage import Failed, Waited
from proctor.llm.outcome import MAX_TOKENS_FIX, TOOLS_FIX, Outcome, Seen, most_tokens, outcome, read_error, said_status
from proctor.llm.passed_on import BEHIND, origin_of, way_of
from proctor.llm.wire import JsonObject, Reply, Request, objects
from proctor.observability import tracing
from proctor.observability.redaction import found_in, redacted
from proctor.retry import retry_after_s
from proctor.types import Usage

EXCERPT_CHARS = 300
COST_HEADER = "x-litellm-response-cost"
DENIALS = 8
"""So many refusals of the key, the model or the URL in a row, after an answer, are no accident."""
UNPAID_FIX = "the account has no credits left: top it up, then `proctor resume` goes on"
UNAUTHORIZED_FIX = "check the key, the model's name and `base_url`"


class AgentUnauthorized(AgentRefused):
    """The endpoint refuses the key, the model or the URL."""


def connection(config: ChatConfig) -> Connection:
    """How a model's endpoint is reached. Raises ValueError where a variable is unset or holds what can't be sent."""
    return Connection(config, config.endpoint(), config.api_key_env, dialect_of(config.dialect).KEY_HEADER)


LIST = Request("/models", HEADERS, b"", "GET")
"""The request for an endpoint's list of models."""
LIST_S = 15.0
_LENGTHS = ("max_model_len", "context_length", "max_context_length", "context_window")
"""How lists of models name a context's length: vLLM and SGLang; OpenRouter and Together; Mistral; Groq."""


def listed(body: bytes) -> dict[str, JsonObject]:
    """The models in an endpoint's list, by id; none in what is no such list."""
    try:
        told = from_json(body)
    except ValueError:
        return {}
    models = objects(told.get("data")) if isinstance(told, dict) else []
    return {str(each["id"]): each for each in models if "id" in each}


def context_length(body: bytes, model: str) -> int | None:
    """The context length of a model in an endpoint's list; None where the list does not tell it."""
    told = listed(body).get(model, {})
    lengths = (told.get(name) for name in _LENGTHS)
    return next((length for length in lengths if type(length) is int and length > 0), None)


class Sent(NamedTuple):
    """The reply to a request, and the key that it was sent with."""

    reply: HttpReply
    key: str | None
    raw: HttpReply
    """The reply as it came, where it is a stream."""


class ModelEndpoint:
    """The endpoint of one model, and what its earlier replies have told of it.

    Raises ValueError where the configured key or base URL can't be used.
    """

    def __init__(
        self,
        config: ChatConfig,
        client: HttpClient,
        sleep: Callable[[float], Awaitable[None]],
        wall_clock: Callable[[], float],
    ) -> None:
        self._client, self._sleep, self._wall_clock = client, sleep, wall_clock
        self.dialect = dialect_of(config.dialect)
        self._named = config.dialect
        self._connection = connection(config)
        self.url = self._connection.url
        self._where = f"model {config.model} at {self.url}{self.dialect.PATH}"
        self._deadline_s, self._max_bytes = config.deadline_s, config.max_reply_bytes
        self._model = config.model
        self._context: int | None = None
        """The model's context length in tokens, as the endpoint's list of models has it."""
        self._looked = False
        """Whether that list was asked for."""
        self._answered = False
        """Whether a request was answered."""
        self._denied = 0
        """Refusals of the key, the model or the URL in a row, after an answer."""
        self._took_tools = False
        """Whether the endpoint has answered a request with tools: then no later refusal is about offering them."""

    def answered(self, *, with_tools: bool) -> None:
        """Record an answer."""
        self._answered, self._denied = True, 0
        self._took_tools |= with_tools

    async def exchange(self, asked: Request, deadline_s: float | None = None) -> Sent | Failed:
        """The reply to a request; where it refuses a key that may have expired, to one with a newer key."""
        at, most, headers = self._connection, self._max_bytes, asked.headers
        if tracing.recorders:
            headers = {**headers, **tracing.headers()}
        try:
            keys, tries = at.keys, 0
            key = await keys.key() if keys.changes else keys.known
            while True:
                raw = reply = await bounded_request(
                    self._client,
                    asked.method,
                    at.url_of(asked.path),
                    content=asked.body or None,
                    headers=at.headers(key, headers),
                    deadline_s=deadline_s or self._deadline_s,
                    max_bytes=most * EVENT_BYTES if at.streams or asked.is_written else most,
                    route=at.route,
                )
                if at.streams or not reply.body.startswith(b"{"):
                    reply = at.whole(reply, most)
                if tries or not keys.changes or not (self._denies(reply) and await keys.renewed(key)):
                    return Sent(reply, key, raw)
                await self._sleep(0.0)
                key, tries = await keys.key(), 1
        except KeyUnavailable as failure:
            return Failed(redacted(f"{self._where}: {failure}"), sent=False, error=failure)
        except HttpFailure as failure:
            told = redacted(f"{failure}{self._unset()}")
            late = isinstance(failure, DeadlineExceeded)
            return Failed(told, sent=not isinstance(failure, Unreachable), judged=late, late=late, error=failure)

    def _denies(self, reply: HttpReply) -> bool:
        """Whether a reply refuses the key, which may have expired, and a newer one may be had."""
        if reply.status not in (401, 403) or BEHIND in reply.headers:
            return False
        return outcome(reply.status, reply.headers, reply.body) is Outcome.UNAUTHORIZED

    async def request(self, asked: Request, waits: Waited) -> Reply | Failed:
        """What one more request of a call comes to."""
        waits.requests += 1
        waits.out = True
        sent = await self.exchange(asked)
        waits.out = False
        read = sent if isinstance(sent, Failed) else self._read(sent, asked.body)
        if asked.is_written and isinstance(read, Reply) and isinstance(sent, Sent):
            read = read._replace(raw=sent.raw)
        if isinstance(read, Reply) and read.is_plain:
            return read
        reply = sent if isinstance(sent, Failed) else await self._judged(read, sent.reply, waits)
        if isinstance(reply, Failed):
            waits.late += reply.late
        return reply

    async def _judged(self, read: Reply | Failed | None, reply: HttpReply, waits: Waited) -> Reply | Failed:
        """What a reply comes to in which this was read."""
        seen = Seen(self._answered, self._context, waits.with_tools and not self._took_tools)
        came = outcome(reply.status, reply.headers, reply.body, seen)
        if came is Outcome.REJECTED and not self._looked:
            came = await self._with_context(reply, seen)
        broken = isinstance(read, Failed) and (read.repeats_key or came is Outcome.TRANSIENT)
        if read is not None and (came is Outcome.ANSWER or broken):
            return read
        return self._failed(reply, came, read)

    async def _with_context(self, reply: HttpReply, seen: Seen) -> Outcome:
        """What a rejection that names tokens comes to beside the model's context, which the endpoint is asked once."""
        if not most_tokens(reply.status, read_error(reply.body)):
            return Outcome.REJECTED
        self._looked = True
        listed = await self.exchange(LIST, LIST_S)
        if isinstance(listed, Sent) and listed.reply.status == 200:
            self._context = context_length(listed.reply.body, self._model)
        return outcome(reply.status, reply.headers, reply.body, seen._replace(context=self._context))

    def _read(self, sent: Sent, asked: bytes) -> Reply | Failed | None:
        """The completion in a reply, None in an error; a reply that holds the key it was asked with is none.

        What is played is journalled byte for byte. It may hold what is no real key, and what the request says too.
        """
        reply = sent.reply
        if not 200 <= reply.status < 300:
            return None
        try:
            read = self.dialect.read(reply.body)
        except ValidationError as error:
            problem = error.errors(include_input=False)[0]
            where = ".".join(str(part) for part in problem["loc"]) or "body"
            told = f"not a {self._named} completion: {where}: {problem['msg']}"
            return Failed(f"{self.origin(reply.status)}: {told}: {excerpt(reply)}", reply=reply)
        if secrets := self._connection.secrets(sent.key):
            held = [*filter(read.holds, secrets)]
            if held and not all(found_in(key, asked.decode()) for key in held):
                told = f"{self._where}: its reply repeats the key of {self._connection.keys}: not played"
                return Failed(told, repeats_key=True)
        return _billed(read, reply.headers[COST_HEADER]) if COST_HEADER in reply.headers else read

    def _failed(self, reply: HttpReply, came: Outcome, read: Reply | Failed | None) -> Failed:
        """A reply that is no answer, in which this was read."""
        behind = origin_of(reply)
        origin = f"{self._where}: {behind} behind it" if behind else self.origin(reply.status)
        said = f"{origin}: status {reply.status}: {excerpt(reply)}"
        if came in (Outcome.CONTEXT_LIMIT, Outcome.REFUSAL):
            self._answered = True
            return Failed(said, came, reply.status, refusal=read if isinstance(read, Reply) else None)
        error = read_error(reply.body)
        if error.is_ours:
            return Failed(redacted(error.message), Outcome.REJECTED, reply=reply)
        if self._answered and outcome(reply.status, reply.headers, reply.body) is Outcome.UNAUTHORIZED:
            self._denied += 1
            came = Outcome.UNAUTHORIZED if self._denied >= DENIALS else came
        sent, judged, late = way_of(reply, error)
        return Failed(
            cause=f"{said}{RAISED[came][1]}{' there' if behind and came is Outcome.UNAUTHORIZED else ''}",
            outcome=came,
            status=said_status(reply.status, error),
            sent=sent,
            judged=judged,
            late=late,
            retry_after_s=retry_after_s(reply.headers, self._wall_clock(), error.message),
        )

    async def passed_on(self, asked: Request) -> Reply | Failed:
        """An answer, or what came in its place; another dialect's word for what ends a trial becomes chat's."""
        sent = await self.exchange(asked)
        if isinstance(sent, Failed):
            return sent
        reply, read = sent.reply, self._read(sent, asked.body)
        came = outcome(reply.status, reply.headers, reply.body)
        if isinstance(read, Failed) or (read is not None and came is Outcome.ANSWER):
            return read
        if read is not None and self._named != "chat":
            if came in _STOPS:
                return read._replace(stop=_STOPS[came])
            if came is Outcome.TRANSIENT:
                reply = reply._replace(body=to_json({**from_json(reply.body), **_CHAT_FAILED}))
        cause = f"{self.origin(reply.status)}: status {reply.status}: {excerpt(reply)}"
        return Failed(cause, came, reply.status, reply=reply)

    def origin(self, status: int | None) -> str:
        """Which endpoint it is, and whether it was sent a key where that may be why it failed."""
        held = self._connection.keys.known is not None and status == 401
        return f"{self._where}{f' ({self._connection.keys} holds the key that was sent)' if held else self._unset()}"

    def _unset(self) -> str:
        """What an endpoint without a key may fail for."""
        keys = self._connection.keys
        return f" ({keys} is unset)" if keys.known is None and not keys.changes else ""


def excerpt(reply: HttpReply) -> str:
    """The beginning of a reply, to be shown."""
    text = " ".join(redacted(reply.body.decode("utf-8", "replace")).split())
    return text if len(text) <= EXCERPT_CHARS else text[: EXCERPT_CHARS - 3] + "..."


def _billed(reply: Reply, told: str) -> Reply:
    """A reply with the price that LiteLLM's proxy tells in a header; 0 is that of models which it does not know."""
    try:
        money = float(told)
    except ValueError:
        return reply
    usage = reply.usage or Usage()
    if usage.billed_tokens or usage.billed_money or not 0 < money < math.inf:
        return reply
    tokens = usage.prompt_tokens + usage.completion_tokens
    return reply._replace(usage=usage._replace(billed_tokens=tokens, billed_money=money))


_STOPS = {Outcome.CONTEXT_LIMIT: "context_length_exceeded", Outcome.REFUSAL: "content_filter"}
"""How chat says in an answer what other dialects say otherwise."""
_CHAT_FAILED = {"choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "error"}]}
RAISED: Mapping[Outcome, tuple[type[AgentUnavailable], str]] = {
    Outcome.TRANSIENT: (AgentUnavailable, ""),
    Outcome.REJECTED: (RequestRejected, ""),
    Outcome.UNPAID: (AgentRefused, f": {UNPAID_FIX}"),
    Outcome.UNAUTHORIZED: (AgentUnauthorized, f": {UNAUTHORIZED_FIX}"),
    Outcome.NO_TOOLS: (ToolsRefused, f": it takes no tools; {TOOLS_FIX}"),
    Outcome.MAX_TOKENS_FIELD: (AgentRefused, f": {MAX_TOKENS_FIX}"),
}
"""What is raised for an outcome after the last try, and the fix."""
