"""Checks of models' endpoints: whether each of their servers answers as a run will ask it."""

import json
import os
import re
import ssl
import time
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from eval_client.cli.doctor.finding import LONGER, Finding, fail, ok, skip, warn
from eval_client.cli.doctor.readiness import UNSCORED, broken_key, unreachable_agent, wrong_url
from proctor.connection.keys import KeyUnavailable
from proctor.http.client import DeadlineExceeded, HttpClient, HttpFailure, Unreachable, Untrusted
from proctor.llm.config import ChatConfig
from proctor.llm.model import ChatModel
from proctor.llm.outage import Failed
from proctor.llm.outcome import MAX_TOKENS_FIX, TOOLS_FIX, Outcome, outcome
from proctor.llm.passed_on import origin_of
from proctor.llm.wire import Reply
from proctor.tools.histories import normalised
from proctor.types import Action, Message, Tool, ToolCall

QUESTION = (Message(role="user", content="This only checks the connection. Reply with the one word: ready"),)
WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
TOOL = Tool(name="report_ready", description="Reports that the connection works.", parameters=WORD)
OPENING = (
    Message(role="system", content="This only checks the connection."),
    Message(role="user", content=f"Call the function {TOOL.name} with the word: ready"),
)
MADE_UP = Action(content="", tool_calls=(ToolCall(id="", name=TOOL.name, arguments='{"word": "ready"}'),))
PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
_UNKNOWN_MODEL = re.compile(
    r"\bmodel_not_found\b|\bmodel\b.*\b(not exist|not found|unknown|no such|invalid model|not loaded)", re.I | re.S
)
_WANTS_ROLE = re.compile(
    r"\bsystem\b.{0,40}\brole|\brole\b.{0,60}\bsystem\b|\bsystem messages?\b.{0,40}\bnot\b", re.I | re.S
)
_ONLY = re.compile(r"\bonly\b[^.\d]{0,60}?(\d+(?:\.\d+)?)", re.I)
"""The one value that an endpoint takes in a field."""
_WANTS_STREAM = re.compile(r"\bnon-stream|\bonly supports? stream|\bstream(ing)?\b.{0,20}\b(must be|required)\b", re.I)


