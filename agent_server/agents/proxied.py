"""A model at another endpoint, served under our name."""

import logging
import re
import time
from collections.abc import Callable

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.errors import RequestRefused
from proctor.http.client import HttpFailure
from proctor.llm.model import ChatModel
from proctor.llm.outage import Failed
from proctor.llm.outcome import Outcome
from proctor.llm.passed_on import NEEDS_METADATA, passed_on
from proctor.llm.wire import Reply

log = logging.getLogger(__name__)
LOOK_S, WELL = 5.0, frozenset({200, 404, 405, 429, 501})
"""Longest wait for an endpoint's list of models, which not all have, and what it may answer."""
MOST_CAUSES, QUIET_S = 1000, 300.0
"""Causes kept; one that comes again after so long is logged again."""
_VARYING = re.compile(r"[\w-]*\d[\w-]*")


class ProxiedAgent(ServedAgent):
    """Forwards each request to an endpoint once.

    What that answers in place of a completion passes as it came: judging it and trying again is the client's.
    """

    def __init__(self, model: ChatModel, clock: Callable[[], float] = time.monotonic) -> None:
        self._model, self._clock = model, clock
        self._sends_metadata = False
        """Whether a built-in agent stands behind, which asked for the metadata of a request."""
        self._logged: dict[tuple[int, str], float] = {}
        """(status, cause without numbers) -> when it came last"""

    async def answer(self, request: AgentRequest) -> AgentReply:
        reply = await self.ask(request)
        if isinstance(reply, Failed):
            raise self.refused(reply)
        return AgentReply(reply.action, reply.usage, reply.stop)

    async def ask(self, request: AgentRequest) -> Reply | Failed:
        """What the endpoint answers to one request."""
        sends, asked = self._sends_metadata, (request.messages, request.tools, request.metadata, request.sampling)
        reply = await self._model.pass_on(*asked, sends_metadata=sends)
        if not sends and request.metadata and isinstance(reply, Failed) and reply.says(NEEDS_METADATA):
            self._sends_metadata = True
            reply = await self._model.pass_on(*asked, sends_metadata=True)
        return reply

    async def failing(self) -> RequestRefused | None:
        try:
            reply = await self._model.models(LOOK_S)
        except HttpFailure as failure:
            return self.refused(Failed(str(failure), sent=False))
        cause = f"{self._model.endpoint.origin(reply.status)}: status {reply.status} for its list of models"
        return None if reply.status in WELL else self.refused(Failed(cause, reply=reply))

    def refused(self, failed: Failed) -> RequestRefused:
        """What the client gets in place of an answer; its cause is logged once."""
        reply = passed_on(failed, self._model.endpoint.origin(failed.reply and failed.reply.status))
        cause, now = (reply.status, _VARYING.sub("#", failed.cause)), self._clock()
        if now - self._logged.pop(cause, float("-inf")) > QUIET_S and failed.outcome is not Outcome.REFUSAL:
            log.warning("%s", failed.cause)
        self._logged[cause] = now
        if len(self._logged) > MOST_CAUSES:
            del self._logged[next(iter(self._logged))]
        return RequestRefused(reply.status, failed.cause, headers=reply.headers, passed_on=reply.body)
