"""A chat model's requests, retries and failures, with scripted replies and a clock that only sleeping moves."""

import logging
import traceback
from collections.abc import Callable, Iterator
from typing import NamedTuple

import httpx
import pytest

from proctor.environment import AgentUnavailable, ContextLimitExceeded, RequestRejected
from proctor.http.client import DeadlineExceeded
from proctor.llm.config import ChatConfig
from proctor.llm.model import ChatModel
from proctor.llm.outage import Failed, Outage, paid_by
from proctor.types import Message, Tool, Usage
from tests.support import via

MESSAGES = (Message(role="user", content="hello"),)
CONFIG = ChatConfig(model="m", base_url="http://host/v1")
ODD_PRICES: tuple[object, ...] = (-5, True, "2", None, [])
CANARY = "canary-0123456789abcdef"


def answer(content: str | None = "hi", **fields: object) -> httpx.Response:
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return httpx.Response(200, json={"model": "m-2026", "choices": [choice], **fields})


def error(status: int, message: str = "no", headers: dict[str, str] | None = None, code: str = "") -> httpx.Response:
    return httpx.Response(status, json={"error": {"message": message, "code": code}}, headers=headers)


class Rig(NamedTuple):
    model: ChatModel
    requests: list[httpx.Request]
    slept: list[float]
    events: list[Failed | None]


def rig(*replies: httpx.Response | Exception, config: ChatConfig | None = None, outage: Outage | None = None) -> Rig:
    requests: list[httpx.Request] = []
    slept: list[float] = []
    events: list[Failed | None] = []
    script: Iterator[httpx.Response | Exception] = iter(replies)

    def handle(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        reply = next(script)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    model = ChatModel(
        config or CONFIG,
        via(httpx.AsyncClient(transport=httpx.MockTransport(handle))),
        outage=outage,
        on_reply=events.append,
        random=lambda: 0.5,
        clock=lambda: sum(slept),
        wall_clock=lambda: 784111740.0,
        sleep=sleep,
    )
    return Rig(model, requests, slept, events)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)


async def test_an_answer_comes_with_its_cost() -> None:
    rigged = rig(answer("hi", usage={"prompt_tokens": 9, "completion_tokens": 2}))
    completion = await rigged.model.complete(MESSAGES)
    assert completion.action.content == "hi"
    assert completion.usage == Usage(prompt_tokens=9, completion_tokens=2)
    assert (completion.model, completion.stop, completion.seconds, completion.tries) == ("m-2026", "stop", 0, 1)
    assert rigged.events == [None]
    assert completion.metered


async def test_an_answer_without_its_cost_has_an_estimate_by_its_characters() -> None:
    asked = [Message(role="user", content="x" * 35), Message(role="assistant", content="y" * 7)]
    completion = await rig(answer("z" * 71)).model.complete(asked)
    assert not completion.metered
    assert completion.usage == Usage(prompt_tokens=12, completion_tokens=21, estimated_tokens=33)


@pytest.mark.parametrize(
    "usage",
    [{}, {"prompt_tokens": None}, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, {"cost": 0.5}, None],
)
@pytest.mark.parametrize("told", ["0.25", None])
async def test_a_usage_without_counts_is_none_and_a_price_holds_for_what_is_estimated(
    usage: dict[str, object] | None, told: str | None
) -> None:
    reply = answer("z" * 7, usage=usage)
    if told is not None:
        reply.headers["x-litellm-response-cost"] = told
    completion = await rig(reply).model.complete([Message(role="user", content="x" * 7)])
    money = 0.5 if usage and "cost" in usage else 0.25 if told else 0.0
    used = completion.usage
    assert (completion.metered, used.prompt_tokens, used.completion_tokens, used.estimated_tokens) == (False, 2, 2, 4)
    assert (used.billed_money, used.billed_tokens) == (money, 4 if money else 0)