class ModelProbe:
    """Requests to a server of a model, each sent once as a run sends it, and findings on the replies."""

    def __init__(self, http: HttpClient, user: str, config: ChatConfig, patience_s: float) -> None:
        """`user` names the agent or the task. Raises ValueError where the key can't be sent."""
        self._user, self._config, self._patience_s = user, config, min(patience_s, config.deadline_s)
        self._model = ChatModel(config.model_copy(update={"deadline_s": self._patience_s}), http)
        self._name = f"{user}: model {config.model} at {config.endpoint()}"

    async def complete(self) -> Finding:
        """Request one small completion with the plan's own sampling; it costs some twenty tokens."""
        begun = time.monotonic()
        reply = await self._ask(QUESTION)
        if isinstance(reply, Finding):
            return reply
        used = reply.usage
        counted = f"{used.prompt_tokens} + {used.completion_tokens}" if used else "not reported: estimated"
        if used and used.cached_tokens:
            counted += f", {used.cached_tokens} of them from its cache"
        spoken = f"dialect {self._config.dialect}{', streamed' if self._config.stream else ''}"
        return ok("agent", f"{self._name} answers in {time.monotonic() - begun:.1f} s ({spoken}); tokens: {counted}")

    async def look_up(self) -> Finding:
        """Request the endpoint's list of models, which costs nothing, and look for the agent's model in it.

        An agent server is asked for the model too: then it asks the endpoint behind.
        """
        listed = await self._get("")
        if isinstance(listed, Finding):
            return listed
        if b'"owned_by":"proctor"' in listed:
            found = await self._get(f"/{quote(self._config.model, safe='')}")
            return found if isinstance(found, Finding) else self._listed(listed)
        return self._listed(listed)

    async def tools(self) -> list[Finding]:
        """Offer a harmless function, then send a history in which it was called; each request costs some 100 tokens.

        The call is the reply's own, since what its endpoint demands back can't be made up; else a made-up one.
        """
        reply = await self._ask(OPENING, (TOOL,))
        if isinstance(reply, Finding):
            return [reply]
        called, found = normalised(reply.action, OPENING), self._called(reply.action)
        if not called.tool_calls:
            called = normalised(MADE_UP, OPENING).model_copy(update={"echo": called.echo})
        results = (Message(role="tool", content="It works.", tool_call_id=call.id) for call in called.tool_calls)
        reply = await self._ask((*OPENING, called.message(), *results), (TOOL,), is_history=True)
        takes = ok("agent-tools", f"{self._name}: takes histories with calls")
        return [found, reply if isinstance(reply, Finding) else takes]

    def _called(self, action: Action) -> Finding:
        if action.tool_calls:
            wants = ", and wants back what it thought" if action.echo else ""
            return ok("agent-tools", f"{self._name}: takes tools and answers with calls{wants}")
        why = "a session without calls scores 0, in some worlds only after all its turns, which are paid for"
        fix = "name a model that calls functions, add `tool_choice: required` to `sampling`, or play `protocol: text`"
        return warn("agent-tools-unused", f"{self._name}: takes tools, but answers without a call", why, fix)

    async def _ask(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), *, is_history: bool = False
    ) -> Reply | Finding:
        reply = await self._model.ask_once(messages, tools)
        if isinstance(reply, Reply):
            return reply
        if reply.outcome is Outcome.REFUSAL:
            return ok("agent", f"{self._name} answers, and declines: {reply.cause}")
        if reply.outcome is Outcome.CONTEXT_LIMIT:
            reply = Failed("a few words exceed its context", Outcome.REJECTED, 400)
        what = f"{self._user}: {reply.cause}"
        if reply.status is None:
            return _unreadable(what) if reply.error is None else self._no_reply(reply.error)
        if is_history and reply.status in (400, 422):
            fix = "set the agent's `reasoning` or `system_role` to what the endpoint demands (docs/how-to/agents.md)"
            return fail("agent-tools-history", what, "its trials fail at their second turn", fix)
        return self._refused(what, reply.status, reply.outcome)

    async def _get(self, path: str) -> bytes | Finding:
        """The list of models, or one of them."""
        try:
            reply = await self._model.models(self._patience_s, path)
        except HttpFailure as failure:
            return self._no_reply(failure.__cause__ or failure)
        if reply.status == 200:
            return reply.body
        if reply.status in (404, 405, 501) and not path:
            return skip("agent", f"{self._name}: has no list of models; only a completion would show whether it works")
        behind = origin_of(reply)
        origin = f"{self._user}: {self._model.endpoint.origin(reply.status)}"
        if behind:
            origin = f"{self._name}, {behind} behind it"
        what = f"{origin}: status {reply.status}: {str(reply.body, 'utf-8', 'replace')}"
        return self._refused(what, reply.status, outcome(reply.status, reply.headers, reply.body))

    def _listed(self, body: bytes) -> Finding:
        try:
            listed = [str(each["id"]) for each in json.loads(body)["data"]]
        except (ValueError, LookupError, TypeError):
            told = str(body, "utf-8", "replace")
            return _unreadable(f"{self._name}: answers, but not with a list of models: {told}")
        if self._config.model in listed:
            return ok("agent", f"{self._name} is listed")
        return _unknown_model(f"{self._name}: not among its models: {', '.join(listed[:10]) or 'none'}")

    def _no_reply(self, error: BaseException) -> Finding:
        """The finding on an error that was raised instead of a reply."""
        what = f"{self._name}: {error}"
        if isinstance(error, KeyUnavailable):
            return broken_key(what)
        unused = [] if self._config.proxy else [name for name in PROXIES if os.environ.get(name)]
        if unused and not isinstance(error, Untrusted):
            what += f" ({' and '.join(unused)}: set, but used only with `proxy: env` in the plan's endpoint)"
        if isinstance(error, Untrusted) or any(isinstance(each, ssl.SSLError) for each in _chain(error)):
            fix = "correct http or https in `base_url`, or the endpoint's certificate"
            return fail("agent-tls", what, UNSCORED, fix)
        if isinstance(error, DeadlineExceeded):
            why = "trials wait for each answer, up to the endpoint's `deadline_s`"
            return fail("agent-silent", what, why, f"check the endpoint; if it is only slow, {LONGER}")
        return unreachable_agent(what) if isinstance(error, Unreachable) else _unreadable(what)

    def _refused(self, what: str, status: int, came: Outcome) -> Finding:
        """The finding on a reply that is no answer, with what it comes to in a run."""
        said = what.partition(": status ")[2]
        if came is Outcome.NO_TOOLS:
            return fail("agent-tools-refused", what, "its tasks with `protocol: tools` can't be played", TOOLS_FIX)
        if came is Outcome.UNPAID:
            return fail("agent-quota", what, UNSCORED, "add credit to the account, or use another key")
        if status in (400, 404, 422) and _UNKNOWN_MODEL.search(said):
            return _unknown_model(what)
        if status in (401, 403) or (came is Outcome.UNAUTHORIZED and status != 404):
            fix = "let what names the key hold one of this endpoint for this model; "
            fix += "an agent server: one for what is behind"
            return fail("agent-key", what, UNSCORED, fix)
        if status == 429:
            return warn("agent-throttled", what, "a run retries and is slow", "lower `concurrency`, or wait")
        if status >= 500:
            why = "trials are retried and may stay unscored"
            return fail("agent-failing", what, why, "read the endpoint's own log")
        if status < 300:
            return _unreadable(what)
        if status not in (400, 413, 422):
            return wrong_url(what)
        fix = MAX_TOKENS_FIX if came is Outcome.MAX_TOKENS_FIELD else self._fix(said)
        return fail("agent-refuses", what, "every request of a run would be refused", fix)

    def _fix(self, said: str) -> str:
        """What to write in a plan whose requests an endpoint refuses with these words."""
        if _WANTS_STREAM.search(said):
            return "write `stream: true` beside the endpoint's `base_url`"
        if _WANTS_ROLE.search(said):
            return "write `system_role: developer`, or `user`, beside the model's `sampling`"
        name = next((each for each in self._config.request_sampling() if re.search(rf"\b{each}\b", said)), None)
        if name is None:
            return "correct `sampling` or `model`"
        only = _ONLY.search(said)
        wanted = f"correct `{name}`" if only is None else f"write `{name}: {only[1]}`"
        return f"{wanted} in the model's `sampling`, or leave it out there"


def _unknown_model(what: str) -> Finding:
    return fail("agent-model", what, UNSCORED, "correct `model`")


def _unreadable(what: str) -> Finding:
    fix = "correct `base_url`: something else answers there"
    return fail("agent-reply", what, "its replies can't be read", fix)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
