"""What a call waits for and what it may spend; calls that are all rejected alike."""

import asyncio
import json
import random
import time

import httpx
import pytest

from eval_client.core.spend import Price, RunLimits, Spend
from eval_client.endpoints.endpoints import Endpoints
from eval_client.endpoints.limited_model import SAME_REJECTIONS, BudgetExhausted, Rejections
from eval_client.plan.plan import Plan
from proctor.session.time_limit import TimeLimit
from proctor.types import History, Message, Usage
from task_server.client.client import Call
from tests.pace import slowly
from tests.support import via


class Agent:
    """An agent whose calls are all rejected."""

    def __init__(self) -> None:
        self.calls = {0: Call("another agent", 0.0)}
        self.rejections = Rejections("a", self.calls)

    def outcomes(self, *causes: str) -> list[bool]:
        """What each of these refusals decides, one call after the other."""
        return [self._decides(cause) for cause in causes]

    def _decides(self, cause: str) -> bool:
        call = self.calls[-1] = Call("a", 0.0)
        decided = self.rejections.rejected(call, cause)
        del self.calls[-1]
        return decided


ALL_BUT_ONE = ["no"] * (SAME_REJECTIONS - 1)


def test_the_last_of_calls_in_a_row_decides_although_ids_in_the_text_differ() -> None:
    causes = [f"status 400: no such model (request {number:x}a7)" for number in range(SAME_REJECTIONS)]
    assert Agent().outcomes(*causes) == [False] * len(ALL_BUT_ONE) + [True]


def test_one_answer_begins_the_counting_anew() -> None:
    agent = Agent()
    agent.outcomes(*ALL_BUT_ONE)
    agent.rejections.count = 0
    assert agent.outcomes(*ALL_BUT_ONE, "no") == [False] * len(ALL_BUT_ONE) + [True]


def test_rejections_with_different_texts_are_those_of_single_requests() -> None:
    assert not any(Agent().outcomes(*["blocked", "too many images"] * SAME_REJECTIONS))


def test_nothing_is_decided_while_an_earlier_call_may_still_be_answered() -> None:
    agent = Agent()
    agent.calls[1] = Call("a", 0.0)
    assert not any(agent.outcomes(*ALL_BUT_ONE, "no"))
    del agent.calls[1]  # cancelled, or failed in another way
    assert agent.outcomes("no") == [True]


PRICE = Price(input=100.0, output=1_000.0)
JUDGE = "judge"
WORD = "word " * 70
"""A hundred tokens, at 3.5 characters each."""


class Endpoint:
    """Answers with 20 to 60 tokens; its bill is the truth that a run's limit is held against."""

    def __init__(self) -> None:
        self.chance = random.Random(41)
        self.bill = Usage()
        self.calls: list[int] = []
        """The tokens of each."""

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        for _ in range(self.chance.randrange(5)):
            await asyncio.sleep(0)
        said = sum(len(message["content"]) for message in json.loads(request.content)["messages"])
        prompt, completion = round(said / 3.5), self.chance.randint(20, 60)
        self.bill = self.bill.plus(Usage(prompt, completion))
        self.calls.append(prompt + completion)
        usage = {"prompt_tokens": prompt, "completion_tokens": completion}
        answer = {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}], "usage": usage}
        return httpx.Response(200, json=answer)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "token-of-the-tests")


def plan(most: int | None) -> Plan:
    sampling = {} if most is None else {"max_tokens": most}
    return Plan.model_validate(
        {
            "endpoints": [{"name": "e", "base_url": "http://model/v1", "concurrency": 256}],
            "agents": [{"name": "a", "endpoint": "e", "model": "m", "sampling": sampling}],
            "tasks": [{"name": "t", "environment": "ltp"}],
        }
    )