async def test_requests_that_ended_at_their_deadline_are_paid_for_beside_the_answer() -> None:
    late, asked = DeadlineExceeded("late"), [Message(role="user", content="x" * 35)]
    usage = {"prompt_tokens": 9, "completion_tokens": 2}
    completion = await rig(late, late, answer("hi", usage=usage)).model.complete(asked)
    assert completion.usage == Usage(prompt_tokens=9 + 20, completion_tokens=2, estimated_tokens=20)

    with pytest.raises(AgentUnavailable) as failed:
        await rig(late, late, late, config=CONFIG.model_copy(update={"max_tries": 3})).model.complete(asked)
    assert failed.value.paid == Usage(prompt_tokens=30, estimated_tokens=30)

    with pytest.raises(ContextLimitExceeded) as full:
        await rig(late, error(400, code="context_length_exceeded")).model.complete(asked)
    assert paid_by(full.value) == Usage(prompt_tokens=10, estimated_tokens=10)


async def test_a_call_that_begins_while_its_endpoint_is_down_waits_for_its_turn_to_ask() -> None:
    outage = Outage(60)
    outage.failed("connection refused", surely=True)
    rigged = rig(answer("hi"), outage=outage)
    completion = await rigged.model.complete(MESSAGES)
    assert (completion.action.content, completion.tries, outage.down) == ("hi", 1, False)


@pytest.mark.parametrize(
    ("listed", "ends"),
    [
        ({"id": "m", "max_model_len": 8192}, ContextLimitExceeded),
        ({"id": "m", "context_length": 9000}, RequestRejected),
        ({"id": "m", "max_model_len": "long"}, RequestRejected),
        ({"id": "other", "max_model_len": 8192}, RequestRejected),
    ],
)
async def test_a_rejection_that_names_more_tokens_than_the_model_takes_is_a_context_limit(
    listed: dict[str, object], ends: type[Exception]
) -> None:
    """The endpoint's list of models is asked once, and only where a rejection names tokens."""
    unclear = error(400, "cannot do 9,000 tokens")
    rigged = rig(error(400, "no"), unclear, httpx.Response(200, json={"data": [listed]}), unclear)
    with pytest.raises(RequestRejected):
        await rigged.model.complete(MESSAGES)
    for _ in range(2):
        with pytest.raises(ends):
            await rigged.model.complete(MESSAGES)
    assert [request.url.path.removeprefix("/v1") for request in rigged.requests] == [
        *["/chat/completions"] * 2,
        "/models",
        "/chat/completions",
    ]


