"""One OpenEnv client: its frames, and the episode that they play."""

from collections.abc import Iterator
from typing import get_args

from pydantic import ValidationError
from pydantic_core import from_json

from proctor.observability.redaction import redacted
from proctor.types import Finish
from proctor_bridges.gateway import openenv
from proctor_bridges.gateway.foreign_session import ForeignSession, GatewayError, NoSlot
from proctor_bridges.gateway.gateway import Gateway
from proctor_bridges.gateway.openenv import ClientFrame, EnvCall, EnvReset, Object, RpcError, RpcRequest
from task_server.wire.errors import TaskServerError
from task_server.wire.messages import Act

PATIENCE_S = 10.0
"""A reset waits this long for a slot."""


class Failure(Exception):
    """An error frame; secrets in it are redacted."""

    def __init__(self, code: str, message: str, **more: object) -> None:
        super().__init__(message)
        self.data = {"message": redacted(message), "code": code, **more}


class EpisodeClient:
    """One client of a task: its episode, and the answers to its frames."""

    def __init__(self, gateway: Gateway, task: str, turns: Iterator[int]) -> None:
        self._gateway, self._task, self._turns = gateway, task, turns
        self._session: ForeignSession | None = None
        self._episode_id: str | None = None

    async def answer(self, text: str | bytes) -> dict[str, object] | None:
        """The frame that answers a frame; None where that closes the connection."""
        try:
            frame = _read(text)
            if frame.type == "close":
                return None
            kind, data = await self._answer(frame)
            return {"type": kind, "data": data}
        except Failure as error:
            failure = error
        except ValidationError as error:
            failure = Failure("VALIDATION_ERROR", "Invalid message", errors=openenv.complaints(error))
        except ValueError as error:
            failure = Failure("VALIDATION_ERROR", str(error), errors=[])
        except (GatewayError, TaskServerError) as error:
            failure = Failure("EXECUTION_ERROR", str(error))
        return {"type": "error", "data": failure.data}

    async def _answer(self, frame: ClientFrame) -> tuple[str, object]:
        match frame.type:
            case "reset":
                return "observation", await self.reset(EnvReset.model_validate(frame.data))
            case "step":
                return "observation", await self._step(frame.data)
            case "mcp":
                return "mcp", await self.rpc(frame.data)
            case _:
                return "state", openenv.state(self._session, self._task, self._episode_id)

    async def reset(self, asked: EnvReset) -> dict[str, object]:
        """End the episode, if there is one, and begin another."""
        await self.end()
        offer = await self._gateway.offer(self._task)
        sample = openenv.chosen(asked, self._task, offer.catalogue.samples, next(self._turns))
        try:
            session = await self._gateway.start(self._task, sample, asked.seed or 0, patience_s=PATIENCE_S)
        except NoSlot as error:
            offer = await self._gateway.offer(self._task)
            busy, most = offer.total - offer.free, offer.total
            message = f"Server at capacity: {busy}/{most} sessions active. {error}"
            raise Failure("CAPACITY_REACHED", message, active_sessions=busy, max_sessions=most) from error
        self._session, self._episode_id = session, asked.episode_id
        return _unless_fault(session) | {"metadata": {"task": self._task, "sample": sample}}

    async def _step(self, data: Object) -> dict[str, object]:
        session = self._current()
        if not session.live:
            _unless_fault(session)
            return openenv.result(session, again=True)
        await self._gateway.step(session, Act(action=openenv.read_action(data)))
        return _unless_fault(session)

    async def rpc(self, data: Object) -> dict[str, object]:
        """The JSON-RPC answer to an MCP request of the episode."""
        try:
            request = RpcRequest.model_validate(data)
        except ValidationError as error:
            return _rpc_error(data.get("id"), openenv.INVALID_REQUEST, f"Invalid request: {error.errors()[0]['msg']}")
        try:
            return {"jsonrpc": "2.0", "id": request.id, "result": await self._called(request)}
        except RpcError as error:
            return _rpc_error(request.id, error.code, str(error))
        except (GatewayError, TaskServerError, Failure, ValueError) as error:
            return _rpc_error(request.id, openenv.INTERNAL, str(error))

    async def _called(self, request: RpcRequest) -> dict[str, object]:
        if (await self._gateway.offer(self._task)).catalogue.protocol != "tools":
            raise RpcError(openenv.INTERNAL, "Environment does not support MCP: it is a text task")
        if request.method not in ("tools/list", "tools/call"):
            raise RpcError(openenv.NO_METHOD, f"Method not found: {request.method[:100]}")
        session = self._current()
        if isinstance(session.state, Finish):
            _unless_fault(session)
            raise RpcError(openenv.INTERNAL, "The episode is over; send a `reset` frame")
        if request.method == "tools/list":
            return openenv.listed(session.state.tools)
        name, arguments = request.params.get("name"), request.params.get("arguments") or {}
        try:
            call = EnvCall.model_validate({"name": name, "arguments": arguments})
        except ValidationError as error:
            wrong = error.errors()[0]
            raise RpcError(openenv.NO_PARAMS, f"Invalid params: {wrong['loc'][0]}: {wrong['msg']}") from error
        await self._gateway.step(session, Act(action=openenv.calling("", [call])))
        _unless_fault(session)
        return openenv.called(session)

    def _current(self) -> ForeignSession:
        if self._session is None:
            raise Failure("EXECUTION_ERROR", openenv.RESET_FIRST)
        return self._gateway.find(self._session.id)

    async def end(self) -> None:
        """End the episode and free its slot."""
        session, self._session = self._session, None
        if session is not None:
            await self._gateway.cancel(session)


def _read(text: str | bytes) -> ClientFrame:
    """The frame of a message. Raises Failure and ValidationError."""
    try:
        found = from_json(text)
    except ValueError as error:
        raise Failure("INVALID_JSON", f"Invalid JSON: {error}") from error
    if isinstance(found, dict) and found.get("type") not in get_args(openenv.FrameType):
        raise Failure("UNKNOWN_TYPE", f"Unknown message type: {str(found.get('type', ''))[:100]}")
    return ClientFrame.model_validate(found)


def is_close(text: str | bytes) -> bool:
    """Whether a message is the frame that closes the connection."""
    try:
        return _read(text).type == "close"
    except (Failure, ValidationError):
        return False


def _unless_fault(session: ForeignSession) -> dict[str, object]:
    """The observation of a session. Raises Failure where it ended as a fault."""
    if isinstance(session.state, Finish) and session.state.score is None:
        raise Failure("EXECUTION_ERROR", f"{openenv.cause(session.state)}; send a `reset` frame to go on")
    return openenv.result(session)


def _rpc_error(id_: object, code: int, message: str) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": redacted(message), "data": None}}
