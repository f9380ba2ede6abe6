"""A chat model at an OpenAI-compatible endpoint: sends requests, retries them, and classifies every failure."""

import asyncio
import random as chance
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import JsonValue, ValidationError

from proctor.config.secrets import secret
from proctor.environment import AgentRefused, AgentUnavailable, ContextLimitExceeded, ToolsRefused
from proctor.http.client import AnyClient, HttpFailure, HttpReply, bounded_request, json_headers
from proctor.llm import traces
from proctor.llm.config import ChatConfig
from proctor.llm.errors import FUNCTION_RAISED, RequestRejected, is_context_limit, read_error
from proctor.llm.refusals import MAX_TOKENS_FIX, TOOLS_FIX, refuses_max_tokens, refuses_tools
from proctor.llm.request import request_body
from proctor.llm.wire import ChatReply, Usage
from proctor.observability import gen_ai, tracing
from proctor.observability.redaction import is_real_key, redacted
from proctor.retry import RetryPolicy, retry_after_s, retryable
from proctor.types import Action, Message, Tool, Value

EXCERPT_CHARS = 300
_ESCAPE = re.compile(rb"\\(?:u00|/)")
REFUSALS = frozenset({401, 403, 404})
"""A wrong key, a forbidden or unknown model, or a wrong base URL: no request of this configuration can succeed."""


class Completion(Value):
    """A model's answer, with its cost in tokens, time and requests."""

    action: Action
    usage: Usage
    metered: bool = True
    """False where the endpoint did not report the usage: `usage` is zero then, and means nothing."""
    model: str
    """The model's name as the endpoint reports it, often more specific than the requested one."""
    stop: str | None
    """The endpoint's finish_reason; `length` is an answer cut by `max_tokens`, not a context limit."""
    seconds: float
    """From the first request to the whole reply, waits between requests included."""
    tries: int
    """HTTP requests made."""


class EndpointEvent(Value):
    """The outcome of one request, for limits on an endpoint that several agents share."""

    kind: Literal["ok", "throttled", "retry"]
    """throttled: status 429, whether or not it is retried; retry: another failure that is retried."""
    retry_after_s: float | None
    """Seconds that the endpoint asked us to wait."""
    cause: str


ANSWERED = EndpointEvent(kind="ok", retry_after_s=None, cause="")


class _Failed(NamedTuple):
    cause: str
    retryable: bool = True
    throttled: bool = False
    retry_after_s: float | None = None
    raises: type[AgentUnavailable] = AgentUnavailable
    """What is raised after the last try."""


