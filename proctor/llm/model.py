"""A chat model at an endpoint of any dialect: sends requests, retries them, and classifies every failure."""

import asyncio
import math
import random as chance
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal

from pydantic import JsonValue, ValidationError

from proctor.environment import (
    AgentRefused,
    AgentUnavailable,
    ContextLimitExceeded,
    InputRefused,
    RequestRejected,
    ToolsRefused,
)
from proctor.http.client import AnyClient, DeadlineExceeded, HttpFailure, HttpReply, Unreachable
from proctor.http.connection import Connection, Sent
from proctor.http.keys import KeyUnavailable
from proctor.llm import traces
from proctor.llm.config import ChatConfig, renamed
from proctor.llm.dialects import DIALECTS
from proctor.llm.dialects.messages import PAUSED, joined
from proctor.llm.outage import EndpointDown, Failed, Outage, Waited, uncounted
from proctor.llm.outcome import FUNCTION_RAISED, MAX_TOKENS_FIX, TOOLS_FIX, Outcome, Seen, is_plain, outcome, read_error
from proctor.llm.wire import Reply, Request, Usage, characters, estimated
from proctor.observability import gen_ai, tracing
from proctor.observability.redaction import redacted
from proctor.retry import RetryPolicy, retry_after_s
from proctor.tools.histories import sendable
from proctor.types import Action, Message, Tool, Value

EXCERPT_CHARS = 300
_ESCAPE = re.compile(rb"\\(?:u00|/)")
COST_HEADER = "x-litellm-response-cost"
MOST_PAUSES = 8
"""So often an answer that the endpoint paused is asked for again."""
DENIALS = 8
"""So many refusals of the key, the model or the URL in a row, after an answer, are no accident."""
ONE_TOKEN = Message(role="user", content="1")
UNPAID_FIX = "the account has no credits left: top it up, then `proctor resume` goes on"
UNAUTHORIZED_FIX = "check the key, the model's name and `base_url`"


class AgentUnauthorized(AgentRefused):
    """The endpoint refuses the key, the model or the URL."""


class Completion(Value):
    """A model's answer, with its cost in tokens, time and requests."""

    action: Action
    usage: Usage
    metered: bool = True
    """False where the endpoint did not report the usage: `usage` is estimated then."""
    model: str
    """The model's name as the endpoint reports it, often more specific than the requested one."""
    stop: str | None
    """The endpoint's finish_reason; `length` is an answer cut by `max_tokens`, not a context limit."""
    seconds: float
    """From the first request to the whole reply, waits between requests included."""
    tries: int
    """HTTP requests made."""
    replica: str | None = None
    """The base URL that answered, where the endpoint has several."""


class EndpointEvent(Value):
    """The outcome of one request, for limits on an endpoint that several agents share."""

    kind: Literal["ok", "throttled", "retry"]
    """throttled: status 429, whether or not it is retried; retry: another failure that is retried."""
    retry_after_s: float | None
    """Seconds that the endpoint asked us to wait."""
    cause: str


ANSWERED = EndpointEvent(kind="ok", retry_after_s=None, cause="")


def connection(config: ChatConfig) -> Connection:
    """How a model's endpoint is reached. Raises ValueError where a variable is unset or holds what can't be sent."""
    return Connection(config, config.endpoint(), config.api_key_env, DIALECTS[config.dialect].KEY_HEADER)


class ModelRefused(InputRefused):
    """An endpoint declined an input, with what it answered and what that cost."""

    def __init__(self, why: str, completion: Completion | None) -> None:
        super().__init__(why, "" if completion is None else completion.action.content)
        self.completion = completion


