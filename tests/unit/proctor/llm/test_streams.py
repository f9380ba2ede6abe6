"""An answer that comes as events is the answer that comes in one piece, in every dialect."""

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest

from proctor.connection.event_stream import whole_answer
from proctor.environment import AgentUnavailable
from proctor.llm.config import ChatConfig
from proctor.llm.dialects import DialectName, dialect_of
from proctor.llm.model import ChatModel, ModelRefused
from proctor.types import Message
from tests.support import via

ASKED = [Message(role="user", content="?")]
CALLS = [("c1", "look", '{"at": "the \\"door\\"", "n": [1, 2]}'), ("c2", "go", "{}"), ("c3", "say", "")]
Event = dict[str, Any]


def chat_whole(text: str, thought: str, calls: Sequence[tuple[str, str, str]], stop: str) -> Event:
    listed = [{"id": id_, "type": "function", "function": {"name": n, "arguments": a}} for id_, n, a in calls]
    message: Event = {"role": "assistant", "content": text, **({"reasoning_content": thought} if thought else {})}
    message |= {"tool_calls": listed} if listed else {}
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 3}}
    return {"model": "m-2", "choices": [{"index": 0, "message": message, "finish_reason": stop}], "usage": usage}


def pieces(text: str, chance: random.Random) -> Iterator[str]:
    while text:
        size = chance.randint(1, 6)
        yield text[:size]
        text = text[size:]


def chat_events(whole: Event, chance: random.Random) -> Iterator[Event]:
    choice, usage = whole["choices"][0], whole["usage"]
    message = choice["message"]

    def chunk(delta: Event, **more: object) -> Event:
        return {"model": "m-2", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, **more}]}

    yield chunk({"role": "assistant", "content": ""}, finish_reason=None)
    for field in ("reasoning_content", "content"):
        for piece in pieces(message.get(field, ""), chance):
            yield chunk({field: piece}, finish_reason=None)
    for index, call in enumerate(message.get("tool_calls", [])):
        first = {"name": call["function"]["name"], "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": first}]})
        for piece in pieces(call["function"]["arguments"], chance):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, finish_reason=choice["finish_reason"])
    yield {"model": "m-2", "choices": [], "usage": usage}


def messages_whole(text: str, thought: str, calls: Sequence[tuple[str, str, str]], stop: str) -> Event:
    uses = [{"type": "tool_use", "id": id_, "name": n, "input": json.loads(a or "{}")} for id_, n, a in calls]
    blocks = [{"type": "thinking", "thinking": thought, "signature": "c2ln"}, {"type": "text", "text": text}, *uses]
    usage = {"input_tokens": 7, "cache_read_input_tokens": 3, "output_tokens": 5}
    return {"type": "message", "model": "m-2", "content": blocks, "stop_reason": stop, "usage": usage}


def messages_events(whole: Event, chance: random.Random) -> Iterator[Event]:
    start = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(whole["content"]):
        empty = {"text": "", "thinking": "", "signature": "", "input": {}}
        yield {
            "type": "content_block_start",
            "index": index,
            "content_block": {key: empty.get(key, each) for key, each in block.items()},
        }
        yield {"type": "ping"}
        for field, kind in (("text", "text_delta"), ("thinking", "thinking_delta")):
            for piece in pieces(block.get(field, ""), chance):
                yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: piece}}
        if "signature" in block:
            delta = {"type": "signature_delta", "signature": block["signature"]}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        if block.get("input"):
            for piece in pieces(json.dumps(block["input"]), chance):
                delta = {"type": "input_json_delta", "partial_json": piece}
                yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}


