"""Replies that come as server-sent events, put together to the one JSON body that comes where nothing is streamed."""

import json
import re
from collections.abc import Iterator

from pydantic import JsonValue
from pydantic_core import from_json, to_json

EVENT_BYTES = 64
"""A streamed reply is at most so many times as large as the body that it makes: each token is an event of its own."""
CUT = "the stream ended before the answer did"
Json = dict[str, JsonValue]
_SET = frozenset(
    {"id", "type", "role", "name", "object", "model", "format", "signature", "status"}
    | {"finish_reason", "native_finish_reason", "stop_reason"}
)
"""Texts that come whole; all others of a delta are pieces of one text."""
_COMMENTS = re.compile(rb"\A(?:\s*:[^\n]*\n)+\s*")
_UNENDED = (None, "", "null")
"""What servers write as the finish reason of pieces that are not the last."""
_FINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})


def is_event_stream(content_type: str | None, body: bytes) -> bool:
    """Whether a body is server-sent events, also where nobody asked for them or its type is said wrongly."""
    begins = body.lstrip()[:6]
    said = content_type is not None and "event-stream" in content_type
    return begins.startswith((b"data:", b"event:", b":", b"id:", b"retry:")) or (said and not begins.startswith(b"{"))


def whole_answer(body: bytes) -> bytes:
    """The JSON body that the events of an answer make, in any dialect; an error where they say one, or end too soon.

    The body itself where only comments are before it, by which gateways keep a connection open.
    """
    if (bare := _COMMENTS.sub(b"", body)).startswith(b"{"):
        return bare
    made, chat, message, items = {}, _Chat(), _Message(), list[JsonValue]()
    for event in events(body):
        kind = event.get("type")
        if kind in _FINAL and isinstance(response := event.get("response"), dict):
            return to_json(response if response.get("output") or not items else {**response, "output": items})
        if kind == "response.output_item.done":  # some gateways tell the items nowhere else
            items.append(event.get("item"))
        if isinstance(event.get("error"), dict | str) or kind == "error":
            return to_json(event if "error" in event else {"error": event})
        if isinstance(event.get("choices"), list):
            chat.add(event)
        elif isinstance(kind, str) and kind.partition("_")[0] in ("message", "content"):
            message.add(kind, event)
        elif "choices" not in made and not isinstance(kind, str):
            made = event
    whole = chat.whole or message.whole or made
    ended = chat.ended if chat.whole else message.ended if message.whole else bool(made)
    return to_json(whole if ended else {"error": {"message": CUT, "type": "server_error"}})


def events(body: bytes) -> Iterator[Json]:
    """The JSON objects of a stream's events; what is none is passed over."""
    data = list[str]()
    for line in (*body.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""):
        if line.startswith("data:"):
            data.append(line[5:])
        elif not line and data:
            yield from _objects(data)
            data = []


def _objects(data: list[str]) -> Iterator[Json]:
    """The object of an event's lines; where they are no JSON together, that of each."""
    for texts in (["\n".join(data)], data):
        found = [each for each in map(_object, texts) if each is not None]
        if found:
            yield from found
            return


def _object(text: str) -> Json | None:
    try:
        read = from_json(text)
    except ValueError:
        try:
            read = json.loads(text)  # lone surrogates
        except (ValueError, RecursionError):
            return None
    return read if isinstance(read, dict) else None


def _merged(whole: JsonValue, piece: JsonValue, name: str = "") -> JsonValue:
    """What came so far, with another piece."""
    if isinstance(whole, dict) and isinstance(piece, dict):
        return whole | {key: _merged(whole.get(key), each, key) for key, each in piece.items()}
    if isinstance(piece, list):
        return _listed(whole if isinstance(whole, list) else [], piece)
    if isinstance(whole, str) and isinstance(piece, str) and name not in _SET:
        return whole + piece
    return whole if piece is None or (piece == "" and whole) else piece