async def play(limits: RunLimits, slots: int, judge: Usage, most: int | None = 60) -> tuple[Endpoint, Spend, set[str]]:
    """So many trials at once, whose histories grow tenfold, judged after each turn, until none may go on."""
    endpoint, messages = Endpoint(), set[str]()
    spend = Spend(limits, {"a": PRICE, f"environment:{JUDGE}": PRICE})
    async with httpx.AsyncClient(transport=httpx.MockTransport(endpoint)) as http:
        endpoints = Endpoints(plan(most), via(http), spend, None, lambda: None)

        async def trial(number: int) -> None:
            for sample in range(1_000):
                history = History()
                metadata = {"task": "t", "sample": f"{number}-{sample}", "epoch": "0"}
                for turn in range(10):
                    history.append(Message(role="user", content=WORD * (1 + turn)))
                    try:
                        await endpoints.model("a")(history, (), metadata)
                        history.append(Message(role="assistant", content="yes"))
                        await asyncio.sleep(0)
                        spend.add_helper(JUDGE, judge, "t")
                        endpoint.bill = endpoint.bill.plus(judge)
                    except BudgetExhausted as stopped:
                        messages.add(str(stopped))
                        return
                    finally:
                        endpoints.allowance.over(("a", "t", metadata["sample"], "0"))

        await asyncio.gather(*map(trial, range(slots)))
    return endpoint, spend, messages


@pytest.mark.parametrize("slots", [8, 128])
@pytest.mark.parametrize("judge", [Usage(), Usage(300, 20)], ids=["alone", "judged"])
async def test_tokens_overshoot_by_one_call_at_most_and_little_is_left(slots: int, judge: Usage) -> None:
    endpoint, spend, messages = await play(RunLimits(tokens=400_000), slots, judge)
    assert spend.tokens.total == endpoint.bill.total, "one sum"
    largest = max(endpoint.calls)
    assert endpoint.bill.total <= 400_000 + largest + judge.total
    assert endpoint.bill.total >= 400_000 - 3 * (largest + judge.total), "no call waits or stops while it fits"
    assert len(endpoint.calls) > 150
    assert spend.reserved == (0, 0)
    assert all("limits.run.tokens: " in each and "=MORE" in each for each in messages)


@pytest.mark.parametrize("slots", [8, 128])
async def test_money_is_kept_from_the_first_call_on(slots: int) -> None:
    """Of a limit that a few calls use up, while all slots want to start at once."""
    endpoint, spend, messages = await play(RunLimits(money=0.5), slots, Usage(), most=None)
    assert endpoint.calls == [], "an answer of 4,096 tokens would cost 4.1, and no `max_tokens` says otherwise"
    assert messages == {
        "limits.run.money: 0.00 of 0.50 spent, 0.50 left, the next call needs about 4.106; "
        "resume with --set limits.run.money=MORE"
    }
    endpoint, spend, _ = await play(RunLimits(money=2.0), slots, Usage(), most=60)
    assert spend.money == pytest.approx(PRICE.of(endpoint.bill))
    assert 0 < spend.money <= 2.0 + 0.2
    assert len(endpoint.calls) > 10


async def test_a_call_waits_while_another_may_leave_room_and_then_goes_on() -> None:
    endpoint, spend, _ = await play(RunLimits(tokens=330), 2, Usage(), most=150)
    assert 1 <= len(endpoint.calls) <= 2, "two of 250 tokens don't fit at once; one of 150 leaves room for another"
    assert spend.tokens.total <= 330


async def test_without_a_limit_nothing_is_reserved() -> None:
    spend = Spend(RunLimits(), {})
    assert not spend.bounded
    assert spend.fits(spend.call("a", 10**12, 0))


async def test_a_pause_that_a_429_of_another_trial_asks_for_counts_in_no_limit_of_a_trial() -> None:
    async with httpx.AsyncClient(transport=httpx.MockTransport(Endpoint())) as http:
        endpoints = Endpoints(plan(60), via(http), Spend(RunLimits(), {}), None, lambda: None)
        endpoints.limits["e"].throttled(time.monotonic(), 2 * slowly(1))
        async with TimeLimit(slowly(1)):
            answer = await endpoints.model("a")([Message(role="user", content=WORD)], (), {})
    assert answer.action.content == "yes"
