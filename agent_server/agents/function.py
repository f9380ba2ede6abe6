"""A Python function, served as an agent."""

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.errors import RequestRefused
from proctor.agent_function import FunctionCaller, FunctionRaised


class ServedFunction(ServedAgent):
    """Answers with what the function returns; what it raises is an error that no retry mends."""

    def __init__(self, caller: FunctionCaller) -> None:
        self._caller = caller

    async def answer(self, ask: AgentRequest) -> AgentReply:
        try:
            return AgentReply(await self._caller(ask.messages, ask.tools))
        except FunctionRaised as raised:
            raise RequestRefused(422, str(raised), code="function_raised") from raised
