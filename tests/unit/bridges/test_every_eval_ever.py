"""Records of Every Eval Ever against the report and the store; `tests/interop` holds them to the schema itself."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eval_client.report.exports.trials import exported_pairs
from eval_client.report.report import report
from eval_client.store.connection import StoreError
from eval_client.store.store import Store
from proctor.types import Summary
from proctor_bridges.exports.every_eval_ever import RECORDS
from tests.exported_run import ECHO, FINISHES, SECRET, THOUGHT, write_run

EPOCHS = 2
SCORES = {name: finish.score for name, finish in FINISHES.items() if finish is not None and finish.score is not None}
SUMMARY = Summary(primary="step_sr", metrics={"step_sr": 43.75, "mean_score": 0.4375, "steps": 2.0}, standard_error=3.0)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = write_run(tmp_path_factory.mktemp("runs"), epochs=EPOCHS)
    yield made
    made.engine.dispose()


def written(store: Store, folder: Path, **options: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """(agent, task) -> the record, with its path as `path`."""
    defaults = {"scores_only": None, "organization": None, "relationship": None, "developer": ()}
    assert RECORDS.write(store, folder, **{**defaults, **options}).endswith(" records")
    found = {}
    for path in folder.rglob("*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        (task,) = {each["evaluation_name"] for each in record["evaluation_results"]}
        found[record["model_info"]["additional_details"]["agent"], task] = {**record, "path": path}
    return found


def rows(record: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    text = (folder / record["detailed_evaluation_results"]["file_path"]).read_text(encoding="ascii")
    return [json.loads(line) for line in text.splitlines()]


def test_a_record_has_the_numbers_of_the_report(store: Store, tmp_path: Path) -> None:
    records = written(store, tmp_path)
    pairs = {(pair.agent, pair.task): pair for pair in report(store).pairs}
    assert set(records) == set(pairs)
    assert len({record["evaluation_id"] for record in records.values()}) == len(pairs)
    for key, pair in pairs.items():
        results = {each["metric_config"]["metric_name"]: each for each in records[key]["evaluation_results"]}
        assert {name: each["score_details"]["score"] for name, each in results.items()} == pair.metrics
        uncertainty = results[pair.primary]["score_details"]["uncertainty"]
        assert uncertainty["standard_error"]["value"] == pair.standard_error
        interval = uncertainty["confidence_interval"]
        assert ((interval["lower"], interval["upper"]), interval["confidence_level"]) == (pair.interval, 0.95)
        assert uncertainty["num_samples"] == len(SCORES)
        trials = json.loads(results[pair.primary]["score_details"]["details"]["trials"])
        assert trials == {"planned": 14, "scored": EPOCHS * len(SCORES), "unscored": EPOCHS * 2}


def test_bounds_and_direction_are_told_only_where_they_are_known(tmp_path: Path) -> None:
    store = write_run(tmp_path / "runs", ["won"], epochs=1)
    for pair in exported_pairs(store):
        store.write_summary(pair.result.agent, pair.result.task, 1, SUMMARY)
    results = written(store, tmp_path / "out")["ann", "walk"]["evaluation_results"]
    told = {each["metric_config"]["metric_name"]: each["metric_config"] for each in results}
    assert set(told) == {"step_sr", "mean_score", "steps"}
    assert (told["mean_score"]["min_score"], told["mean_score"]["max_score"]) == (0.0, 1.0)
    assert told["mean_score"]["additional_details"] == {}
    assert "score_type" not in told["step_sr"], "ltp declares no scale of it"
    assert told["step_sr"]["additional_details"] == {"bounds_status": "unknown"}
    assert told["steps"]["additional_details"] == {"polarity": "unknown", "bounds_status": "unknown"}
    store.engine.dispose()


def test_rows_are_the_scored_trials_and_no_fault_is_a_zero(store: Store, tmp_path: Path) -> None:
    for (agent, task), record in written(store, tmp_path).items():
        found = rows(record, tmp_path)
        assert record["detailed_evaluation_results"]["total_rows"] == len(found)
        scores = {(row["sample_id"], row["metadata"]["epoch"]): row["evaluation"]["score"] for row in found}
        assert scores == {(name, str(epoch)): score for name, score in SCORES.items() for epoch in range(EPOCHS)}
        assert {row["sample_id"] for row in found if row["evaluation"]["is_correct"]} == {"won"}
        ids = {each["evaluation_result_id"] for each in record["evaluation_results"]}
        for row in found:
            assert (row["evaluation_id"], row["model_id"]) == (record["evaluation_id"], record["model_info"]["id"])
            assert row["evaluation_result_id"] in ids
            assert row["interaction_type"] == ("agentic" if task == "walk" else "multi_turn")
            assert [message["turn_idx"] for message in row["messages"]] == list(range(len(row["messages"])))
            thoughts = {message["reasoning_trace"] for message in row["messages"] if "reasoning_trace" in message}
            assert thoughts == {THOUGHT[agent]}


def test_calls_tools_and_tokens_are_the_journals(store: Store, tmp_path: Path) -> None:
    record = written(store, tmp_path)["ann", "walk"]
    given = record["evaluation_results"][0]["generation_config"]
    assert given["generation_args"]["temperature"] == 0.5
    assert [tool["name"] for tool in given["generation_args"]["agentic_eval_config"]["available_tools"]] == [
        "open_door"
    ]
    assert given["additional_details"] == {"turn_limit": "4"}
    row = rows(record, tmp_path)[0]
    example, broken, last = [message["tool_calls"][0] for message in row["messages"] if "tool_calls" in message]
    assert example["arguments"] == {"door": "1"}
    assert broken["arguments"] == {"malformed_arguments": '{"door": '}
    assert last["arguments"] == {"malformed_arguments": '{"to": 1e999}'}
    assert [m["tool_call_id"] for m in row["messages"] if m["role"] == "tool"] == [["ex"], ["c1"]]
    assert row["token_usage"]["input_tokens"] == 200
    assert row["evaluation"]["num_turns"] == 2


def test_what_a_run_does_not_know_is_unknown_until_it_is_told(store: Store, tmp_path: Path) -> None:
    source, model = (written(store, tmp_path)["bob", "walk"][name] for name in ("source_metadata", "model_info"))
    assert (source["source_organization_name"], source["evaluator_relationship"]) == ("unknown", "other")
    assert model.keys() == {"name", "id", "additional_details"}
    assert {path.parent.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.json")} == {
        "data/ltp/org/ann-7b",
        "data/ltp/unknown/bob",
    }
    told = {"organization": "Lab", "relationship": "third_party", "developer": (("bob", "Bob: Inc."),)}
    record = written(store, tmp_path / "told", **told)["bob", "walk"]
    assert record["source_metadata"] == source | {
        "source_organization_name": "Lab",
        "evaluator_relationship": "third_party",
    }
    assert record["model_info"]["developer"] == "Bob: Inc."
    assert record["path"].parent == tmp_path / "told" / "data" / "ltp" / "Bob_ Inc" / "bob"
    with pytest.raises(StoreError, match=r"--developer eve: no such model has a score; there are: bob, org/ann-7b"):
        RECORDS.write(store, tmp_path, scores_only=None, organization=None, relationship=None, developer=[("eve", "x")])


def test_written_again_a_record_replaces_the_earlier_one_and_scores_alone_its_rows(
    store: Store, tmp_path: Path
) -> None:
    first = {record["path"] for record in written(store, tmp_path).values()}
    assert len(list(tmp_path.rglob("*_samples.jsonl"))) == 4
    again = written(store, tmp_path, scores_only=True).values()
    assert {record["path"] for record in again} == first
    assert not any("detailed_evaluation_results" in record for record in again)
    assert not list(tmp_path.rglob("*_samples.jsonl"))


def test_neither_keys_addresses_nor_echoes_are_in_a_record(store: Store, tmp_path: Path) -> None:
    written(store, tmp_path)
    texts = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.json*")]
    assert len(texts) == 8
    assert not [text for text in texts if SECRET in text or ECHO in text]
