"""Checks of agents: whether each endpoint answers a small request with its key and its model."""

import json
import os
import re
import ssl
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import ValidationError

from eval_client.doctor.finding import Finding, fail, ok, skip, warn
from proctor.http.client import (
    AnyClient,
    DeadlineExceeded,
    HttpFailure,
    HttpReply,
    Unreachable,
    Untrusted,
)
from proctor.http.keys import KeyUnavailable
from proctor.llm.config import ChatConfig
from proctor.llm.dialects import DIALECTS, DialectName
from proctor.llm.dialects.messages import HEADERS
from proctor.llm.model import connection
from proctor.llm.outcome import MAX_TOKENS_FIX, read_error, refuses_max_tokens
from proctor.llm.wire import Request
from proctor.tools.histories import sendable
from proctor.types import Message, Tool

QUESTION = "This only checks the connection. Reply with the one word: ready"
EXCERPT_CHARS = 200
PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
_LIST = Request("/models", HEADERS, b"")
_UNKNOWN_MODEL = re.compile(r"\bmodel\b.*\b(not exist|not found|unknown|no such|invalid model|not loaded)", re.I | re.S)
_QUOTA = re.compile(r"\b(insufficient_quota|quota|billing|credits?|balance|payment)\b", re.I)


class ProbeReply(NamedTuple):
    """One request to an agent's endpoint, as findings describe it."""

    agent: str
    model: str
    url: str
    key_from: str
    """Such as `variable OPENAI_API_KEY`."""
    has_key: bool
    dialect: DialectName = "chat"
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"agent {self.agent}: model {self.model} at {self.url}"


async def complete(http: AnyClient, agent: str, config: ChatConfig, patience_s: float) -> Finding:
    """Request one small completion with the plan's own sampling; it costs some twenty tokens."""
    question = [Message(role="user", content=QUESTION)]
    asked, reply = await ask_completion(http, agent, config, question, patience_s=patience_s)
    return reply if isinstance(reply, Finding) else judge_completion(asked, reply.status, reply.body)


async def ask_completion(
    http: AnyClient,
    agent: str,
    config: ChatConfig,
    messages: Sequence[Message],
    *,
    patience_s: float,
    tools: Sequence[Tool] = (),
) -> tuple[ProbeReply, HttpReply | Finding]:
    """Request a completion as a run would; the finding where there is no reply."""
    fields = {**config.request_sampling(), "model": config.model}
    request = DIALECTS[config.dialect].request(sendable(messages), tools, fields, config.form())
    return await _ask(http, agent, config, request, patience_s=patience_s)


async def look_up(http: AnyClient, agent: str, config: ChatConfig, patience_s: float) -> Finding:
    """Request the endpoint's list of models, which costs nothing, and look for the agent's model in it."""
    asked, reply = await _ask(http, agent, config, _LIST, patience_s=patience_s)
    return reply if isinstance(reply, Finding) else judge_models(asked, reply.status, reply.body)


async def _ask(
    http: AnyClient, agent: str, config: ChatConfig, request: Request, *, patience_s: float
) -> tuple[ProbeReply, HttpReply | Finding]:
    reached = connection(config)
    has_key = reached.keys.changes or reached.keys.known is not None
    asked = ProbeReply(agent, config.model, reached.url, str(reached.keys), has_key, config.dialect)
    begun = time.monotonic()
    try:
        sent = await reached.send(
            http,
            request.path,
            request.body or None,
            request.headers,
            deadline_s=min(patience_s, config.deadline_s),
            max_bytes=config.max_reply_bytes,
        )
    except KeyUnavailable as failure:
        return asked, fail("key-broken", f"{asked}: {failure}", "mend the file or the command, and try it by hand")
    except HttpFailure as failure:
        proxies = [] if config.proxy else [name for name in PROXIES if os.environ.get(name)]
        return asked, judge_failure(asked, failure, unused=proxies)
    return asked._replace(seconds=time.monotonic() - begun), sent.reply


def judge_failure(asked: ProbeReply, failure: HttpFailure, unused: Sequence[str] = ()) -> Finding:
    """The finding for a request without a reply; `unused` are the variables of proxies that the plan does not use."""
    what = f"{asked}: {failure}"
    if unused and not isinstance(failure, Untrusted):
        what += f" ({' and '.join(unused)}: set, but used only with `proxy: env` in the plan's endpoint)"
    if isinstance(failure, Untrusted) or any(isinstance(each, ssl.SSLError) for each in _chain(failure)):
        return fail("agent-tls", what)
    if isinstance(failure, DeadlineExceeded):
        return fail("agent-silent", what)
    if isinstance(failure, Unreachable):
        return fail("agent-unreachable", what)
    return fail("agent-reply", what)


def judge_completion(asked: ProbeReply, status: int, body: bytes) -> Finding:
    """The finding for the reply to a completion request."""
    if status != 200:
        return _refused(asked, status, body)
    try:
        reply = DIALECTS[asked.dialect].read(body)
    except ValidationError:
        return fail("agent-reply", f"{asked}: answers, but not with a {asked.dialect} completion: {excerpt(body)}")
    used = reply.usage
    counted = f"{used.prompt_tokens} + {used.completion_tokens} tokens" if used else "tokens not reported: estimated"
    return ok("agent", f"{asked} answers in {asked.seconds:.1f} s, {counted}")


def judge_models(asked: ProbeReply, status: int, body: bytes) -> Finding:
    """The finding for the reply to a request for the list of models."""
    if status in (404, 405, 501):
        return skip("agent", f"{asked}: has no list of models; only a completion would show whether it works")
    if status != 200:
        return _refused(asked, status, body)
    try:
        listed = [str(each["id"]) for each in json.loads(body)["data"]]
    except (ValueError, LookupError, TypeError):
        return fail("agent-reply", f"{asked}: answers, but not with a list of models: {excerpt(body)}")
    if asked.model in listed:
        return ok("agent", f"{asked} is listed")
    return fail("agent-model", f"{asked}: not among its models: {', '.join(listed[:10]) or 'none'}")


def _refused(asked: ProbeReply, status: int, body: bytes) -> Finding:
    error = read_error(body)
    what = f"{asked}: status {status}: {excerpt(error.message.encode() or body)}"
    text = f"{error.code} {error.message}"
    if status in (401, 403):
        state = f"{asked.key_from} {'holds the key that was sent' if asked.has_key else 'is unset'}"
        return fail(
            "agent-key", f"{what} ({state})", f"let {asked.key_from} hold a key of this endpoint for this model"
        )
    if status == 402 or (status == 429 and _QUOTA.search(text)):
        return fail("agent-quota", what)
    if status == 429:
        return warn("agent-throttled", what)
    if status >= 500:
        return fail("agent-failing", what)
    if refuses_max_tokens(status, error):
        return fail("agent-refuses", what, MAX_TOKENS_FIX)
    if status in (400, 404, 422) and ("model_not_found" in error.code or _UNKNOWN_MODEL.search(text)):
        return fail("agent-model", what)
    return fail("agent-refuses" if status in (400, 413, 422) else "agent-url", what)


def excerpt(body: bytes) -> str:
    """The beginning of a reply in one line."""
    text = " ".join(body[: 4 * EXCERPT_CHARS].decode("utf-8", "replace").split())
    return text if len(text) <= EXCERPT_CHARS else text[: EXCERPT_CHARS - 3] + "..."


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
