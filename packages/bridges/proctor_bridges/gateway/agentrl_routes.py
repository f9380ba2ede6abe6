"""The routes of AgentRL's controller. Under `/renew/api` an empty message keeps a session alive and is no answer."""

from fastapi import APIRouter, Request, Response

from proctor.http.server import add_route
from proctor_bridges.gateway import agentrl as wire
from proctor_bridges.gateway.agentbench import indices, sample_of
from proctor_bridges.gateway.foreign_session import ForeignSession, NoSlot, NotOffered
from proctor_bridges.gateway.gateway import Gateway
from proctor_bridges.gateway.wires import (
    ForeignWire,
    Refusal,
    answering,
    body_of,
    cancel_if_lost,
    note_delivery,
    refused,
    reply,
)

SESSION_S = 240.0
"""A session that nobody asks for in this time is ended."""
SLOT_S = 240.0
"""A start waits this long for a slot: AgentRL's client does not ask again."""
LONGEST_ID = 20
"""Digits of a session's id."""


class AgentRLRoutes:
    """The handlers; with `renews`, empty messages are no answers."""

    def __init__(self, gateway: Gateway, renews: bool) -> None:
        self._gateway, self._renews = gateway, renews

    async def get_indices(self, request: Request) -> Response:
        """The indices of a task's samples."""
        try:
            return reply(indices(await self._gateway.offer(request.query_params.get("name", ""))))
        except NotOffered as error:
            return refused(400, f"Error: {error}")

    async def start_sample(self, request: Request) -> Response:
        """Start a session; the answer has its first messages, functions and id."""
        asked = await body_of(request, wire.StartTask)
        if asked.custom_task is not None:
            return refused(400, "Error: custom_task: only the samples of get_indices can be started")
        try:
            session = await self._gateway.start(asked.name, sample_of(asked.index), patience_s=SLOT_S)
        except NoSlot as error:
            return refused(406, f"Error: {error}")
        await cancel_if_lost(request, session, self._gateway)
        return _stands(session)

    async def interact(self, request: Request) -> Response:
        """Send the agent's messages; the answer has the next ones, or the result."""
        session = self._session(request)
        asked = await body_of(request, wire.AgentMessages)
        if self._renews and wire.keeps_alive(asked):
            return _stands(session)
        try:
            answer = wire.reply_of(asked)
        except wire.NotOneMessage as error:
            return refused(400, f"Error: {error}")
        await self._gateway.step(session, answer)
        await note_delivery(request, session)
        return _stands(session)

    async def cancel(self, request: Request) -> Response:
        """End a session."""
        session = self._session(request)
        await self._gateway.cancel(session)
        return reply({"session_id": session.id}, headers={"session_id": str(session.id)})

    def _session(self, request: Request) -> ForeignSession:
        """Raises SessionGone, Refusal."""
        named = request.headers.get("session_id", "")
        if not named.isdecimal() or len(named) > LONGEST_ID:
            raise Refusal(400, "Error: send the header session_id of the answer to start_sample")
        return self._gateway.find(int(named))


def _stands(session: ForeignSession) -> Response:
    return reply(wire.output(session), headers={"session_id": str(session.id)})


def add_routes(routes: APIRouter, gateway: Gateway) -> None:
    """Add all routes, once for each way to take empty messages."""
    for prefix, renews in (("/api", False), ("/renew/api", True)):
        on = AgentRLRoutes(gateway, renews)
        add_route(routes, "GET", f"{prefix}/get_indices", answering(on.get_indices))
        for post in (on.start_sample, on.interact, on.cancel):
            add_route(routes, "POST", f"{prefix}/{post.__name__}", answering(post))


WIRE = ForeignWire(
    "AgentRL and AgentBench FC: serve their controller's routes.",
    "/agentrl",
    SESSION_S,
    add_routes,
)
