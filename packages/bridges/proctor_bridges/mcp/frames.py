"""Pure: the JSON-RPC frames of the Model Context Protocol that a server of tools gets and sends.

Served are the revision without sessions (2026-07-28: each request names its revision in `_meta`) and those with a
handshake back to 2025-03-26. Every answer is one JSON object: no event streams, no batches.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from pydantic import JsonValue

from proctor.types import Tool

MODERN = "2026-07-28"
HANDSHAKE = ("2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions that begin with `initialize`, oldest first."""
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
SERVER_INFO: dict[str, JsonValue] = {"name": "proctor", "version": version("proctor")}

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022
_MODERN_STATUS = {METHOD_NOT_FOUND: 404}
_HANDSHAKE_STATUS = {METHOD_NOT_FOUND: 200, INVALID_PARAMS: 200}
SHOWN = 100
"""Characters of a client's text that an error quotes."""

Id = str | int | float | None


class McpFrameError(Exception):
    """A frame that gets an error for an answer."""

    def __init__(self, code: int, message: str, frame: "McpFrame | None" = None, data: JsonValue = None) -> None:
        super().__init__(message)
        self.code = code
        self._frame, self._data = frame, data

    @property
    def status(self) -> int:
        """The HTTP status of the answer."""
        modern = self._frame is None or self._frame.modern
        return (_MODERN_STATUS if modern else _HANDSHAKE_STATUS).get(self.code, 400)

    def answer(self) -> dict[str, JsonValue]:
        """The error as a frame."""
        error: dict[str, JsonValue] = {"code": self.code, "message": str(self)}
        if self._data is not None:
            error["data"] = self._data
        return {"jsonrpc": "2.0", "id": self._frame.id if self._frame else None, "error": error}


@dataclass(frozen=True)
class McpFrame:
    """A request, or a notification, of a client."""

    method: str
    params: Mapping[str, JsonValue]
    id: Id
    is_notification: bool
    """Whether it gets no answer."""
    modern: bool
    """Whether it names its revision itself."""


@dataclass(frozen=True)
class McpOffer:
    """What a server shows to a client that has connected."""

    instructions: str
    tools: Sequence[Tool]


@dataclass(frozen=True)
class McpResult:
    """The result of a call."""

    text: str
    is_error: bool = False
    """Whether the call could not be read as one of the functions."""
    over: bool = False
    """Whether the episode has ended."""


@dataclass(frozen=True)
class McpCall:
    """A call of a tool."""

    name: str
    arguments: Mapping[str, JsonValue]


def read_frame(body: bytes, headers: Mapping[str, str]) -> McpFrame:
    """The frame in the body of a POST; the names of `headers` are lower-case. Raises McpFrameError."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise McpFrameError(PARSE_ERROR, "the body is no JSON") from None
    if not isinstance(given, dict) or given.get("jsonrpc") != "2.0" or not isinstance(given.get("method"), str):
        raise McpFrameError(INVALID_REQUEST, "the body must be one JSON-RPC 2.0 request or notification")
    number, params = given.get("id"), given.get("params")
    if isinstance(number, bool) or not isinstance(number, str | int | float | None):
        raise McpFrameError(INVALID_REQUEST, "id: must be a text or a number")
    _check_repeatable("id", number)
    if params is not None and not isinstance(params, dict):
        raise McpFrameError(INVALID_REQUEST, "params: must be an object")
    meta = params.get("_meta") if params else None
    revision = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    _check_repeatable(f"params._meta.{VERSION_KEY}", revision)
    frame = McpFrame(given["method"], params or {}, number, "id" not in given, revision is not None)
    if frame.modern:
        _check_revision(frame, revision, headers)
    return frame


def _check_repeatable(field: str, value: JsonValue) -> None:
    """Raises McpFrameError for what can be read, but not be written in an answer."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        text = f"{field}: holds a number that is not finite, or half a character"
        raise McpFrameError(INVALID_REQUEST, text) from None


def _check_revision(frame: McpFrame, revision: JsonValue, headers: Mapping[str, str]) -> None:
    """Raises McpFrameError for a revision that is not served, and for headers that contradict the body."""
    for name, value in (("mcp-protocol-version", revision), ("mcp-method", frame.method)):
        if headers.get(name, value) != value:
            raise McpFrameError(HEADER_MISMATCH, f"the header {name} is not what the body says", frame)
    if revision != MODERN:
        supported: dict[str, JsonValue] = {"supported": [MODERN, *HANDSHAKE], "requested": revision}
        raise McpFrameError(UNSUPPORTED_VERSION, f"revision {str(revision)[:SHOWN]} is not served", frame, supported)


def read_call(frame: McpFrame) -> McpCall:
    """The call in a `tools/call`. Raises McpFrameError."""
    name, arguments = frame.params.get("name"), frame.params.get("arguments")
    if not isinstance(name, str):
        raise McpFrameError(INVALID_PARAMS, "name: must be the name of a tool", frame)
    if arguments is not None and not isinstance(arguments, dict):
        raise McpFrameError(INVALID_PARAMS, "arguments: must be an object", frame)
    return McpCall(name, arguments or {})


def answer(frame: McpFrame, offer: McpOffer) -> dict[str, JsonValue]:
    """The answer to a request that plays no turn. Raises McpFrameError."""
    capabilities: JsonValue = {"tools": {"listChanged": False}}
    match frame.method:
        case "initialize":
            wanted = frame.params.get("protocolVersion")
            shown: dict[str, JsonValue] = {"capabilities": capabilities, "instructions": offer.instructions}
            revision = wanted if wanted in HANDSHAKE else HANDSHAKE[-1]
            return _answer(frame, {**shown, "protocolVersion": revision, "serverInfo": SERVER_INFO})
        case "server/discover":
            shown = {"capabilities": capabilities, "instructions": offer.instructions}
            return _answer(frame, {**shown, **_FRESH, "supportedVersions": [MODERN]})
        case "tools/list":
            tools: dict[str, JsonValue] = {"tools": [_tool(tool) for tool in offer.tools]}
            return _answer(frame, tools | (_FRESH if frame.modern else {}))
        case "ping":
            return _answer(frame, {})
        case _:
            raise McpFrameError(METHOD_NOT_FOUND, f"there is no method {frame.method[:SHOWN]!r}", frame)


_FRESH: dict[str, JsonValue] = {"cacheScope": "private", "ttlMs": 0}
"""Tells a client to ask again, as the tools may change with a turn."""


def call_answer(frame: McpFrame, result: McpResult) -> dict[str, JsonValue]:
    """The answer to a `tools/call`."""
    content: JsonValue = [{"type": "text", "text": result.text}]
    done: JsonValue = {"done": result.over}
    return _answer(frame, {"content": content, "isError": result.is_error, "structuredContent": done})


def _answer(frame: McpFrame, result: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if frame.modern:
        result = {**result, "resultType": "complete", "_meta": {SERVER_KEY: SERVER_INFO}}
    return {"jsonrpc": "2.0", "id": frame.id, "result": result}


def _tool(tool: Tool) -> JsonValue:
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters or {"type": "object"}}
