"""A chat model at an endpoint of any dialect: its requests are tried again, and every failure is classified."""

import asyncio
import random as chance
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

from proctor import event_loop
from proctor.environment import AgentStopped, AgentUnavailable, ContextLimitExceeded, ConversationLost, InputRefused
from proctor.http.client import HttpClient, HttpFailure, HttpReply
from proctor.llm import traces
from proctor.llm.config import ChatConfig, renamed
from proctor.llm.dialects.messages import PAUSED, joined
from proctor.llm.endpoint import LIST, RAISED, ModelEndpoint
from proctor.llm.outage import EndpointDown, Failed, Outage, Waited
from proctor.llm.outcome import CONVERSATION_LOST, Outcome
from proctor.llm.wire import Fields, Messages, Reply, Request, Tools, Written, characters, estimated
from proctor.observability import tracing
from proctor.retry import RetryPolicy
from proctor.tools.histories import sendable
from proctor.types import Action, Message, Usage

MOST_PAUSES = 8
"""So often an answer that the endpoint paused is asked for again."""
END_S = 10.0
"""Longest wait for an agent server that is told of a session's end."""
ONE_TOKEN = Message(role="user", content="1")
Ask = Callable[[Request], Awaitable[Reply | Failed]]


class Completion(NamedTuple):
    """A model's answer, with its cost in tokens, time and requests."""

    action: Action
    usage: Usage
    model: str
    """The model's name as the endpoint reports it, often more specific than the requested one."""
    stop: str | None
    """The endpoint's finish_reason; `length` is an answer cut by `max_tokens`, not a context limit."""
    seconds: float
    """From the first request to the whole reply, waits between requests included."""
    tries: int
    """HTTP requests made."""
    metered: bool = True
    """False where the endpoint did not report the usage: `usage` is estimated then."""
    replica: str | None = None
    """The base URL that answered, where the endpoint has several."""


class ModelRefused(InputRefused):
    """An endpoint declined an input, with what it answered and what that cost."""

    def __init__(self, why: str, completion: Completion | None) -> None:
        super().__init__(why, "" if completion is None else completion.action.content)
        self.completion = completion