class ChatModel:
    """One model; share the client (`proctor.http.client.http_client`) among all models of a process.

    Raises ValueError where the configured key or base URL can't be used.
    """

    def __init__(
        self,
        config: ChatConfig,
        client: AnyClient,
        *,
        outage: Outage | None = None,
        on_event: Callable[[EndpointEvent], None] = lambda event: None,
        traces_content: bool = False,
        random: Callable[[], float] = chance.random,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._config, self.name = config, config.model
        self._client = client
        self._dialect, self._form = DIALECTS[config.dialect], config.form()
        self._connection = connection(config)
        self._url = self._connection.url
        self._fields: dict[str, JsonValue] = {**config.request_sampling(), "model": config.model}
        self._varies = config.varies(self._fields)
        self._policy = RetryPolicy(max_tries=config.max_tries, max_retry_s=config.max_retry_s)
        self._on_event, self._traces_content = on_event, traces_content
        self._outage = outage
        self._answered = False
        """Whether a request was answered."""
        self._denied = 0
        """Refusals of the key, the model or the URL in a row, after an answer."""
        self._took_tools = False
        """Whether the endpoint has answered a request with tools: then no later refusal is about offering them."""
        self._random, self._clock, self._wall_clock, self._sleep = random, clock, wall_clock, sleep

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        metadata: Mapping[str, str] | None = None,
        sampling: Mapping[str, JsonValue] | None = None,
    ) -> Coroutine[Any, Any, Completion]:
        """The model's answer to a whole transcript. `sampling` takes precedence over the configured one.

        Metadata is sent only where the configuration asks for it. Raises ContextLimitExceeded and ModelRefused, which
        end a trial with a score; AgentRefused where no request can succeed, ToolsRefused where none with tools can,
        RequestRejected where this one can't; AgentUnavailable after all retries, naming the last cause and an excerpt
        of the last reply, without the key; EndpointDown where the run drains while the endpoint is down.
        """
        own = self._fields if not sampling else {**self._config.request_sampling(sampling), "model": self.name}
        fields = self._config.in_trial(own, metadata or {}) if self._varies or sampling else own
        if not tracing.recorders:
            return self._retry_until_available(messages, tools, fields)
        return self._traced(messages, tools, fields)

    async def _traced(
        self, messages: Sequence[Message], tools: Sequence[Tool], fields: Mapping[str, JsonValue]
    ) -> Completion:
        """The answer to a request, under a span."""
        attributes = traces.request_attributes(self.name, self._url, fields)
        with tracing.begin(f"{gen_ai.CHAT} {self.name}", "client", **attributes) as span:
            if self._traces_content:
                span.note(**{gen_ai.INPUT_MESSAGES: traces.input_messages(messages)})
            completion = await self._retry_until_available(messages, tools, fields)
            used = completion.usage
            span.note(tries=completion.tries, **traces.reply_attributes(completion.model, completion.stop, used))
            if self._traces_content:
                span.note(**{gen_ai.OUTPUT_MESSAGES: traces.output_messages(completion.action, completion.stop)})
        return completion

    async def _retry_until_available(
        self, messages: Sequence[Message], tools: Sequence[Tool], fields: Mapping[str, JsonValue]
    ) -> Completion:
        """The answer; failed requests are tried again. The waits for an endpoint that is down use no try."""
        waits = Waited()
        try:
            completion = await self._answered_in_time(messages, tools, fields, waits)
        except (AgentUnavailable, EndpointDown) as failure:
            failure.paid = self._wasted(messages, tools, waits)
            raise
        if not completion.metered:
            came = characters([completion.action.message()]) + len(completion.action.reasoning)
            usage = estimated(characters(messages, tools), came)
            if money := completion.usage.billed_money:
                usage = usage.model_copy(update={"billed_tokens": usage.estimated_tokens, "billed_money": money})
            completion = completion.model_copy(update={"usage": usage})
        if (wasted := self._wasted(messages, tools, waits)) is not None:
            completion = completion.model_copy(update={"usage": completion.usage.plus(wasted)})
        return completion

    def _wasted(self, messages: Sequence[Message], tools: Sequence[Tool], waits: Waited) -> Usage | None:
        """The estimated usage of requests that had no answer before their deadline."""
        return estimated(waits.late * characters(messages, tools), 0) if waits.late else None

    async def _answered_in_time(
        self, messages: Sequence[Message], tools: Sequence[Tool], fields: Mapping[str, JsonValue], waits: Waited
    ) -> Completion:
        asked, offers_tools = self._dialect.request(sendable(messages), tools, fields, self._form), bool(tools)
        started, tries, throttles = self._clock(), 0, 0
        paused: Reply | None = None
        pauses = 0
        while True:
            reply = await self._ask(asked, waits, offers_tools=offers_tools)
            if isinstance(reply, Reply):
                self._answered, self._denied = True, 0
                self._took_tools |= offers_tools
                self._on_event(ANSWERED)
                reply = reply if paused is None else joined(paused, reply)
                if reply.stop != PAUSED or pauses == MOST_PAUSES:
                    return self._completion(reply, self._clock() - started, waits.requests)
                paused, pauses = reply, pauses + 1
                conversation = sendable([*messages, reply.action.message()])
                asked = self._dialect.request(conversation, tools, fields, self._form)
                continue
            if reply.throttled and self._outage is not None:
                throttles += 1
                await self._hold_back(reply, throttles, waits)
                continue
            tries += 1
            wait_s = self._wait_s(reply, tries, self._clock() - started - waits.seconds)
            if reply.throttled or wait_s is not None:
                self._tell(reply)
            if wait_s is None:
                raise reply.raises(f"{reply.cause} (after {tries} {'try' if tries == 1 else 'tries'})")
            await self._sleep(wait_s)

    async def _ask(self, asked: Request, waits: Waited, *, offers_tools: bool) -> Reply | Failed:
        """The outcome of a request; of one to an endpoint that is down, once it is back."""

        async def send() -> Reply | Failed:
            if waits.requests > 1:
                await self._sleep(0.0)  # a slot and a lease for another request
            reply = await self._request(asked, offers_tools=offers_tools)
            if isinstance(reply, Failed) and reply.outcome is Outcome.TRANSIENT and not reply.throttled:
                self._tell(reply)
            return reply

        if self._outage is None:
            waits.requests += 1
            reply = await self._request(asked, offers_tools=offers_tools)
            waits.late += isinstance(reply, Failed) and reply.late
            return reply
        return await self._outage.ask(send, self._answers_one_token, waits)

    async def _answers_one_token(self) -> bool:
        """Whether a request for one token is answered: then the endpoint is not down."""
        return isinstance(await self.ask_one_token(), Reply)

    async def ask_one_token(self) -> Reply | Failed:
        """What a request for one token comes to. Raises ContextLimitExceeded, ModelRefused."""
        least: dict[str, JsonValue] = {"model": self.name, "max_tokens": self._dialect.LEAST_TOKENS}
        least |= self._config.streaming()
        asked = self._dialect.request([ONE_TOKEN], (), renamed(least, self._config.max_tokens_field), self._form)
        return await self._request(asked, offers_tools=False)

    async def models(self, deadline_s: float) -> HttpReply:
        """The endpoint's reply to a request for its models. Raises HttpFailure."""
        most = self._config.max_reply_bytes
        try:
            sent = await self._connection.send(self._client, "/models", None, {}, deadline_s=deadline_s, max_bytes=most)
        except KeyUnavailable as failure:
            raise HttpFailure(str(failure)) from failure
        return sent.reply

    async def _hold_back(self, failed: Failed, throttles: int, waits: Waited) -> None:
        """Wait after too many requests, which use no try. Raises EndpointDown, AgentRefused."""
        assert self._outage is not None
        self._tell(failed)
        since = self._outage.throttled_since = self._outage.throttled_since or self._clock()
        self._outage.check_patience(since, failed.cause)
        wait_s = (failed.retry_after_s or 0.0) + self._random() * self._policy.widest_s(throttles)
        with uncounted(waits):
            await self._sleep(wait_s)

    def _tell(self, failed: Failed) -> None:
        kind: Literal["throttled", "retry"] = "throttled" if failed.throttled else "retry"
        self._on_event(EndpointEvent(kind=kind, retry_after_s=failed.retry_after_s, cause=failed.cause))

    def _wait_s(self, failed: Failed, tries: int, elapsed_s: float) -> float | None:
        if failed.outcome is not Outcome.TRANSIENT:
            return None
        return self._policy.wait_s(tries, self._random(), elapsed_s=elapsed_s, retry_after_s=failed.retry_after_s)

    def _completion(self, reply: Reply, seconds: float, tries: int) -> Completion:
        return Completion(
            action=reply.action,
            usage=reply.usage or Usage(),
            metered=reply.usage is not None and reply.usage.counts,
            model=reply.model or self.name,
            stop=reply.stop,
            seconds=seconds,
            tries=tries,
        )

    async def _request(self, asked: Request, *, offers_tools: bool) -> Reply | Failed:
        try:
            sent = await self._send(asked)
            if self._denies(sent.reply) and await self._connection.keys.renewed(sent.key):
                await self._sleep(0.0)
                sent = await self._send(asked)
        except KeyUnavailable as failure:
            return Failed(redacted(f"{self._where()}: {failure}"), sent=False)
        except HttpFailure as failure:
            told = redacted(f"{failure}{self._unset()}")
            late = isinstance(failure, DeadlineExceeded)
            return Failed(told, sent=not isinstance(failure, Unreachable), judged=late, late=late)
        reply = sent.reply
        read = self._read(sent, asked.body) if 200 <= reply.status < 300 else None
        if isinstance(read, Reply) and read.action.content and is_plain(read.stop, reply.body):
            return read
        seen = Seen(self._answered, None, offers_tools and not self._took_tools)
        came = outcome(reply.status, reply.headers, reply.body, seen)
        is_read = came is Outcome.ANSWER or (came is Outcome.TRANSIENT and isinstance(read, Failed))
        return read if read is not None and is_read else self._failed(reply, came)

    async def _send(self, asked: Request) -> Sent:
        """The reply to one request. Raises HttpFailure, KeyUnavailable."""
        return await self._connection.send(
            self._client,
            asked.path,
            asked.body,
            {**asked.headers, **tracing.headers()} if tracing.recorders else asked.headers,
            deadline_s=self._config.deadline_s,
            max_bytes=self._config.max_reply_bytes,
        )

    def _denies(self, reply: HttpReply) -> bool:
        """Whether a reply refuses the key, which may have expired, and a newer one may be had."""
        may = self._connection.keys.changes and reply.status in (401, 403)
        return may and outcome(reply.status, reply.headers, reply.body) is Outcome.UNAUTHORIZED

    def _read(self, sent: Sent, asked: bytes) -> Reply | Failed:
        """The completion in a reply; one that holds the key it was asked with is none.

        What is played is journalled byte for byte. It may hold what is no real key, and what the request says too.
        """
        reply = sent.reply
        try:
            read = self._dialect.read(reply.body)
        except ValidationError as error:
            problem = error.errors(include_input=False)[0]
            where = ".".join(str(part) for part in problem["loc"]) or "body"
            told = f"not a {self._config.dialect} completion: {where}: {problem['msg']}"
            return Failed(f"{self._where()}: {told}: {self._excerpt(reply)}")
        secrets = self._connection.secrets(sent.key)
        if secrets and any(self._repeats(key, reply.body, read, asked) for key in secrets):
            return Failed(f"{self._where()}: its reply repeats the key of {self._connection.keys}: not played")
        return _billed(read, reply.headers[COST_HEADER]) if COST_HEADER in reply.headers else read

    def _repeats(self, key: str, body: bytes, read: Reply, asked: bytes) -> bool:
        """Whether a reply holds our key, and the request's body does not."""
        may = key.encode() in body or _ESCAPE.search(body) is not None
        return may and key.encode() not in asked and read.holds(key)

    def _failed(self, reply: HttpReply, came: Outcome) -> Failed:
        """A reply that is no answer. Raises ContextLimitExceeded and ModelRefused, which end a trial with a score."""
        said = f"{self._where()}{self._unset()}: status {reply.status}"
        if came is Outcome.CONTEXT_LIMIT:
            self._answered = True
            raise ContextLimitExceeded
        if came is Outcome.REFUSAL:
            self._answered = True
            raise self._refused(reply, f"{said}: {self._excerpt(reply)}")
        error = read_error(reply.body)
        if FUNCTION_RAISED in error.code.split():  # its message may quote another endpoint's
            return Failed(redacted(error.message), Outcome.REJECTED, raises=RequestRejected)
        if reply.status == 401 and self._connection.keys.known is not None:
            said += f" ({self._connection.keys} holds the key that was sent)"
        if self._answered and outcome(reply.status, reply.headers, reply.body) is Outcome.UNAUTHORIZED:
            self._denied += 1
            came = Outcome.UNAUTHORIZED if self._denied >= DENIALS else came
        raises, fix = _RAISED[came]
        return Failed(
            cause=f"{said}: {self._excerpt(reply)}{fix}",
            outcome=came,
            status=reply.status,
            judged=True,
            raises=raises,
            retry_after_s=retry_after_s(reply.headers, self._wall_clock(), error.message),
        )

    def _refused(self, reply: HttpReply, why: str) -> ModelRefused:
        """The refusal of an input, with the text and the cost of a reply that has them."""
        try:
            read = self._dialect.read(reply.body) if reply.status == 200 else None
        except ValidationError:
            read = None
        return ModelRefused(why, None if read is None else self._completion(read, 0.0, 1))

    def _where(self) -> str:
        return f"model {self.name} at {self._url}{self._dialect.PATH}"

    def _unset(self) -> str:
        """What an endpoint without a key may fail for."""
        unset = self._connection.keys.known is None and not self._connection.keys.changes
        return f" ({self._connection.keys} is unset)" if unset else ""

    def _excerpt(self, reply: HttpReply) -> str:
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
    return reply._replace(usage=usage.model_copy(update={"billed_tokens": tokens, "billed_money": money}))


_RAISED: Mapping[Outcome, tuple[type[AgentUnavailable], str]] = {
    Outcome.TRANSIENT: (AgentUnavailable, ""),
    Outcome.REJECTED: (RequestRejected, ""),
    Outcome.UNPAID: (AgentRefused, f": {UNPAID_FIX}"),
    Outcome.UNAUTHORIZED: (AgentUnauthorized, f": {UNAUTHORIZED_FIX}"),
    Outcome.NO_TOOLS: (ToolsRefused, f": it takes no tools; {TOOLS_FIX}"),
    Outcome.MAX_TOKENS_FIELD: (AgentRefused, f": {MAX_TOKENS_FIX}"),
}
"""What is raised for an outcome after the last try, and the fix."""
