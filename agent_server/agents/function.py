"""Serves a Python function, or the object of a class, as an agent."""

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.errors import RequestRefused
from proctor.agent_function import FunctionCaller, FunctionRaised
from proctor.llm.outcome import FUNCTION_RAISED
from proctor.types import Usage


class ServedFunction(ServedAgent):
    """Answers with a function's result; its exceptions become status 422, which our client does not retry."""

    def __init__(self, caller: FunctionCaller) -> None:
        self._caller = caller

    async def answer(self, request: AgentRequest) -> AgentReply:
        try:
            action, usage = await self._caller(request.messages, request.tools, request.metadata)
        except FunctionRaised as raised:
            raise RequestRefused(422, str(raised), code=FUNCTION_RAISED) from raised
        return AgentReply(action, usage or Usage())
