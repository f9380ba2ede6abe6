"""Protocol `tools`: how answers compare, and what the calls are read as."""

import json
from typing import Any

import pytest

from environments.database import literal, scoring
from environments.database.functions import TOOLSET
from environments.database.reply import SqlAnswer, SqlOperation
from environments.database.table_hash import TableHash
from proctor.tools import CallReader, UnreadableCall
from tests.support import SHARED_DATA
from tests.tool_calls import calls
from tests.unit.environments.database.test_scoring import CHANGE


def commit(*answers: str) -> tuple[str, str]:
    return "commit_final_answer", json.dumps({"answers": answers})


@pytest.mark.shared
def test_answers_compare_as_the_published_code_compares_them() -> None:
    rows = [json.loads(line) for line in (SHARED_DATA / "interop/fc/db_answers.jsonl").read_text().splitlines()]
    differing = [row for row in rows if scoring.fc(row["answer"], row["label"]) is not row["correct"]]
    assert (len(rows), differing) == (126, [])


def test_a_list_that_is_too_long_for_a_literal_is_wrong_in_fc() -> None:
    assert not scoring.fc("[" + "'a', " * literal.MAX_LENGTH + "]", ["a"])


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
