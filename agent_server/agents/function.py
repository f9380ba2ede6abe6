"""A Python function, served as an agent."""

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.errors import RequestRefused
from proctor.agent_function import FunctionCaller, FunctionRaised
from proctor.llm.errors import FUNCTION_RAISED


class ServedFunction(ServedAgent):
    """Answers with the function's result; its exceptions become status 422, which our client does not retry."""

    def __init__(self, caller: FunctionCaller) -> None:
        self._caller = caller

    async def answer(self, request: AgentRequest) -> AgentReply:
        try:
            return AgentReply(await self._caller(request.messages, request.tools))
        except FunctionRaised as raised:
            raise RequestRefused(422, str(raised), code=FUNCTION_RAISED) from raised