@pytest.mark.parametrize(
    ("usage", "headers", "counted"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 40}, {}, (10, 30, 0, 0.0)),  # xAI's reasoning
        ({"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 12}, {}, (10, 20, 0, 0.0)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.25}, {}, (10, 2, 12, 0.25)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "cost": 0}, {}, (10, 2, 12, 0.0)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "cost": "much"}, {}, (10, 2, 0, 0.0)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "cost": -1}, {}, (10, 2, 0, 0.0)),
        (
            {"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5, "is_byok": True}
            | {"cost_details": {"upstream_inference_cost": 2.0}},
            {},
            (10, 2, 12, 2.5),
        ),
        *(
            (
                {"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5, "is_byok": True}
                | {"cost_details": {"upstream_inference_cost": odd}},
                {},
                (10, 2, 12, 0.5),
            )
            for odd in ODD_PRICES
        ),
        ({"total_tokens": 50}, {}, (50, 0, 0, 0.0)),
        ({"prompt_tokens": 10, "completion_tokens": 2}, {"x-litellm-response-cost": "0.125"}, (10, 2, 12, 0.125)),
        ({"prompt_tokens": 10, "completion_tokens": 2}, {"x-litellm-response-cost": "0.0"}, (10, 2, 0, 0.0)),
        ({"prompt_tokens": 10, "completion_tokens": 2}, {"x-litellm-response-cost": "inf"}, (10, 2, 0, 0.0)),
        ({"prompt_tokens": 10, "completion_tokens": 2}, {"x-litellm-response-cost": "free"}, (10, 2, 0, 0.0)),
    ],
)
async def test_tokens_and_prices_that_endpoints_tell(
    usage: dict[str, object], headers: dict[str, str], counted: tuple[int, int, int, float]
) -> None:
    reply = answer("hi", usage=usage)
    reply.headers.update(headers)
    used = (await rig(reply).model.complete(MESSAGES)).usage
    assert (used.prompt_tokens, used.completion_tokens, used.billed_tokens, used.billed_money) == counted
    assert used.estimated_tokens == 0


async def test_half_characters_are_the_models_doing_and_no_broken_reply() -> None:
    body = rb'{"choices": [{"message": {"content": "a\ud800b \u00e9 \ud83d\ude00"}}], "usage": {"prompt_tokens": 3}}'
    completion = await rig(httpx.Response(200, content=body)).model.complete(MESSAGES)
    assert (completion.action.content, completion.tries) == ("a?b \u00e9 \U0001f600", 1)
    assert completion.usage.prompt_tokens == 3


async def test_the_key_and_the_path_are_the_protocols() -> None:
    rigged = rig(answer())
    await rigged.model.complete(MESSAGES)
    (request,) = rigged.requests
    assert str(request.url) == "http://host/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {CANARY}"
    assert request.headers["accept-encoding"] == "identity"


async def test_without_a_key_no_authorization_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    rigged = rig(answer())
    await rigged.model.complete(MESSAGES)
    assert "authorization" not in rigged.requests[0].headers


@pytest.mark.parametrize("wanted", [True, False])
async def test_metadata_goes_out_only_where_it_is_asked_for(wanted: bool) -> None:
    rigged = rig(answer(), config=ChatConfig(model="m", base_url="http://host/v1", metadata=wanted))
    await rigged.model.complete(MESSAGES, metadata={"task": "t"})
    assert (b'"metadata":{"task":"t"}' in rigged.requests[0].content) is wanted


async def test_sampling_of_the_call_stands_above_the_configured_one() -> None:
    config = ChatConfig(model="m", base_url="http://host/v1", sampling={"temperature": 1, "top_p": 0.5})
    rigged = rig(answer(), config=config)
    await rigged.model.complete(MESSAGES, [Tool(name="f")], sampling={"temperature": 0})
    assert b'"temperature":0,"top_p":0.5' in rigged.requests[0].content


async def test_an_answer_cut_by_max_tokens_is_an_answer() -> None:
    choice = {"message": {"content": "cut"}, "finish_reason": "length"}
    completion = await rig(httpx.Response(200, json={"choices": [choice]})).model.complete(MESSAGES)
    assert (completion.action.content, completion.stop, completion.model) == ("cut", "length", "m")


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        (error(429), "status 429"),
        (error(500), "status 500"),
        (error(503), "status 503"),
        (error(408), "status 408"),
        (httpx.ConnectError("refused"), "refused"),
        (httpx.ReadError("reset"), "reset"),
        (httpx.Response(200, content=b"<html>oops"), "not a chat completion: body: Invalid JSON"),
        (httpx.Response(200, json={"choices": []}), "not a chat completion: choices: List should have at least 1"),
        (httpx.Response(200, json={"error": {"message": "upstream died"}}), "upstream died"),
        (error(500, "never mind", headers={"x-should-retry": "false"}), "never mind"),
        (error(400, "once more", headers={"x-should-retry": "true"}), "once more"),
    ],
)
async def test_a_passing_trouble_is_retried_and_at_last_unavailable(
    failure: httpx.Response | Exception, says: str
) -> None:
    rigged = rig(failure, answer())
    assert (await rigged.model.complete(MESSAGES)).tries == 2
    assert rigged.slept == [0.25]
    assert [failed and failed.throttled for failed in rigged.events] == ["429" in says, None]

    rigged = rig(*[failure] * 6)
    with pytest.raises(AgentUnavailable, match=r"\(after 6 tries\)") as caught:
        await rigged.model.complete(MESSAGES)
    assert says in str(caught.value)
    assert len(rigged.requests) == 6
    assert rigged.slept == [0.25, 0.5, 1, 2, 4]


