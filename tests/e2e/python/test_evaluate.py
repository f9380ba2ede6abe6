"""Runs from Python: their results, in an event loop, several at once."""

import asyncio
import itertools
import json
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import proctor
from proctor import Action, Message, PlanError, RunInterrupted, Tool, aevaluate, assert_scores, evaluate, open_run, play
from tests.e2e.proctor import proctor as cli
from tests.e2e.scripted import ScriptedEndpoint

SHORT = {"limits.trial.turns": 2}


def look(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    return "ACTION: look"


def test_a_session_in_this_process() -> None:
    finish = play("alfworld", "reference")
    assert (finish.reason, finish.score) == ("completed", 1.0)
    seen: list[int] = []

    async def counts(messages: Sequence[Message], tools: Sequence[Tool]) -> Action:
        seen.append(len(messages))
        return Action(content="ACTION: look")

    sample = "own-00001"
    assert play("alfworld", counts, sample=sample).score == 0.0
    assert len(seen) > 3
    assert seen == [seen[0] + 2 * number for number in range(len(seen))], "it gets the whole conversation each time"


@pytest.mark.smoke
def test_a_function_is_evaluated_and_its_results_are_read(tmp_path: Path) -> None:
    run = evaluate(agents=[look, "reference"], tasks=["alfworld"], limit=2, overrides=SHORT, folder=tmp_path, name="r")
    assert run.state == "finished"
    rows = {row["agent"]: row for row in run.scores()}
    assert {(row["scored"], row["planned"]) for row in rows.values()} == {(2, 2)}
    assert rows["look"]["value"] == 0.0
    assert run.summary("alfworld", "look").metrics["requested"] == 2
    with pytest.raises(ValueError, match="look x alfworld"):
        run.summary("alfworld")
    trials, turns = list(run.trials()), list(run.turns())
    assert len(trials) == 4
    assert sum(trial.turns for trial in trials) == sum(turn.action is not None for turn in turns)
    assert {trial.cut_answers for trial in trials} == {0}
    said = {turn.action.content for turn in turns if turn.agent == "look" and turn.action is not None}
    assert said == {"ACTION: look"}
    assert "success_rate" in run.report()
    again = open_run("latest", folder=tmp_path)
    assert (again.name, again.scores()) == ("r", run.scores())
    with pytest.raises(AssertionError, match=r"own-00000: 0\.000"):
        assert_scores(run, "alfworld", agent="look", at_least=0.5)
    assert_scores(run, "alfworld", agent="look", at_least=0.0)
    with pytest.raises(PlanError, match="exists"):
        evaluate(agents=look, tasks=["alfworld"], limit=2, folder=tmp_path, name="r")


async def test_it_works_where_an_event_loop_runs_already(tmp_path: Path) -> None:
    run = evaluate(agents=look, tasks=["alfworld"], limit=1, overrides=SHORT, folder=tmp_path)
    also = await aevaluate(agents={"other": look}, tasks=["alfworld"], limit=1, overrides=SHORT, folder=tmp_path)
    assert [run.state, also.state] == ["finished", "finished"]
    assert also.scores()[0]["agent"] == "other"
    assert play("alfworld", "reference").score == 1.0


PLAN = """\
name: first
endpoints: [{{name: mine, base_url: "{url}"}}]
agents:
  - {{name: model, endpoint: mine, model: scripted, concurrency: 1}}
tasks: [{{name: db, environment: db}}]
"""


def test_a_plans_file_stops_at_its_budget_and_goes_on(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN.format(url=endpoint.url))
    with pytest.raises(RunInterrupted, match="tokens") as stopped:
        evaluate(tmp_path / "plan.yaml", limit=4, overrides={"limits.run.tokens": 200}, folder=tmp_path)
    assert stopped.value.run.state == "out_of_tokens"
    left = open_run("latest", folder=tmp_path)
    scored = sum(row["scored"] for row in left.scores())
    assert scored < 4
    run = left.resume(overrides={"limits.run.tokens": 100_000})
    assert (run.state, run.scores()[0]["scored"]) == ("finished", 4)
    assert run.summary("db") == run.summary("db", "model")
    assert run.summary("db").metrics["requested"] == 4
    assert sum(trial.prompt_tokens for trial in run.trials()) == 100 * len(endpoint.requests)


def test_a_frame_needs_pandas_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = evaluate(agents="reference", tasks=["alfworld"], limit=1, overrides=SHORT, folder=tmp_path)
    monkeypatch.setitem(sys.modules, "pandas", None)  # as if it were not installed
    with pytest.raises(ImportError, match="pip install pandas"):
        run.frame()


def test_a_failed_assertion_shows_the_worst_trials(tmp_path: Path) -> None:
    def sometimes(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
        if next(turns) == 3:
            raise ValueError("lost")
        return "ACTION: look"

    turns = itertools.count()
    run = evaluate(agents=sometimes, tasks=["alfworld"], limit=7, overrides=SHORT, folder=tmp_path)
    with pytest.raises(AssertionError) as failed:
        assert_scores(run, "alfworld", at_least=0.5)
    head, *worst = str(failed.value).splitlines()
    assert head == (
        "sometimes on alfworld: success_rate 0.000, wanted 0.5 or more; 1 of 7 trials without a score; the worst:"
    )
    assert len(worst) == 5
    assert "no score: the agent's function raised ValueError: lost" in worst[0]
    assert all(re.fullmatch(r"  own-\d+: 0\.000 \(turn_limit, 2 turns\)", line) for line in worst[1:])


def test_a_trial_that_a_limit_ended_has_the_turns_that_were_answered(tmp_path: Path) -> None:
    run = evaluate(agents=[look], tasks=["alfworld"], limit=1, overrides=SHORT, folder=tmp_path, name="two")
    (trial,) = run.trials()
    assert (str(trial.finish and trial.finish.reason), trial.turns) == ("turn_limit", 2)
    folder = str(tmp_path / "two")
    shown = cli("show", folder, "0", cwd=tmp_path).stdout
    assert "2 turns, " in shown
    assert "After turn 2" in shown
    told = json.loads(cli("report", folder, "--json", cwd=tmp_path).stdout)
    assert told["pairs"][0]["turns"] == 2
    cli("export", folder, "--to", "trials.jsonl", cwd=tmp_path)
    assert json.loads((tmp_path / "trials.jsonl").read_text())["turns"] == 2


def test_two_at_once_do_not_mix(tmp_path: Path) -> None:
    def named(name: str) -> proctor.Run:
        def agent(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
            return f"ACTION: look {name}"

        return evaluate(agents={name: agent}, tasks=["alfworld"], limit=2, overrides=SHORT, folder=tmp_path, name=name)

    with ThreadPoolExecutor(2) as threads:
        runs = list(threads.map(named, ["one", "two"]))
    for run, name in zip(runs, ["one", "two"], strict=True):
        assert {turn.action and turn.action.content for turn in run.turns()} <= {f"ACTION: look {name}", None}
        assert run.state == "finished"


async def test_two_at_once_in_one_loop_and_one_folder(tmp_path: Path) -> None:
    async def twice(**names: str) -> list[proctor.Run | BaseException]:
        plays = [
            aevaluate(agents=agent, tasks=["alfworld"], limit=1, overrides=SHORT, folder=tmp_path, **names)
            for agent in ("naive", "random")
        ]
        return await asyncio.gather(*plays, return_exceptions=True)

    runs = [run for run in await twice() if isinstance(run, proctor.Run)]
    assert [run.scores()[0]["agent"] for run in runs] == ["naive", "random"]
    assert len({run.name for run in runs}) == 2
    ended = await twice(name="same")
    assert sorted(type(end).__name__ for end in ended) == ["PlanError", "Run"]