def _listed(whole: list[JsonValue], pieces: list[JsonValue]) -> list[JsonValue]:
    """A list with further pieces, each added to the item of its index; without one it is an item of its own."""
    made = list(whole)
    for piece in pieces:
        index = piece.get("index") if isinstance(piece, dict) else None
        same = [place for place, each in enumerate(made) if isinstance(each, dict) and each.get("index") == index]
        last = made[same[-1]] if index is not None and same else None
        if last is None or (isinstance(last, dict) and isinstance(piece, dict) and _is_other(last, piece)):
            made.append(_merged({}, piece) if isinstance(piece, dict) else piece)
        else:
            made[same[-1]] = _merged(last, piece)
    return made


def _is_other(call: Json, piece: Json) -> bool:
    """Whether a piece is a call of its own, from a server that gives all calls one index."""
    return bool(call.get("id")) and bool(piece.get("id")) and call.get("id") != piece.get("id")


class _Chat:
    """A chat completion of chunks."""

    def __init__(self) -> None:
        self.whole: Json = {}
        self.ended = False
        self._message: Json = {}
        self._choice: Json = {}

    def add(self, chunk: Json) -> None:
        """Add a chunk; the last usage is that of the answer."""
        usage = chunk.get("usage") or self.whole.get("usage")
        self.whole |= {key: each for key, each in chunk.items() if each is not None and key != "choices"}
        if usage is not None:
            self.whole["usage"] = usage
        for choice in chunk["choices"] if isinstance(chunk["choices"], list) else ():
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                self._add(choice)
        self.whole["object"] = "chat.completion"
        self.whole["choices"] = [self._choice | {"message": self._message}] if self._choice else []

    def _add(self, choice: Json) -> None:
        self.ended |= choice.get("finish_reason") not in _UNENDED
        for name in ("delta", "message"):
            piece = choice.get(name)
            if isinstance(piece, dict):
                merged = _merged(self._message, piece)
                self._message = merged if isinstance(merged, dict) else self._message
        rest = {key: each for key, each in choice.items() if key not in ("delta", "message")}
        merged = _merged(self._choice, rest)
        self._choice = merged if isinstance(merged, dict) else self._choice


def _larger(counts: Iterator[JsonValue]) -> JsonValue:
    """The larger of some counts, which only grow; of others the last one that is given."""
    given = [count for count in counts if count is not None]
    numbers = [count for count in given if isinstance(count, int)]
    return max(numbers) if numbers else given[-1] if given else None


class _Message:
    """A message of Anthropic's dialect, of its blocks and their deltas."""

    def __init__(self) -> None:
        self.whole: Json = {}
        self.ended = False
        self._blocks: dict[JsonValue, Json] = {}
        self._arguments: dict[JsonValue, str] = {}

    def add(self, kind: str, event: Json) -> None:
        """Add an event."""
        index, delta = event.get("index"), event.get("delta")
        message, block = event.get("message"), event.get("content_block")
        if kind == "message_start" and isinstance(message, dict):
            self.whole = {**message}
        elif kind == "content_block_start" and isinstance(block, dict):
            self._blocks[index] = {**block}
        elif kind == "content_block_delta" and isinstance(delta, dict):
            self._delta(index, delta)
        elif kind == "message_delta":
            self.whole |= delta if isinstance(delta, dict) else {}
            usages = [each if isinstance(each, dict) else {} for each in (self.whole.get("usage"), event.get("usage"))]
            told = {**usages[0], **usages[-1]}
            self.whole["usage"] = {key: _larger(usage.get(key) for usage in usages) for key in told}
            self.ended |= self.whole.get("stop_reason") is not None
        if self.whole:
            self.whole["content"] = [self._block(index) for index in self._blocks]

    def _delta(self, index: JsonValue, delta: Json) -> None:
        partial = delta.get("partial_json")
        if isinstance(partial, str):
            self._arguments[index] = self._arguments.get(index, "") + partial
            return
        piece = {key: [each] if key == "citation" else each for key, each in delta.items() if key != "type"}
        if "citation" in piece:
            piece["citations"] = piece.pop("citation")
        merged = _merged(self._blocks.get(index, {}), piece)
        self._blocks[index] = merged if isinstance(merged, dict) else {}

    def _block(self, index: JsonValue) -> Json:
        """A block; arguments that are no JSON stay the text that they are."""
        block, text = self._blocks[index], self._arguments.get(index)
        arguments = _object(text) if text else None
        return block | {"input": text if arguments is None else arguments} if text else block