@pytest.mark.parametrize(
    "failure",
    [*[error(status) for status in (302, 400, 403, 404, 422)], error(429, code="insufficient_quota")],
)
async def test_a_lasting_trouble_is_unavailable_at_once(failure: httpx.Response) -> None:
    rigged = rig(failure)
    with pytest.raises(AgentUnavailable, match=rf"model m at http://host/v1.*{failure.status_code}.*after 1 try"):
        await rigged.model.complete(MESSAGES)
    assert rigged.slept == []


async def test_a_refused_key_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AgentUnavailable, match="variable OPENAI_API_KEY holds the key that was sent"):
        await rig(error(401)).model.complete(MESSAGES)
    monkeypatch.delenv("OPENAI_API_KEY")
    for failure in (error(401), httpx.Response(200, text="<html>Sign in")):
        with pytest.raises(AgentUnavailable, match="variable OPENAI_API_KEY is unset"):
            await rig(*[failure] * 6).model.complete(MESSAGES)


@pytest.mark.parametrize(
    ("header", "wait_s"), [("3", 3.25), ("Sun, 06 Nov 1994 08:49:37 GMT", 37.25), ("nonsense", 0.25)]
)
async def test_retry_after_is_obeyed_and_told(header: str, wait_s: float) -> None:
    rigged = rig(error(429, headers={"Retry-After": header}), answer())
    await rigged.model.complete(MESSAGES)
    assert rigged.slept == [wait_s]
    assert rigged.events[0] is not None
    assert (rigged.events[0].throttled, rigged.events[0].retry_after_s) == (True, wait_s - 0.25 or None)


@pytest.mark.parametrize(
    "limited",
    [
        error(429),
        error(529),
        error(429, headers={"x-should-retry": "false"}),
        httpx.Response(200, json={"error": {"message": "slow down", "code": 429}}),
    ],
)
async def test_too_many_requests_use_no_try_however_they_are_said(limited: httpx.Response) -> None:
    rigged = rig(limited, answer(), config=CONFIG.model_copy(update={"max_tries": 1}), outage=Outage())
    completion = await rigged.model.complete(MESSAGES)
    assert (completion.tries, completion.action.content) == (2, "hi")


async def test_a_retry_after_beyond_our_patience_gives_up_without_waiting() -> None:
    rigged = rig(error(429, headers={"Retry-After": "86400"}))
    with pytest.raises(AgentUnavailable):
        await rigged.model.complete(MESSAGES)
    assert rigged.slept == []
    assert [failed and failed.throttled for failed in rigged.events] == [True]


@pytest.mark.parametrize("status", [200, 400])
async def test_a_transcript_that_does_not_fit_is_a_context_limit(status: int) -> None:
    with pytest.raises(ContextLimitExceeded):
        await rig(error(status, code="context_length_exceeded")).model.complete(MESSAGES)


async def test_an_excerpt_of_the_reply_is_capped() -> None:
    with pytest.raises(AgentUnavailable) as caught:
        await rig(httpx.Response(400, text="x\n" * 100_000)).model.complete(MESSAGES)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "echo",
    [
        lambda: error(401, f"bad key {CANARY}"),
        lambda: httpx.Response(200, text=CANARY * 1000),
        lambda: httpx.ConnectError(f"proxy said Bearer {CANARY}"),
        lambda: error(400, "x" * 260 + CANARY),
        lambda: error(400, "another's key sk-canary-0123456789"),
    ],
)
async def test_the_key_is_in_no_message_log_event_or_repr(
    echo: Callable[[], httpx.Response | Exception], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    rigged = rig(*[echo() for _ in range(6)])
    with pytest.raises(AgentUnavailable) as caught:
        await rigged.model.complete(MESSAGES)
    seen = [
        "".join(traceback.format_exception(caught.value)),
        repr(caught.value),
        caplog.text,
        repr([failed and failed.cause for failed in rigged.events]),
        repr(vars(rigged.model)),
    ]
    assert not [text for text in seen if CANARY[:10] in text]


@pytest.mark.parametrize("key", ["sk-ünïcode-key", "sk-two words", "sk-line\nbreak"])
def test_a_key_that_no_header_can_hold_is_refused_without_showing_it(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ValueError, match="OPENAI_API_KEY: the key holds characters") as caught:
        rig()
    assert "sk-" not in str(caught.value)
