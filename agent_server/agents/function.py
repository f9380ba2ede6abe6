"""Serves a Python function, or the object of a class, as an agent, with or without a model of its own."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.errors import RequestRefused
from proctor.agent_function import BROKEN_OFF, FunctionCaller, FunctionRaised
from proctor.environment import AgentStopped, ContextLimitExceeded, InputRefused
from proctor.llm.config import RESERVED
from proctor.llm.outage import Failed
from proctor.llm.outcome import FUNCTION_RAISED, Outcome
from proctor.types import Action, Message, Tool, Usage

if TYPE_CHECKING:
    from agent_server.agents.proxied import ProxiedAgent


class ServedFunction(ServedAgent):
    """Answers with a function's result; its exceptions become status 422, which our client does not retry.

    How the endpoint of its model fails passes as it came, whatever the function makes of it; a refusal or a full
    context the function may catch.
    """

    def __init__(self, caller: FunctionCaller, model: "ProxiedAgent | None" = None, digest: str | None = None) -> None:
        self.caller, self.wrapped = caller, model
        self._model, self._digest = model, digest

    def shown(self) -> Mapping[str, JsonValue]:
        """The digest of its file, parameters and model, and whether it is stateful."""
        return {"digest": self._digest, "stateful": self.caller.stateful}

    async def answer(self, request: AgentRequest) -> AgentReply:
        asked = None if self._model is None else _Asked(self._model, request)
        try:
            action, told = await self.caller(
                request.messages, request.tools, request.metadata, None if asked is None else asked.ask
            )
        except FunctionRaised as raised:
            failure = None if asked is None else asked.failure
            raise failure or RequestRefused(422, str(raised), code=FUNCTION_RAISED) from raised
        except AgentStopped as stopped:
            if asked is not None and asked.failure is not None:
                raise asked.failure from stopped
            raise
        finally:
            if asked is not None:
                asked.over = True
        if asked is None:
            return AgentReply(action, told or Usage())
        if asked.failure is not None:
            raise asked.failure
        return AgentReply(action, asked.usage.plus(told or Usage()))


class _Asked:
    """What one request has asked a function's model."""

    def __init__(self, model: "ProxiedAgent", request: AgentRequest) -> None:
        self._model, self._request = model, request
        self.usage = Usage()
        self.failure: RequestRefused | None = None
        self._stopped, self.over = False, False

    async def ask(
        self,
        messages: Sequence[Message | dict[str, Any]],
        tools: Sequence[Tool | dict[str, Any]] = (),
        **sampling: JsonValue,
    ) -> Action:
        """The model's answer, as in a run. Raises ContextLimitExceeded, InputRefused, RequestRefused."""
        if wrong := RESERVED & sampling.keys():
            raise TypeError(f"`{min(wrong)}` is none of the model's sampling; leave it out")
        if self.failure is not None or self.over:
            raise asyncio.CancelledError  # no `except Exception` of a function goes on
        whole, offered = map(Message.model_validate, messages), map(Tool.model_validate, tools)
        question = AgentRequest(tuple(whole), tuple(offered), self._request.metadata, sampling)
        try:
            reply = await self._model.ask(question)
        except asyncio.CancelledError:
            if not self._stopped:  # else a group of tasks breaks off the others
                self.failure = RequestRefused(422, BROKEN_OFF, code=FUNCTION_RAISED)
            raise
        if not isinstance(reply, Failed):
            self.usage = self.usage.plus(reply.usage or Usage())
            return reply.action
        self._stopped |= reply.outcome in (Outcome.CONTEXT_LIMIT, Outcome.REFUSAL)
        if reply.outcome is Outcome.CONTEXT_LIMIT:
            raise ContextLimitExceeded
        if reply.outcome is Outcome.REFUSAL:
            raise InputRefused(reply.cause)
        self.failure = self._model.refused(reply)
        raise asyncio.CancelledError from self.failure