def responses_whole(text: str, thought: str, calls: Sequence[tuple[str, str, str]], stop: str) -> Event:
    output: list[Event] = [{"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": thought}]}]
    output.append({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
    output += [{"type": "function_call", "call_id": id_, "name": n, "arguments": a} for id_, n, a in calls]
    return {"model": "m-2", "status": stop, "output": output, "usage": {"input_tokens": 7, "output_tokens": 5}}


def responses_events(whole: Event, chance: random.Random) -> Iterator[Event]:
    yield {"type": "response.created", "response": {**whole, "output": [], "status": "in_progress"}}
    for piece in pieces("any text", chance):
        yield {"type": "response.output_text.delta", "output_index": 0, "delta": piece}
    yield {"type": f"response.{whole['status']}", "response": whole}


DIALECT_CASES = [
    ("chat", chat_whole, chat_events, ("stop", "length", "tool_calls")),
    ("messages", messages_whole, messages_events, ("end_turn", "max_tokens", "tool_use")),
    ("responses", responses_whole, responses_events, ("completed",)),
]


def stream(events: Sequence[Event], chance: random.Random, end: str = "[DONE]") -> bytes:
    """The events as servers send them: with names, comments and line ends of several kinds."""
    line = chance.choice(["\n", "\r\n", "\r"])
    text = chance.choice(["", f": PROCESSING{line}{line}"])
    for event in events:
        named = f"event: {event['type']}{line}" if "type" in event else ""
        text += f"{named}data:{chance.choice(['', ' '])}{json.dumps(event)}{line}{line}"
        text += chance.choice(["", f": keep-alive{line}{line}"])
    return (text + (f"data: {end}{line}{line}" if end else "")).encode()


@pytest.mark.parametrize(("dialect", "whole", "events", "stops"), DIALECT_CASES)
def test_events_make_the_reply_that_comes_in_one_piece(
    dialect: DialectName, whole: Any, events: Any, stops: Sequence[str]
) -> None:
    for number in range(60):
        chance = random.Random(number)
        text, thought = ("".join(chance.choices('abc "\\\n\u00e9\U0001f600{}', k=chance.randint(0, 40))) for _ in "12")
        made = whole(text, thought, CALLS[: chance.randint(0, 3)], chance.choice(stops))
        told = stream(list(events(made, chance)), chance)
        assert dialect_of(dialect).read(whole_answer(told)) == dialect_of(dialect).read(json.dumps(made).encode())


@pytest.mark.parametrize(("dialect", "whole", "events", "stops"), DIALECT_CASES)
async def test_a_stream_that_is_cut_anywhere_is_no_answer(
    dialect: str, whole: Any, events: Any, stops: Sequence[str]
) -> None:
    chance = random.Random(1)
    all_events = list(events(whole("the answer is yes", "hm", CALLS[:1], stops[0]), chance))
    stopped = [json.dumps(event) for event in all_events]
    marks = ('"finish_reason": "stop"', '"stop_reason": "end_turn"', '"type": "response.completed"')
    last = max(number for number, event in enumerate(stopped) if any(mark in event for mark in marks))
    for cut in range(1, last + 1):
        if dialect == "chat":  # some write a reason that is none until the last piece
            for choice in (choice for event in all_events[:cut] for choice in event.get("choices", ())):
                choice["finish_reason"] = chance.choice([None, "", "null"])
        with pytest.raises(AgentUnavailable, match="the stream ended before the answer did"):
            await asked(stream(all_events[:cut], chance, ""), dialect)


async def asked(body: bytes, dialect: str = "chat", status: int = 200, *, said: str = "", **fields: Any) -> str:
    """What a model says whose endpoint streams this."""
    headers = {"Content-Type": said or "text/event-stream; charset=utf-8"}
    transport = httpx.MockTransport(lambda _: httpx.Response(status, content=body, headers=headers))
    async with httpx.AsyncClient(transport=transport) as client:
        given = {"base_url": "http://model/v1", "model": "m", "dialect": dialect, "max_tries": 1, **fields}
        answer = await ChatModel(ChatConfig.model_validate(given), via(client)).complete(ASKED)
    return answer.action.content


def chunks(*deltas: Event, finish: str | None = "stop") -> bytes:
    events: list[Event] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    events += [{"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}] if finish else []
    return stream(events, random.Random(0))


@pytest.mark.parametrize("said", ["text/event-stream", "application/json", "text/plain"])
async def test_events_that_come_unasked_are_read(said: str) -> None:
    assert await asked(chunks({"content": "fi"}, {"content": "ne"}), said=said) == "fine"


async def test_a_body_in_one_piece_is_read_where_a_stream_was_asked_for() -> None:
    whole = json.dumps(chat_whole("fine", "", [], "stop")).encode()
    for body in (whole, b"\n\n " + whole, b"data: " + whole + b"\n\n", b": PROCESSING\n\n: PROCESSING\n\n" + whole):
        assert await asked(body, stream=True) == "fine"
        assert await asked(body) == "fine"


async def test_a_failure_within_a_stream_is_a_failure() -> None:
    error: Event = {"error": {"message": "upstream went away", "code": 502}}
    started = chunks({"content": "fi"}, finish=None)
    for failure in (error, {**error, "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]}):
        with pytest.raises(AgentUnavailable, match="upstream went away"):
            await asked(started + stream([failure], random.Random(0)))
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with pytest.raises(AgentUnavailable, match="Overloaded"):
        await asked(stream([overloaded], random.Random(0)), "messages")


@pytest.mark.parametrize("output", [[], None])
def test_items_that_the_last_event_leaves_out_are_the_answer(output: object) -> None:
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    last = {"status": "completed", "output": output, "usage": {"input_tokens": 7, "output_tokens": 5}}
    body = stream(
        [{"type": "response.output_item.done", "item": item}, {"type": "response.completed", "response": last}],
        random.Random(0),
    )
    assert dialect_of("responses").read(whole_answer(body)).action.content == "hi"


async def test_a_filter_within_a_stream_is_a_refusal() -> None:
    with pytest.raises(ModelRefused):
        await asked(chunks({"content": "fi"}, finish="content_filter"))


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
async def test_a_request_asks_for_a_stream_and_for_its_usage(dialect: str) -> None:
    bodies: list[Event] = []
    kept: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        kept.append(request.headers["connection"])
        bodies.append(json.loads(request.content))
        return httpx.Response(500)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        given = {"base_url": "http://model/v1", "model": "m", "dialect": dialect, "max_tries": 1}
        for more in ({}, {"stream": True}):
            with pytest.raises(AgentUnavailable):
                await ChatModel(ChatConfig.model_validate(given | more), via(client)).complete(
                    ASKED, sampling={"top_p": 1}
                )
    assert kept == ["keep-alive", "close"], "servers end a connection after a stream without saying so"
    assert ("stream" in bodies[0], bodies[1]["stream"]) == (False, True)
    assert bodies[1].get("stream_options") == ({"include_usage": True} if dialect == "chat" else None)


def piece(index: int | None, id_: str = "", name: str = "", arguments: str = "") -> Event:
    """A piece of a call; what is empty or None is left out."""
    function = {key: text for key, text in (("name", name), ("arguments", arguments)) if text}
    numbered = {} if index is None else {"index": index}
    return {**numbered, **({"id": id_} if id_ else {}), "function": function}


@pytest.mark.parametrize(
    "deltas",
    [
        pytest.param(
            [piece(0, "a", "f", '{"x":'), piece(0, arguments="1}"), piece(0, "b", "g", "{}")], id="all have index 0"
        ),
        pytest.param([piece(None, "a", "f", '{"x":1}'), piece(None, "b", "g", "{}")], id="whole, without index"),
        pytest.param(
            [piece(0, "a", "f", '{"x":'), piece(0, "a", "f", "1}"), piece(1, "b", "g", "{}")], id="named in each piece"
        ),
        pytest.param(
            [piece(0, "a", "f"), piece(1, "b", "g", "{"), piece(0, arguments='{"x":1}'), piece(1, arguments="}")],
            id="interleaved",
        ),
    ],
)
def test_calls_are_put_together_however_their_pieces_are_numbered(deltas: list[Event]) -> None:
    body = chunks(*({"tool_calls": [delta]} for delta in deltas), finish="tool_calls")
    calls = dialect_of("chat").read(whole_answer(body)).action.tool_calls
    assert [(call.id, call.name, call.arguments) for call in calls] == [("a", "f", '{"x":1}'), ("b", "g", "{}")]


async def test_a_stream_may_be_far_larger_than_the_answer_in_it_but_the_answer_not_larger_than_its_limit() -> None:
    deltas = [{"content": "ab"} for _ in range(400)]
    assert len(await asked(chunks(*deltas), stream=True, max_reply_bytes=1024)) == 800
    with pytest.raises(AgentUnavailable, match="larger than 1024 bytes"):
        await asked(chunks(*deltas, *deltas), stream=True, max_reply_bytes=1024)
