"""`environment: openenv` plays the toy server: its scores, its faults, its limits."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from proctor.conformance.check import check
from proctor.environment import Agent, AgentStopped
from proctor.session.play import play_to_finish
from proctor.types import Action, Finish, FinishReason, Observation, ToolCall
from proctor_bridges.worlds.openenv import server
from proctor_bridges.worlds.openenv.environment import OpenEnv
from tests.integration.openenv.toy_server import toy_server
from tests.pace import slowly
from tests.support import ROOT


class Saying(Agent):
    """Says these texts, the last one for ever; keeps what it is told."""

    def __init__(self, *texts: str) -> None:
        self._texts, self.told = texts, list[Observation]()

    async def act(self, observation: Observation) -> Action:
        self.told.append(observation)
        return self.action(self._texts[min(len(self.told), len(self._texts)) - 1])

    def action(self, text: str) -> Action:
        return Action(content=text)

    def texts(self) -> list[str]:
        return [message.content for seen in self.told for message in seen.messages]


class Calling(Saying):
    """Guesses by calls of the tool; `?` calls nothing."""

    def action(self, text: str) -> Action:
        calls = (ToolCall(id=f"c{len(self.told)}", name="guess", arguments=f'{{"digit": "{text}"}}'),)
        return Action(content=text) if text == "?" else Action(content="", tool_calls=calls)


def environment(url: str, **fields: Any) -> OpenEnv:
    return OpenEnv.model_validate({"url": url, "samples": 10, **fields})


async def play(url: str, agent: Agent, sample: str = "3", **fields: Any) -> Finish:
    return await play_to_finish(environment(url, **fields), sample, agent)


def ended(finish: Finish) -> tuple[FinishReason, float | None]:
    return finish.reason, finish.score


async def test_seeds_0_to_9_are_solved_by_who_knows_them() -> None:
    async with toy_server() as (url, held):
        world = environment(url)
        assert await asyncio.to_thread(world.samples) == tuple(map(str, range(10)))
        finishes = [await play_to_finish(world, sample, Saying("x", sample)) for sample in world.samples()]
    assert {ended(finish) for finish in finishes} == {(FinishReason.COMPLETED, 1.0)}
    assert [reset["seed"] for reset in held.resets] == list(range(10))
    assert finishes[0].metrics == {"steps": 2, "rejected_actions": 0, "last_reward": 1.0, "sum_of_rewards": 1.0}


async def test_the_slot_of_a_session_is_free_when_it_has_ended() -> None:
    async with toy_server(slots=1) as (url, held):
        for _ in range(5):
            assert ended(await play(url, Saying("3"))) == (FinishReason.COMPLETED, 1.0)
            assert held.live == 0
        assert ended(await play(url, Saying("boom")))[1] is None
        assert ended(await play(url, Saying("3"))) == (FinishReason.COMPLETED, 1.0)


@pytest.mark.parametrize(
    ("guess", "cause"),
    [
        ("boom", "EXECUTION_ERROR: the toy broke"),
        ("hang", "no answer to 'step' within 0.5 s"),
        ("leave", "ConnectionClosed"),
        ("big", "message too big"),
        ("mute", "gave no reward"),
    ],
)
async def test_what_breaks_is_a_fault_without_a_score(guess: str, cause: str) -> None:
    async with toy_server() as (url, _):
        finish = await play(url, Saying(guess), step_limit_s=0.5 if guess == "hang" else slowly(20))
    assert ended(finish) == (FinishReason.TASK_ERROR, None)
    assert cause in str(finish.detail["cause"])


async def test_a_server_without_a_free_session_is_a_fault() -> None:
    async with toy_server(slots=0) as (url, _):
        finish = await play(url, Saying("1"))
    assert ended(finish) == (FinishReason.TASK_ERROR, None)
    assert "CAPACITY_REACHED: Server at capacity" in str(finish.detail["cause"])


async def test_max_steps_is_the_turn_limit() -> None:
    agent = Saying("1")
    async with toy_server() as (url, _):
        assert ended(await play(url, agent, max_steps=4)) == (FinishReason.TURN_LIMIT, 0.0)
    assert agent.texts() == ["guess a digit", "wrong", "wrong", "wrong"]


async def test_an_agent_that_stops_gets_the_score_it_reached() -> None:
    class Stopping(Saying):
        async def act(self, observation: Observation) -> Action:
            if self.told:
                raise AgentStopped(FinishReason.CONTEXT_LIMIT)
            return await super().act(observation)

    async with toy_server() as (url, _):
        finish = await play(url, Stopping("half"), range=[-1, 1])
    assert ended(finish) == (FinishReason.CONTEXT_LIMIT, 0.25)


@pytest.mark.parametrize(
    ("fields", "score"),
    [
        ({"score": "last"}, 1.0),
        ({"score": "sum", "range": [0, 2]}, 0.25),
        ({"score": "max", "range": [0, 4]}, 0.25),
        ({"score": "last", "range": [2, 3]}, 0.0),
        ({"score": "last", "range": [-3, 0]}, 1.0),
    ],
)
async def test_rewards_become_a_score(fields: dict[str, Any], score: float) -> None:
    async with toy_server() as (url, _):
        assert ended(await play(url, Saying("half", "1", "3"), **fields)) == (FinishReason.COMPLETED, score)


async def test_an_action_that_the_server_rejects_is_told_and_is_no_fault() -> None:
    agent = Saying("3")
    async with toy_server() as (url, _):
        finish = await play(url, agent, action="nope", max_steps=2)
    assert ended(finish) == (FinishReason.INVALID_ACTION, 0.0)
    assert finish.metrics["rejected_actions"] == 2
    assert "content: Field required" in agent.texts()[1]


async def test_tasks_of_a_split_are_played_by_their_index() -> None:
    async with toy_server(tasks=3) as (url, held):
        world = environment(url, samples="tasks", split="test", reset={"level": 2})
        assert world.samples() == ("0", "1", "2")
        finish = await play_to_finish(world, "2", Saying("5"), seed=5)
    assert ended(finish) == (FinishReason.COMPLETED, 1.0)
    assert held.resets == [{"seed": 5, "level": 2, "split": "test", "index": 2}]


async def test_tools_are_offered_and_called() -> None:
    agent = Calling("?", "1", "3")
    async with toy_server(mcp=True) as (url, _):
        world = environment(url)
        assert world.protocol == "tools"
        finish = await play_to_finish(world, "3", agent)
    assert ended(finish) == (FinishReason.COMPLETED, 1.0)
    assert [tool.name for tool in agent.told[0].tools] == ["guess"]
    assert [(message.role, message.tool_call_id) for message in agent.told[2].messages] == [("tool", "c2")]
    assert agent.texts()[1:] == ["Your reply calls no function. Call one of: guess.", "wrong"]
    assert (finish.metrics["no_call"], finish.metrics["calls"], finish.metrics["steps"]) == (1, 2, 2)


async def test_the_digest_is_of_what_is_served_not_of_where() -> None:
    async with toy_server() as (one, _), toy_server() as (two, _), toy_server(mcp=True) as (tools, _):
        assert environment(one).digest() == environment(two).digest()
        others = [environment(tools), environment(one, samples=9), environment(one, score="sum")]
        assert len({world.digest() for world in [environment(one), *others]}) == 4


async def test_the_conformance_check_passes() -> None:
    async with toy_server(slots=20) as (url, _):
        results = [result async for result in check(environment(url))]
    assert [f"{result.name}: {result.detail}" for result in results if result.state == "broken"] == []
    assert sum(result.state == "ok" for result in results) > 5


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"samples": "tasks"}, "samples: the server has no task routes"),
        ({"url": "http://127.0.0.1:9"}, "url: .*is the OpenEnv server running"),
        ({"samples": 3, "url": "{url}/toy"}, "url: .* answered 404"),
    ],
)
async def test_a_mistake_names_its_field(fields: dict[str, Any], message: str) -> None:
    async with toy_server() as (url, _):
        wrong = {name: value.format(url=url) if isinstance(value, str) else value for name, value in fields.items()}
        with pytest.raises(ValueError, match=message):
            environment(url, **{key: value for key, value in wrong.items() if key != "url"}).model_copy(
                update={"url": wrong.get("url", url)}
            ).samples()


@pytest.mark.parametrize(("count", "message"), [(10**12, "samples: the server counts 10+ tasks"), (-1, "no OpenEnv")])
async def test_a_server_that_counts_no_real_number_of_tasks_is_refused(count: int, message: str) -> None:
    async with toy_server(tasks=count) as (url, _):
        with pytest.raises(ValueError, match=message):
            await server.described(url, with_tasks=True, split="test")


async def test_several_splits_need_a_choice() -> None:
    async with toy_server(tasks=3) as (url, _):
        with pytest.raises(ValueError, match="split: name one of those that the server has: train, test"):
            environment(url, samples="tasks").samples()


@pytest.mark.parametrize("samples", ["foo", "", 0, -1, 1_000_001, 1.5, None, [3]])
def test_wrong_samples_are_told_both_forms(samples: object) -> None:
    with pytest.raises(ValidationError, match="write `tasks`, or how many seeds to play, from 1 to 1000000") as wrong:
        environment("http://x", samples=samples)
    assert [error["loc"] for error in wrong.value.errors()] == [("samples",)]


@pytest.mark.parametrize("bounds", [[1, 1], [2, 1], [0, float("inf")], [float("-inf"), 0]])
def test_a_range_must_have_a_width(bounds: Sequence[float]) -> None:
    with pytest.raises(ValueError, match="range: write the reward of score 0 before a larger one"):
        environment("http://x", range=bounds)


async def test_a_reply_of_many_bytes_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_BYTES", 100)
    async with toy_server() as (url, _):
        with pytest.raises(ValueError, match=r"url: .*larger than 100 bytes"):
            environment(url).samples()


def test_the_page_names_every_parameter_and_its_plan_is_valid() -> None:
    page = (ROOT / "docs" / "how-to" / "openenv.md").read_text(encoding="utf-8")
    fields = {field.alias or name for name, field in OpenEnv.model_fields.items()}
    assert set(re.findall(r"^\| `(\w+)` \| .* \| .* \|$", page, re.MULTILINE)) == fields
    plan = yaml.safe_load(re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0])
    assert OpenEnv.model_validate(plan["tasks"][0]["parameters"]).max_steps == 20
