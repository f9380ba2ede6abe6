"""The routes of AgentBench v0.2's controller."""

from fastapi import APIRouter, Request, Response

from proctor.http.server import add_route
from proctor.types import Finish
from proctor_bridges.gateway import agentbench as wire
from proctor_bridges.gateway.foreign_session import ForeignSession, NoSlot, NoSuchSample, NotOffered, Offer
from proctor_bridges.gateway.gateway import Gateway
from proctor_bridges.gateway.wires import (
    BadBody,
    Body,
    ForeignWire,
    Refusal,
    answering,
    body_of,
    cancel_if_lost,
    note_delivery,
    refused,
    reply,
)
from task_server.wire.errors import TaskServerError
from task_server.wire.messages import MAX_LARGE_BYTES, MAX_REQUEST_BYTES, cluster_numbers

SESSION_S = 240.0
"""v0.2 ends a session that nobody asks for in this time."""
DOES_NOT_EXIST = "Error: Task does not exist"


class AgentBenchRoutes:
    """The handlers."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def list_workers(self, _: Request) -> Response:
        """The tasks, each as one worker."""
        return reply(wire.workers(await self._gateway.offers()))

    async def get_indices(self, request: Request) -> Response:
        """The indices of a task's samples."""
        if "name" not in request.query_params:
            missing = {"loc": ["query", "name"], "msg": "field required", "type": "value_error.missing"}
            return refused(422, [missing])
        return reply(wire.indices(await self._offer(request.query_params["name"], unknown=400)))

    async def list_sessions(self, _: Request) -> Response:
        """The live sessions."""
        return reply(wire.sessions(list(self._gateway.sessions())))

    async def start_sample(self, request: Request) -> Response:
        """Start a session; the answer has its first observation."""
        asked = await _body(request, wire.StartSample)
        await self._offer(asked.name, unknown=406)
        try:
            session = await self._gateway.start(asked.name, wire.sample_of(asked.index))
        except NoSuchSample:
            return refused(400, "Error: Index out of bounds")
        except NoSlot:
            return refused(406, "Error: No workers available")
        await cancel_if_lost(request, session, self._gateway)
        return _stands(session)

    async def interact(self, request: Request) -> Response:
        """Send the agent's reply; the answer has the next observation, or the result."""
        asked = await _body(request, wire.Interact)
        session = self._gateway.find(asked.session_id)
        if asked.agent_response.status == "cancelled":
            await self._gateway.cancel(session)
            return reply(wire.output(session, cancelled=True))
        await self._gateway.step(session, wire.reply_of(asked.agent_response))
        await note_delivery(request, session)
        return _stands(session)

    async def cancel(self, request: Request) -> Response:
        """End a session."""
        asked = await _body(request, wire.SessionId)
        session = self._gateway.find(asked.session_id)
        over = not session.live
        await self._gateway.cancel(session)
        return refused(400, "Error: Session does not exist") if over else reply(asked)

    async def cancel_all(self, _: Request) -> Response:
        """End all sessions."""
        for session in list(self._gateway.sessions()):
            await self._gateway.cancel(session)
        return reply(None)

    async def calculate_overall(self, request: Request) -> Response:
        """The metrics over given results of a task."""
        asked = await _body(request, wire.CalculateOverall, MAX_LARGE_BYTES)
        offer = await self._offer(asked.name, unknown=400)
        try:
            return reply(await self._overall(asked, offer))
        except (TaskServerError, ValueError) as error:
            return refused(400, f"Error: these results can't be summarized: {error}")

    async def _overall(self, asked: wire.CalculateOverall, offer: Offer) -> object:
        finishes = [(output, wire.finish_of(output)) for output in asked.results]
        scored = [(output, finish) for output, finish in finishes if finish is not None]
        clusters = offer.catalogue.cluster_of()
        samples = ["" if output.index is None else wire.sample_of(output.index) for output, _ in scored]
        numbers = cluster_numbers(clusters.get(sample, sample) for sample in samples)
        summary = await self._gateway.summarize(asked.name, [finish for _, finish in scored], numbers)
        return wire.overall(summary, len(scored), len(finishes))

    async def nothing(self, _: Request) -> Response:
        """Accepted for clients that send it; does nothing."""
        return reply(None)

    async def _offer(self, task: str, *, unknown: int) -> Offer:
        try:
            offer = await self._gateway.offer(task)
        except NotOffered as error:
            raise Refusal(unknown, DOES_NOT_EXIST) from error
        if offer.catalogue.protocol == "tools":
            fix = "v0.2 has no function calls; serve the task by `protocol: text`"
            raise Refusal(406, f"Error: task {task!r} is played by function calls; {fix}")
        return offer


async def _body(request: Request, kind: type[Body], max_bytes: int = MAX_REQUEST_BYTES) -> Body:
    """The body of a request. Raises BadBody, also where it is said to be no JSON, as v0.2's servers refuse it."""
    named = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if named and named != "application/json" and not (named.startswith("application/") and named.endswith("+json")):
        raise BadBody(f"the body is {named[:100]}, not application/json")
    return await body_of(request, kind, max_bytes)


def _stands(session: ForeignSession) -> Response:
    stands = wire.output(session)
    faulty = isinstance(session.state, Finish) and session.state.score is None
    return refused(501, stands) if faulty else reply(stands)


def add_routes(routes: APIRouter, gateway: Gateway) -> None:
    """Add all routes."""
    on = AgentBenchRoutes(gateway)
    for get in (on.list_workers, on.get_indices, on.list_sessions):
        add_route(routes, "GET", f"/{get.__name__}", answering(get))
    for post in (on.start_sample, on.interact, on.cancel, on.cancel_all, on.calculate_overall):
        add_route(routes, "POST", f"/{post.__name__}", answering(post))
    for name in ("sync_all", "clean_worker", "clean_session"):
        add_route(routes, "POST", f"/{name}", answering(on.nothing))


WIRE = ForeignWire(
    "AgentBench v0.2: serve its controller's routes.",
    "/agentbench/api",
    SESSION_S,
    add_routes,
)
