"""Models on the environment's side: what they said is kept, what they may cost is kept to, what fails is a fault."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from environments.simulbench.environment import SimulBench
from environments.simulbench.judges import Ledger
from proctor.session.play import play_to_finish
from proctor.types import Action, FinishReason, Observation
from tests.scripted_agent import Scripted
from tests.scripted_server import Script, reply, scripted_server

SAMPLE = "000#Vending_Machine"


def says(text: str, tokens: int = 10) -> Script:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": tokens, "completion_tokens": 0}
    return reply(json.dumps({"choices": [choice], "usage": usage}).encode())


def asks(request: str) -> Script:
    return says("```json\n" + json.dumps({"user": {"strategy": "harder", "request": request}}) + "\n```")


def live(url: str, cache: Path, **fields: object) -> SimulBench:
    user = {"base_url": url, "model": "user", "max_tries": 1, **fields}
    return SimulBench.model_validate({"mode": "live", "user": user, "cache": cache})


async def shown(environment: SimulBench, seed: int = 0, *replies: str) -> list[str]:
    agent = Scripted(*(replies or ("a", "b", "c", "d")))
    async with environment.lifespan():
        finish = await play_to_finish(environment, SAMPLE, agent, seed)
    assert finish.reason is FinishReason.COMPLETED, finish
    return [observation.messages[-1].content for observation in agent.seen]


async def test_a_live_session_replays_word_by_word_and_buys_nothing_again(tmp_path: Path) -> None:
    bought: list[bytes] = []
    async with scripted_server(*(asks(f"request {n}") for n in range(6)), requests=bought) as url:
        first = await shown(live(url, tmp_path))
        assert first[1:] == ["request 0", "request 1", "request 2"]
        assert await shown(live(url, tmp_path)) == first
        assert len(bought) == 3
        assert (await shown(live(url, tmp_path), 1))[1:] == ["request 3", "request 4", "request 5"], "by the seed"
    sent = json.loads(bought[2])
    assert (sent["temperature"], sent["max_tokens"]) == (1.2, 300)
    assert '"content": "b"}' in sent["messages"][0]["content"]


async def test_a_user_is_asked_at_another_server_where_one_fails(tmp_path: Path) -> None:
    asked: list[bytes] = []
    failing = scripted_server(reply(b"", "503 Service Unavailable"), requests=asked)
    async with failing as first, scripted_server(*(asks(f"request {n}") for n in range(3))) as second:
        user = {"base_url": [f"{first}/v1", {"base_url": f"{second}/v1", "concurrency": 4}], "model": "user"}
        environment = SimulBench.model_validate({"mode": "live", "user": user, "cache": tmp_path})
        assert (await shown(environment))[1:] == ["request 0", "request 1", "request 2"]
    assert len(asked) == 1


async def test_a_user_is_told_what_the_task_config_says_of_its_task(tmp_path: Path) -> None:
    config, bought = tmp_path / "config.json", list[bytes]()
    config.write_text(json.dumps({"061#Vending_Machine": {"request_type": "your coin", "strategy_type": "a rare one"}}))
    async with scripted_server(*(asks(f"request {n}") for n in range(6)), requests=bought) as url:
        await shown(live(url, tmp_path))
        await shown(live(url, tmp_path).model_copy(update={"task_config": config}))
    first = [json.loads(body)["messages"][0]["content"].partition("\n")[0] for body in (bought[0], bought[3])]
    assert first[0] != first[1]
    assert "which should be your coin: a rare one." in first[1]


async def test_a_user_is_asked_five_times_and_then_the_session_is_a_fault(tmp_path: Path) -> None:
    bought: list[bytes] = []
    async with scripted_server(says("Go on!"), requests=bought) as url:
        environment = live(url, tmp_path)
        async with environment.lifespan():
            finish = await play_to_finish(environment, SAMPLE, Scripted("a"))
    assert (finish.reason, finish.detail["cause"], len(bought)) == (FinishReason.TASK_ERROR, "user_unparsed", 5)
    assert [len(json.loads(body)["messages"]) for body in bought] == [1, 3, 3, 3, 3]
    assert {json.loads(body)["temperature"] for body in bought} == {1.2}


async def test_a_user_may_find_its_words_at_the_fifth_try(tmp_path: Path) -> None:
    tries = [says("Go on!")] * 4
    async with scripted_server(*tries, asks("now"), asks("then"), asks("last")) as url:
        assert (await shown(live(url, tmp_path)))[1:] == ["now", "then", "last"]


async def test_its_own_sampling_stands_above_the_published_one(tmp_path: Path) -> None:
    bought: list[bytes] = []
    async with scripted_server(asks("x"), requests=bought) as url:
        await shown(live(url, tmp_path, sampling={"temperature": 0.5, "seed": 1}))
    assert [json.loads(bought[0])[name] for name in ("temperature", "max_tokens", "seed")] == [0.5, 300, 1]


async def test_an_endpoint_that_refuses_is_a_fault_that_names_it(tmp_path: Path) -> None:
    async with scripted_server(reply(b"{}", status="401 X")) as url:
        environment = live(url, tmp_path)
        async with environment.lifespan():
            finish = await play_to_finish(environment, SAMPLE, Scripted("a"))
    assert finish.reason is FinishReason.TASK_ERROR
    assert "the user user failed" in str(finish.detail["cause"])


async def test_no_more_requests_are_in_flight_than_allowed_and_equal_ones_are_bought_once(tmp_path: Path) -> None:
    flying, most, bought = 0, 0, list[bytes]()
    answer = asks("x")

    async def slow(writer: asyncio.StreamWriter) -> None:
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        for _ in range(20):
            await asyncio.sleep(0)
        await answer(writer)
        flying -= 1

    async with scripted_server(slow, requests=bought) as url:
        environment = live(url, tmp_path, concurrency=2)
        async with environment.lifespan():
            sessions = [
                play_to_finish(environment, sample, Scripted("a"), 0)
                for sample in (*environment.samples(), *environment.samples())
            ]
            finishes = await asyncio.gather(*sessions)
    assert {finish.reason for finish in finishes} == {FinishReason.COMPLETED}
    assert most == 2
    assert len(bought) == 3 * 12


@pytest.mark.parametrize("at", [1, 2, 3])
async def test_a_session_cancelled_anywhere_goes_on_where_it_was(at: int, tmp_path: Path) -> None:
    bought: list[bytes] = []
    async with scripted_server(*(asks(f"request {n}") for n in range(3)), requests=bought) as url:
        waiting = asyncio.Event()

        class Stuck(Scripted):
            async def act(self, observation: Observation) -> Action:
                if len(self.seen) == at:
                    waiting.set()
                    await asyncio.Event().wait()
                return await super().act(observation)

        environment = live(url, tmp_path)
        async with environment.lifespan():
            session = asyncio.create_task(play_to_finish(environment, SAMPLE, Stuck("a", "b", "c", "d")))
            await waiting.wait()
            session.cancel()
            await asyncio.wait({session})
        assert len(bought) == at
        assert (await shown(live(url, tmp_path)))[1:] == ["request 0", "request 1", "request 2"]
        assert len(bought) == 3


async def test_the_budget_is_kept_to_where_an_endpoint_reports_no_usage(tmp_path: Path) -> None:
    bought: list[bytes] = []
    request = json.dumps({"user": {"strategy": "other", "request": "x" * 400}})
    async with scripted_server(says(request, tokens=0), requests=bought) as url:
        environment = live(url, tmp_path, tokens=600)
        async with environment.lifespan():
            finish = await play_to_finish(environment, SAMPLE, Scripted("a"))
    assert len(bought) == 2
    assert "`user.tokens` is 600" in str(finish.detail["cause"])


def test_all_processes_share_one_ledger(tmp_path: Path) -> None:
    one, other = (Ledger(tmp_path / "spent") for _ in range(2))
    assert one.spent() == 0
    add: list[Callable[[int], None]] = [one.add, other.add]
    for number in range(10):
        add[number % 2](number)
    assert (one.spent(), other.spent()) == (45, 45)


@pytest.mark.parametrize(("profile", "alike"), [("compat", True), ("strict", False)])
async def test_a_judge_in_compat_is_asked_the_same_again(tmp_path: Path, profile: str, alike: bool) -> None:
    bought: list[bytes] = []
    judge = {"model": "judge", "max_tries": 1}
    async with scripted_server(*[says("Well.")] * 3, says("[[7]]"), requests=bought) as url:
        fields = {"profile": profile, "judge": {**judge, "base_url": url}, "cache": tmp_path}
        environment = SimulBench.model_validate(fields)
        async with environment.lifespan():
            await play_to_finish(environment, environment.samples()[0], Scripted("a"))
    assert len(bought) == (4 if alike else 3)
    assert (len(set(bought)) == 1) is alike
