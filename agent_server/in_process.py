"""An agent server on the caller's event loop: for Python functions, which only their own process can call."""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Literal

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.agents.policies import ServedPolicy, TaskPolicies
from agent_server.app import build_app
from agent_server.errors import RequestRefused
from proctor.agent_function import AgentFunction, FunctionCaller, FunctionRaised
from proctor.config.task import TaskDefinition
from proctor.config.tokens import AccessTokens
from proctor.http.auth import Access
from proctor.http.server import listen, url_of
from proctor.http.serving import embedded, uvicorn_config
from proctor.llm.outcome import FUNCTION_RAISED
from proctor.observability.metrics import ProcessMetrics

HOST = "127.0.0.1"
KEEP_ALIVE_S = 65
MAX_REQUEST_BYTES = 16 << 20


class ServedFunction(ServedAgent):
    """Answers with a function's result; its exceptions become status 422, which our client does not retry."""

    def __init__(self, caller: FunctionCaller) -> None:
        self._caller = caller

    async def answer(self, request: AgentRequest) -> AgentReply:
        try:
            return AgentReply(await self._caller(request.messages, request.tools))
        except FunctionRaised as raised:
            raise RequestRefused(422, str(raised), code=FUNCTION_RAISED) from raised


@contextlib.asynccontextmanager
async def serving(
    functions: Mapping[str, AgentFunction],
    policies: Mapping[str, Literal["reference", "naive", "random"]],
    tasks: Sequence[TaskDefinition],
    token: str,
) -> AsyncIterator[str]:
    """Serve functions, and policies of tasks, by name; yields the base URL, up to and including /v1.

    Raises FileError where a task that a policy is to play can't be built.
    """
    known = TaskPolicies(tasks if policies else ())
    callers = {name: FunctionCaller(function) for name, function in functions.items()}
    agents: dict[str, ServedAgent] = {name: ServedFunction(caller) for name, caller in callers.items()}
    agents |= {name: ServedPolicy(kind, known) for name, kind in policies.items()}
    access = Access(AccessTokens(token))
    app = build_app(agents, access, MAX_REQUEST_BYTES, ProcessMetrics("agent-server"))
    listener = listen(HOST, 0)
    config = uvicorn_config(app, keep_alive_s=KEEP_ALIVE_S, last_replies_s=1, knows=access.knows)
    try:
        async with embedded(config, listener):
            yield url_of(HOST, listener) + "/v1"
    finally:
        for caller in callers.values():
            caller.close()
