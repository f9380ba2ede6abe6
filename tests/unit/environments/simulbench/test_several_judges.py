"""Several judges: the median of their ratings, a fault where one gives none, and nothing bought twice."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from environments.simulbench.environment import SimulBench
from proctor.session.play import play_to_finish
from proctor.types import JUDGEMENTS, Finish, FinishReason
from tests.scripted_agent import Scripted
from tests.scripted_model import Reply, ScriptedModel
from tests.support import serving


@pytest.fixture
def says() -> dict[str, Reply]:
    """model -> what it answers"""
    return {"a": "Rating: [[3]]", "b": "Rating: [[8]]", "c": "Rating: [[9]]"}


@pytest.fixture
def judge(says: dict[str, Reply]) -> Iterator[ScriptedModel]:
    """An endpoint of all judges; it counts the requests to each in `asked`."""

    def answer(request: dict[str, Any]) -> Reply:
        asked[request["model"]] += 1
        return says[request["model"]]

    asked.clear()
    with ScriptedModel(answer) as server, serving(server):
        yield server


asked: Counter[str] = Counter()


def judged(url: str, cache: Path, *names: str, **fields: object) -> SimulBench:
    judges = [{"base_url": url, "model": name, "max_tries": 1} for name in names]
    return SimulBench.model_validate({"judges": judges, "cache": cache} | fields)


async def played(environment: SimulBench) -> Finish:
    async with environment.lifespan():
        return await play_to_finish(environment, environment.samples()[0], Scripted("Fine."))


@pytest.mark.parametrize(
    ("names", "rating"), [(("a", "b", "c"), 8.0), (("a", "b"), 5.5), (("c", "b", "a"), 8.0), (("b", "c"), 8.5)]
)
async def test_the_rating_is_the_median_and_each_ones_is_kept(
    judge: ScriptedModel, tmp_path: Path, names: tuple[str, ...], rating: float
) -> None:
    finish = await played(judged(judge.url, tmp_path, *names))
    given = {"a": 3.0, "b": 8.0, "c": 9.0}
    assert finish.metrics["rating"] == rating
    assert finish.score == pytest.approx((rating - 1) / 9)
    assert finish.detail[JUDGEMENTS] == {
        "scale": "rating", "judges": list(names), "rows": [[given[name] for name in names]]
    }  # fmt: skip
    assert finish.detail["judge"] == ", ".join(names)
    assert all(f"{name}: Rating: [[" in str(finish.detail["judge_text"]) for name in names)
    assert (finish.detail["judge_tries"], finish.detail["judge_prompt_tokens"]) == (len(names), 100 * len(names))


async def test_one_that_fails_or_can_not_be_read_makes_a_fault_and_is_asked_alone_the_next_time(
    judge: ScriptedModel, says: dict[str, Reply], tmp_path: Path
) -> None:
    says["b"] = 500
    finish = await played(judged(judge.url, tmp_path, "a", "b", "c"))
    assert (finish.reason, finish.score) == (FinishReason.TASK_ERROR, None)
    assert "judge b failed" in str(finish.detail["cause"])
    before = Counter(asked)
    says["b"] = "Rating: [[8]]"
    assert (await played(judged(judge.url, tmp_path, "a", "b", "c"))).metrics["rating"] == 8.0
    assert asked - before == {"b": 1}
    says["c"] = "Quite good."
    environment = judged(judge.url, tmp_path / "other", "a", "b", "c")
    finish = await played(environment)
    assert (finish.score, finish.detail["cause"], finish.detail["judge"]) == (None, "judge_unparsed", "c")
    assert "rating" not in environment.summarize([finish]).metrics


async def test_a_reply_is_known_whichever_judges_stand_beside(judge: ScriptedModel, tmp_path: Path) -> None:
    one = {"judges": [], "judge": {"base_url": judge.url, "model": "a", "max_tries": 1}}
    alone = await played(judged(judge.url, tmp_path, **one))
    assert JUDGEMENTS not in alone.detail
    await played(judged(judge.url, tmp_path, "a", "b"))
    assert asked == {"a": 1, "b": 1}


async def test_two_of_one_model_have_names_of_their_own(judge: ScriptedModel, tmp_path: Path) -> None:
    twins = [{"base_url": judge.url, "model": "a", "sampling": {"seed": seed}} for seed in (1, 2)]
    finish = await played(judged(judge.url, tmp_path, judges=twins))
    found = finish.detail[JUDGEMENTS]
    assert isinstance(found, dict)
    assert found["judges"] == ["a (1)", "a (2)"]


MODEL = {"model": "a"}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"judges": [MODEL], "judge": None}, "judges: there is only one; write `judge:`"),
        ({"judges": [MODEL, {"model": "b"}], "judge": MODEL}, "judges: `judge` is set too"),
        ({"judges": [MODEL, {"model": "a", "sampling": {"temperature": 0}}]}, "judges: two are one model"),
        (
            {"judges": [MODEL, {"model": "b"}], "mode": "compare"},
            "judges: in the mode 'compare' the agent is the judge",
        ),
    ],
)
def test_judges_that_can_not_stand_together_are_refused(fields: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(problem)):
        SimulBench.model_validate(fields)


def test_judges_are_in_the_digest_and_one_has_the_digest_it_had() -> None:
    several = {"judges": [MODEL, {"model": "b"}]}
    made = [{}, {"judge": MODEL}, several, {"judges": [{"model": "b"}, {"model": "c"}]}]
    digests = [SimulBench.model_validate(fields).digest() for fields in made]
    assert len(set(digests)) == len(made)
    assert SimulBench.model_validate({"judge": MODEL, "judges": []}).digest() == digests[1]
    environment = SimulBench.model_validate(several)
    assert environment.caution_for_models() is None, "no rules"
    assert environment.summarize([]).primary == "strict_mean"
    assert "several judges" in str(SimulBench.model_validate(several | {"data": "x.jsonl"}).not_comparable_because())
