"""Protocol `tools` on the embedded engine: the functions, the rounds, and what a session scores."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.database import literal, scoring
from environments.database.environment import Database
from environments.database.functions import TOOLSET
from environments.database.reply import SqlAnswer, SqlOperation
from environments.database.table_hash import TableHash
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.tools import OWN_FUNCTIONS, CallReader, UnreadableCall
from proctor.tools.readers import NOT_EXECUTED
from proctor.types import Action, Finish, FinishReason
from tests.random_calls import fuzz
from tests.support import SHARED_DATA
from tests.tool_calls import CallingAgent, calls, replying
from tests.unit.environments.database.test_scoring import CHANGE

RIGHT = "UPDATE museum_loans SET Returned = 'yes' WHERE Piece = 'Clock no. 7'"
SELECT = ("execute_sql", '{"query": "SELECT 1"}')
DIGESTS = {
    "compat": "b4339bdbd277f945c82c2572ef61151f",
    "strict": "30c17d5bd2d89ee16f6b008be828a639",
    "errata": "c5f43d8e78b009e198a7de0ee72ad51e",
}
"""Of protocol `text` before there was another; to be changed with the revisions alone."""


def world(profile: str = "strict", protocol: str = "tools") -> Database:
    return Database.model_validate({"engine": "sqlite", "profile": profile, "protocol": protocol})


def commit(*answers: str) -> tuple[str, str]:
    return "commit_final_answer", json.dumps({"answers": answers})


async def play(sample: str, *replies: Action, profile: str = "strict") -> tuple[Finish, CallingAgent]:
    caller, database = replying(*replies), world(profile)
    async with database.lifespan():
        finish = await play_to_finish(database, sample, caller)
    assert all(seen.tools == TOOLSET.tools() and not seen.fresh for seen in caller.seen)
    return finish, caller


def told(agent: CallingAgent) -> list[str]:
    return [message.content for message in agent.answers]


@pytest.mark.shared
def test_answers_compare_as_the_published_code_compares_them() -> None:
    rows = [json.loads(line) for line in (SHARED_DATA / "interop/fc/db_answers.jsonl").read_text().splitlines()]
    differing = [row for row in rows if scoring.fc(row["answer"], row["label"]) is not row["correct"]]
    assert (len(rows), differing) == (126, [])


@pytest.mark.parametrize(
    ("answer", "label", "right"),
    [
        (["1,234.5%"], ["1,234.5"], False),
        (["5 %"], ["5"], True),
        (["Infinity"], ["none"], True),
        (["1.005", "1.01"], ["1", "1.015"], True),
        (["1", "1"], ["1", "2"], False),
        ("[New-York, Rome]", ["New-York", "Rome"], True),
        ("['a, b', c]", ["a, b", "c"], True),
        ("[[(5,)]]", ["5"], True),
        ("[(1, 2)]", [], True),
        (" [('a',), (1, 2)]", ["a", "(1 2)"], True),
        ("['a'], ['b']", ["a", "b"], False),
        ("[1 + 1]", ["2"], False),
        ("[max]", ["max"], False),
        ("[x for x in 'ab']", ["a", "b"], False),
        ("[" + "'a', " * literal.MAX_LENGTH + "]", ["a"], False),
        ("[\0]", ["\0"], True),
    ],
)
def test_more_answers_compare_as_fc_does_without_eval(answer: str | list[str], label: list[str], right: bool) -> None:
    assert scoring.fc([*answer] if isinstance(answer, list) else answer, [*label]) is right


@given(st.text(max_size=40) | st.lists(st.text(max_size=10), max_size=4), st.lists(st.text(max_size=10), max_size=4))
def test_no_answer_raises_in_fc(answer: Any, label: Any) -> None:
    for given_answer in (answer, str(answer)):
        assert scoring.fc(given_answer, label) in (True, False)
    assert scoring.fc(label, label) in (True, False)


def test_a_change_counts_only_with_an_answer_in_fc() -> None:
    changed = TableHash(sql="f" * 32)
    assert scoring.marks(CHANGE, True, "[]", changed, scoring.FC) == {"compat": 1.0, "strict": 1.0}
    assert scoring.marks(CHANGE, False, "", changed, scoring.FC) == {"compat": 0.0, "strict": 0.0}


def test_a_text_as_answers_is_the_list_that_it_holds() -> None:
    action = calls(("commit_final_answer", "{\"answers\": \"['a', 'b']\"}"))
    (strict,) = CallReader(TOOLSET, strict=True).read(action).actions
    assert CallReader(TOOLSET, strict=False).read(action).actions == (strict,)
    assert isinstance(strict, SqlAnswer)
    assert scoring.FC.equal(strict.text, ["a", "b"])
    assert scoring.strict(strict.text, ["a", "b"])
    (listed,) = CallReader(TOOLSET, strict=False).read(calls(commit("['a', 'b']"))).actions
    assert isinstance(listed, SqlAnswer)
    assert not scoring.FC.equal(listed.text, ["a", "b"])


@pytest.mark.parametrize("answers", [None, 0, False, {}, "", [], [None, True], [[1], {"a": 2}]])
def test_answers_that_are_no_texts_are_compared_as_fc_compares_them(answers: Any) -> None:
    action = calls(("commit_final_answer", json.dumps({"explanation": answers, "answers": ["x"]})))
    assert CallReader(TOOLSET, strict=False).read(action).actions == (SqlAnswer(json.dumps(answers)),)


@pytest.mark.parametrize("answers", [5, 1.5, True, {"a": 1}])
def test_answers_that_end_the_published_task_by_a_crash_are_told_in_compat_and_taken_in_strict(answers: Any) -> None:
    action = calls(("commit_final_answer", json.dumps({"answers": answers})))
    (compat,) = CallReader(TOOLSET, strict=False).read(action).actions
    assert isinstance(compat, UnreadableCall)
    assert CallReader(TOOLSET, strict=True).read(action).actions == (SqlAnswer(json.dumps(answers)),)


def test_a_call_keeps_the_lines_of_its_statement() -> None:
    (action,) = CallReader(TOOLSET, strict=False).read(calls(("execute_sql", '{"query": "-- a\\nSELECT 1"}'))).actions
    assert action == SqlOperation("-- a\nSELECT 1")


async def test_the_first_messages_are_the_systems_and_the_question() -> None:
    _, caller = await play("select-00000", calls(commit("x")))
    assert [message.role for message in caller.history] == ["system", "user", "assistant"]
    assert caller.history[1].content.startswith("Who keeps the Marrow Point lighthouse?\nThe table is called Light")
    assert "```" not in caller.history[0].content


async def test_8_calls_run_in_order_and_nothing_after_a_commit() -> None:
    three = calls(("execute_sql", json.dumps({"query": RIGHT})), commit("done"), SELECT)
    finish, caller = await play("update-00003", SELECT_ONE, three)
    assert (finish.reason, finish.score, finish.metrics["statements"]) == (FinishReason.COMPLETED, 1.0, 2)
    assert (finish.metrics["calls"], finish.metrics["extra_calls"], len(caller.seen)) == (4, 0, 2)


async def test_several_statements_of_a_reply_are_answered_in_order() -> None:
    two = calls(SELECT, ("execute_sql", '{"query": "SELECT 2"}'))
    _, caller = await play("select-00000", two, calls(commit("x")))
    assert told(caller) == ["[(1,)]", "[(2,)]"]
    assert NOT_EXECUTED not in told(caller)


async def test_9_malformed_arguments_are_told_and_the_session_goes_on() -> None:
    finish, caller = await play("select-00000", calls(("execute_sql", '{"query": "')), calls(commit("Tom Quay")))
    assert told(caller)[0].startswith("The arguments of execute_sql can't be read: no JSON")
    assert (finish.metrics["bad_arguments"], finish.metrics["statements"]) == (1, 0)


SELECT_ONE = calls(SELECT)


@pytest.mark.parametrize(
    ("reply", "reason", "metric"),
    [
        (Action(content='Action: Answer\nFinal Answer: ["Tom Quay"]'), FinishReason.INVALID_FORMAT, "no_call"),
        (calls(("execute_sql", "{")), FinishReason.INVALID_FORMAT, "bad_arguments"),
        (calls(("run_sql", "{}")), FinishReason.INVALID_ACTION, "unknown_function"),
        (SELECT_ONE, FinishReason.TURN_LIMIT, "statements"),
    ],
)
async def test_20_a_session_ends_after_15_replies_with_what_was_wrong(
    reply: Action, reason: FinishReason, metric: str
) -> None:
    finish, caller = await play("select-00000", reply)
    assert (finish.reason, finish.score, finish.metrics[metric], len(caller.seen)) == (reason, 0.0, 15, 15)
    assert world().max_turns == 15
    finish, _ = await play("select-00000", reply, profile="compat")
    assert (finish.reason, finish.score) == (FinishReason.TURN_LIMIT, 0.0)


@pytest.mark.parametrize("profile", ["compat", "strict", "errata"])
async def test_a_change_without_a_commit_scores_nothing(profile: str) -> None:
    finish, _ = await play("update-00003", calls(("execute_sql", json.dumps({"query": RIGHT}))), profile=profile)
    assert (finish.reason, finish.score) == (FinishReason.TURN_LIMIT, 0.0)


@pytest.mark.parametrize("profile", ["compat", "strict", "errata"])
async def test_3_the_reference_and_the_naive_policy_score_as_in_text(profile: str) -> None:
    async def scores(protocol: str, kind: str) -> list[tuple[FinishReason, float | None, float]]:
        database = world(profile, protocol)
        async with database.lifespan():
            played = [
                await play_to_finish(database, sample, PolicyAgent(getattr(database, kind)(sample, 7)))
                for sample in database.samples()
            ]
        return [(each.reason, each.score, each.metrics["statements"]) for each in played]

    for kind in ("reference", "naive", "random"):
        assert await scores("tools", kind) == await scores("text", kind)
    assert {score for _, score, _ in await scores("tools", "reference")} == {1.0}


@pytest.mark.parametrize("profile", DIGESTS)
def test_5_the_digest_of_text_stays_and_that_of_tools_is_another(profile: str) -> None:
    assert world(profile, "text").digest() == DIGESTS[profile] != world(profile).digest()


def test_scores_in_tools_compare_with_nothing_published() -> None:
    assert world("compat").not_comparable_because() == OWN_FUNCTIONS
    assert not any("reply forms" in note for note in world().summarize([]).notes)
    assert any("AgentBench FC" in note for note in world().summarize([]).notes)


def test_a_published_prompt_is_refused_in_tools() -> None:
    with pytest.raises(ValueError, match=r"prompts: .* set protocol: text"):
        Database.model_validate({"protocol": "tools", "prompts": "task.py"})


@pytest.mark.thorough
@pytest.mark.parametrize("profile", ["compat", "strict"])
@pytest.mark.parametrize("seed", range(60))
async def test_22_any_calls_are_played_to_a_finish_with_a_score(profile: str, seed: int) -> None:
    database = world(profile)
    samples = database.samples()
    async with database.lifespan():
        _, turns = await fuzz(database, samples[seed % len(samples)], seed)
    assert turns <= 15