class ChatModel:
    """One model; share the client (`proctor.http.client.http_client`) among all models of a process.

    `on_reply` gets how each request failed, None for an answer. Raises ValueError where the configured key or base URL
    can't be used.
    """

    def __init__(
        self,
        config: ChatConfig,
        client: HttpClient,
        *,
        outage: Outage | None = None,
        on_reply: Callable[[Failed | None], None] = lambda failed: None,
        traces_content: bool = False,
        random: Callable[[], float] = chance.random,
        clock: Callable[[], float] = event_loop.clock,
        wall_clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._config, self.name, self._form = config, config.model, config.form()
        self.endpoint = ModelEndpoint(config, client, sleep, wall_clock)
        self._dialect = self.endpoint.dialect
        self._fields: Fields = {**config.request_sampling(), "model": config.model}
        self._varies = config.varies(self._fields)
        self._policy = RetryPolicy(max_tries=config.max_tries, max_retry_s=config.max_retry_s)
        self._on_reply, self._traces_content, self._outage = on_reply, traces_content, outage
        self._random, self._clock, self._sleep = random, clock, sleep

    def complete(
        self,
        messages: Messages,
        tools: Tools = (),
        metadata: Mapping[str, str] | None = None,
        sampling: Fields | None = None,
    ) -> Coroutine[Any, Any, Completion]:
        """The model's answer to a whole transcript. `sampling` takes precedence over the configured one.

        Metadata is sent only where the configuration asks for it. Raises ContextLimitExceeded and ModelRefused, which
        end a trial with a score; AgentRefused where no request can succeed, ToolsRefused where none with tools can,
        RequestRejected where this one can't; AgentUnavailable after all retries, naming the last cause and an excerpt
        of the last reply, without the key; EndpointDown where the run drains while the endpoint is down.
        """
        fields = self._fields
        if sampling:
            fields = {**self._config.request_sampling(sampling), "model": self.name}
        if self._varies or sampling:
            fields = self._config.in_trial(fields, metadata or {})
        if tracing.recorders:
            return self._traced(messages, tools, fields)
        return self._completed(messages, tools, fields)

    async def _traced(self, messages: Messages, tools: Tools, fields: Fields) -> Completion:
        """The answer to a request, under a span."""
        attributes = traces.request_attributes(self.name, self.endpoint.url, fields)
        with tracing.begin(f"{tracing.CHAT} {self.name}", "client", **attributes) as span:
            if self._traces_content:
                span.note(**{tracing.INPUT_MESSAGES: traces.messages_text(messages)})
            completion = await self._completed(messages, tools, fields)
            used = completion.usage
            span.note(tries=completion.tries, **traces.reply_attributes(completion.model, completion.stop, used))
            if self._traces_content:
                said = traces.messages_text([completion.action.message()], finish_reason=completion.stop or "")
                span.note(**{tracing.OUTPUT_MESSAGES: said})
        return completion

    async def _completed(self, messages: Messages, tools: Tools, fields: Fields) -> Completion:
        """The answer; failed requests are tried again. The waits for an endpoint that is down use no try."""
        started, waits = self._clock(), Waited(with_tools=bool(tools))
        try:
            reply = await self._retried(self._asked(messages, tools, fields), waits)
            if isinstance(messages, Written):
                messages.reply, messages.cause = getattr(reply, "raw", None), getattr(reply, "cause", "")
            elif isinstance(reply, Reply) and reply.stop == PAUSED:
                reply = await self._whole(reply, messages, tools, fields, partial(self._retried, waits=waits))
            if isinstance(reply, Failed):
                raise self._raised(reply, messages, tools, waits)
        except (AgentStopped, AgentUnavailable, EndpointDown, asyncio.CancelledError) as failure:
            vars(failure)["paid"] = self._wasted(messages, tools, waits)
            raise
        completion = self._completion(reply, messages, tools, max(0.0, self._clock() - started), waits.requests)
        wasted = self._wasted(messages, tools, waits) if waits.late else None
        return completion if wasted is None else completion._replace(usage=completion.usage.plus(wasted))

    def _asked(self, messages: Messages, tools: Tools, fields: Fields) -> Request:
        """The request for the next message of a conversation."""
        if isinstance(messages, Written):
            return messages.request
        return self._dialect.request(sendable(messages), tools, fields, self._form)

    def _raised(self, failed: Failed, messages: Messages, tools: Tools, waits: Waited) -> Exception:
        """What a call without an answer raises."""
        if failed.outcome is Outcome.CONTEXT_LIMIT:
            return ContextLimitExceeded()
        if failed.outcome is Outcome.REFUSAL:
            read = failed.refusal
            return ModelRefused(failed.cause, read and self._completion(read, messages, tools, 0.0, 1))
        if failed.says(CONVERSATION_LOST):
            return ConversationLost(failed.cause)
        return RAISED[failed.outcome][0](
            f"{failed.cause} (after {waits.tries} {'try' if waits.tries == 1 else 'tries'})"
        )

    def _completion(self, reply: Reply, messages: Messages, tools: Tools, seconds: float, tries: int) -> Completion:
        """An answer with its cost, which is estimated where the endpoint tells none."""
        usage, metered = reply.usage or Usage(), reply.usage is not None and reply.usage.counts
        if not metered:
            came = characters([reply.action.message()]) + len(reply.action.reasoning)
            money, usage = usage.billed_money, estimated(characters(messages, tools), came)
            if money:
                usage = usage._replace(billed_tokens=usage.estimated_tokens, billed_money=money)
        return Completion(reply.action, usage, reply.model or self.name, reply.stop, seconds, tries, metered)

    def _wasted(self, messages: Messages, tools: Tools, waits: Waited) -> Usage | None:
        """The estimated usage of requests that had no answer before their deadline, or before they were taken back."""
        count = waits.late + waits.out
        return estimated(count * characters(messages, tools), 0) if count else None

    async def _retried(self, asked: Request, waits: Waited) -> Reply | Failed:
        """What a request comes to after its last try."""
        started, outage = self._clock(), self._outage
        while True:
            reply = None if outage is not None and outage.down else await self._sent(asked, waits)
            if outage is not None and (reply is None or outage.may_have(reply, waits)):
                reply = await outage.ask(
                    partial(self._sent, asked, waits, again=True), self.ask_one_token, waits, reply
                )
            if isinstance(reply, Reply):
                self.endpoint.answered(with_tools=waits.with_tools)
                self._on_reply(None)
                return reply
            assert reply is not None
            if reply.throttled and outage is not None:
                await self._hold_back(reply, outage, waits)
                continue
            waits.tries += 1
            elapsed_s = self._clock() - started - waits.seconds
            wait_s = self._policy.wait_s(
                waits.tries, self._random(), elapsed_s=elapsed_s, retry_after_s=reply.retry_after_s
            )
            if reply.outcome is not Outcome.TRANSIENT or wait_s is None:
                return reply
            await self._sleep(wait_s)

    async def _sent(self, asked: Request, waits: Waited, *, again: bool = False) -> Reply | Failed:
        """What a request of a call comes to; another one once it may be sent."""
        if again:
            await self._sleep(0.0)
        reply = await self.endpoint.request(asked, waits)
        if isinstance(reply, Failed):
            self._on_reply(reply)
        return reply

    async def _whole(
        self, reply: Reply | Failed, messages: Messages, tools: Tools, fields: Fields, ask: Ask
    ) -> Reply | Failed:
        """The whole answer: one that the endpoint paused is asked for the rest."""
        for _ in range(MOST_PAUSES if self._config.dialect == "messages" else 0):
            if isinstance(reply, Failed) or reply.stop != PAUSED:
                break
            await self._sleep(0.0)
            more = await ask(self._asked([*messages, reply.action.message()], tools, fields))
            reply = joined(reply, more) if isinstance(more, Reply) else more
        return reply

    async def pass_on(
        self, messages: Messages, tools: Tools, metadata: Mapping[str, str], sampling: Fields, *, sends_metadata: bool
    ) -> Reply | Failed:
        """What a request comes to that is sent once, for a server whose clients judge failures and try again.

        The client's own `sampling` is sent as it is. The metadata is sent where it or the configuration asks for it.
        """
        fields = {**self._config.in_trial(self._fields, metadata), **renamed(sampling, self._config.max_tokens_field)}
        if sends_metadata and metadata:
            fields["metadata"] = {**metadata}
        attributes = traces.request_attributes(self.name, self.endpoint.url, fields) if tracing.recorders else {}
        with tracing.begin(f"{tracing.CHAT} {self.name}", "client", **attributes) as span:
            reply = await self.endpoint.passed_on(self._asked(messages, tools, fields))
            reply = await self._whole(reply, messages, tools, fields, self.endpoint.passed_on)
            if isinstance(reply, Reply):
                span.note(**traces.reply_attributes(reply.model or self.name, reply.stop, reply.usage or Usage()))
        return reply

    def ask_one_token(self) -> Coroutine[Any, Any, Reply | Failed]:
        """What a request for one token comes to."""
        least = {"model": self.name, "max_tokens": self._dialect.LEAST_TOKENS, **self._config.streaming()}
        asked = self._dialect.request([ONE_TOKEN], (), renamed(least, self._config.max_tokens_field), self._form)
        return self.endpoint.request(asked, Waited())

    def ask_once(self, messages: Messages, tools: Tools = ()) -> Coroutine[Any, Any, Reply | Failed]:
        """What one request comes to; it asks for a cache, if any would, however short it is."""
        form = self._form if self._form.cached_from is None else self._form._replace(cached_from=0)
        asked = self._dialect.request(sendable(messages), tools, self._fields, form)
        return self.endpoint.request(asked, Waited(with_tools=bool(tools)))

    async def models(self, deadline_s: float, of: str = "") -> HttpReply:
        """The endpoint's reply to a request for its models, or for the one `of` this path. Raises HttpFailure."""
        sent = await self.endpoint.exchange(LIST._replace(path=LIST.path + of), deadline_s)
        if isinstance(sent, Failed):
            raise HttpFailure(sent.cause) from sent.error
        return sent.reply

    async def end(self, session: str) -> None:
        """Tell an agent server that a session's conversations are over; one that is not reached forgets them later."""
        path = f"/conversations/{quote(session, safe='')}"
        await self.endpoint.exchange(LIST._replace(path=path, method="DELETE"), END_S)

    async def _hold_back(self, failed: Failed, outage: Outage, waits: Waited) -> None:
        """Wait after too many requests, which use no try. Raises EndpointDown, AgentRefused."""
        waits.throttles += 1
        wait_s = (failed.retry_after_s or 0.0) + self._random() * self._policy.widest_s(waits.throttles)
        with waits:
            await outage.pause(wait_s, failed.cause)
            await self._sleep(0.0)