class ChatModel:
    """One model; share the client (`proctor.http.client.http_client`) among all models of a process.

    Raises ValueError where the configured key or base URL can't be used.
    """

    def __init__(
        self,
        config: ChatConfig,
        client: AnyClient,
        *,
        on_event: Callable[[EndpointEvent], None] = lambda event: None,
        traces_content: bool = False,
        random: Callable[[], float] = chance.random,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._config = config
        self._client = client
        self._url = config.endpoint() + "/chat/completions"
        self._key = secret(config.api_key_env)
        self._key_is_real = self._key is not None and is_real_key(self._key.get_secret_value())
        self._sampling = config.request_sampling()
        self._policy = RetryPolicy(max_tries=config.max_tries, max_retry_s=config.max_retry_s)
        self._on_event, self._traces_content = on_event, traces_content
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

        Metadata is sent only where the configuration asks for it. Raises ContextLimitExceeded; AgentRefused where no
        request can succeed, ToolsRefused where none with tools can, RequestRejected where this one can't;
        AgentUnavailable after all retries, naming the last cause and an excerpt of the last reply, without the key.
        """
        config, sampling = self._config, self._config.request_sampling(sampling) if sampling else self._sampling
        body = request_body(
            config.model,
            messages,
            tools,
            sampling,
            metadata if config.metadata else None,
            reasoning=config.reasoning,
            system_role=config.system_role,
        )
        if not tracing.recorders:
            return self._retry_until_available(body, offers_tools=bool(tools))
        return self._traced(body, messages, sampling, offers_tools=bool(tools))

    async def _traced(
        self, body: bytes, messages: Sequence[Message], sampling: Mapping[str, JsonValue], *, offers_tools: bool
    ) -> Completion:
        """The answer to a request, under a span."""
        config = self._config
        attributes = traces.request_attributes(config.model, self._url, sampling)
        with tracing.begin(f"{gen_ai.CHAT} {config.model}", "client", **attributes) as span:
            if self._traces_content:
                span.note(**{gen_ai.INPUT_MESSAGES: traces.input_messages(messages)})
            completion = await self._retry_until_available(body, offers_tools=offers_tools)
            used = completion.usage
            span.note(tries=completion.tries, **traces.reply_attributes(completion.model, completion.stop, used))
            if self._traces_content:
                span.note(**{gen_ai.OUTPUT_MESSAGES: traces.output_messages(completion.action, completion.stop)})
        return completion

    async def _retry_until_available(self, body: bytes, *, offers_tools: bool) -> Completion:
        started, tries = self._clock(), 0
        while True:
            tries += 1
            outcome = await self._request(body, offers_tools=offers_tools)
            if isinstance(outcome, ChatReply):
                self._took_tools |= offers_tools
                self._on_event(ANSWERED)
                return self._completion(outcome, self._clock() - started, tries)
            wait_s = self._wait_s(outcome, tries, self._clock() - started)
            if outcome.throttled or wait_s is not None:
                kind: Literal["throttled", "retry"] = "throttled" if outcome.throttled else "retry"
                self._on_event(EndpointEvent(kind=kind, retry_after_s=outcome.retry_after_s, cause=outcome.cause))
            if wait_s is None:
                raise outcome.raises(f"{outcome.cause} (after {tries} {'try' if tries == 1 else 'tries'})")
            await self._sleep(wait_s)

    def _wait_s(self, failed: _Failed, tries: int, elapsed_s: float) -> float | None:
        if not failed.retryable:
            return None
        return self._policy.wait_s(tries, self._random(), elapsed_s=elapsed_s, retry_after_s=failed.retry_after_s)

    def _completion(self, reply: ChatReply, seconds: float, tries: int) -> Completion:
        return Completion(
            action=reply.action(),
            usage=reply.used(),
            metered=reply.usage is not None,
            model=reply.model or self._config.model,
            stop=reply.choices[0].finish_reason,
            seconds=seconds,
            tries=tries,
        )

    async def _request(self, body: bytes, *, offers_tools: bool) -> ChatReply | _Failed:
        headers = json_headers(self._key.get_secret_value() if self._key is not None else None)
        if tracing.recorders:
            headers |= tracing.headers()
        try:
            reply = await bounded_request(
                self._client,
                "POST",
                self._url,
                content=body,
                headers=headers,
                deadline_s=self._config.deadline_s,
                max_bytes=self._config.max_reply_bytes,
            )
        except HttpFailure as failure:
            return _Failed(redacted(str(failure)))
        if reply.status == 200:
            return self._read(reply, body)
        return self._failed(reply, offers_tools=offers_tools)

    def _read(self, reply: HttpReply, asked: bytes) -> ChatReply | _Failed:
        """The completion in a reply with status 200; some gateways report failures so, which become failures here.

        One that holds the key it was asked with is none: what is played is journalled byte for byte. It may hold what
        is no real key, and what the request says too.
        """
        try:
            read = ChatReply.read(reply.body)
            if self._key_is_real and self._repeats_key(reply.body, read, asked):
                return _Failed(f"{self._where()}: its reply repeats the key of {self._config.api_key_env}: not played")
            return read
        except ValidationError as error:
            if is_context_limit(reply.status, read_error(reply.body)):
                raise ContextLimitExceeded from None
            problem = error.errors(include_input=False)[0]
            where = ".".join(str(part) for part in problem["loc"]) or "body"
            return _Failed(f"{self._where()}: not a chat completion: {where}: {problem['msg']}: {self._excerpt(reply)}")

    def _repeats_key(self, body: bytes, read: ChatReply, asked: bytes) -> bool:
        """Whether a reply holds our key, and the request's body does not."""
        key = self._key.get_secret_value() if self._key is not None else ""
        may = key.encode() in body or _ESCAPE.search(body) is not None
        return may and key.encode() not in asked and read.holds(key)

    def _failed(self, reply: HttpReply, *, offers_tools: bool) -> _Failed:
        error, said = read_error(reply.body), f"{self._where()}: status {reply.status}"
        if error.code == FUNCTION_RAISED:  # its message may quote another endpoint's
            return _Failed(redacted(error.message), retryable=False, raises=RequestRejected)
        if is_context_limit(reply.status, error):
            raise ContextLimitExceeded
        if offers_tools and not self._took_tools and refuses_tools(reply.status, error):
            cause = f"{said}: {self._excerpt(reply)}: it takes no tools; {TOOLS_FIX}"
            return _Failed(cause, retryable=False, raises=ToolsRefused)
        if refuses_max_tokens(reply.status, error):
            return _Failed(f"{said}: {self._excerpt(reply)}: {MAX_TOKENS_FIX}", retryable=False, raises=AgentRefused)
        hint = ""
        if reply.status == 401:
            state = "is unset" if self._key is None else "holds the key that was sent"
            hint = f" (variable {self._config.api_key_env} {state})"
        may_succeed = retryable(reply.status, error.code) and reply.headers.get("x-should-retry") != "false"
        return _Failed(
            cause=f"{said}{hint}: {self._excerpt(reply)}",
            retryable=may_succeed,
            throttled=reply.status == 429,
            raises=_raised(reply.status, may_succeed),
            retry_after_s=retry_after_s(reply.headers, self._wall_clock()),
        )

    def _where(self) -> str:
        return f"model {self._config.model} at {self._url}"

    def _excerpt(self, reply: HttpReply) -> str:
        text = " ".join(redacted(reply.body.decode("utf-8", "replace")).split())
        return text if len(text) <= EXCERPT_CHARS else text[: EXCERPT_CHARS - 3] + "..."


def _raised(status: int, may_succeed: bool) -> type[AgentUnavailable]:
    """What is raised for an error status after the last try."""
    if status in REFUSALS:
        return AgentRefused
    return RequestRejected if 400 <= status < 500 and not may_succeed else AgentUnavailable
