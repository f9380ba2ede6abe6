"""Runs as Inspect, Harbor and trainers read them, checked against the store by other means than the exports' own."""

import json
import math
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from eval_client.report.exports import inspect_log
from eval_client.report.exports.trials import arguments_object, exported_pairs
from eval_client.report.exports.write import json_lines, write_inspect
from eval_client.store.connection import StoreError
from eval_client.store.store import Store
from eval_client.store.trials.trajectory import BATCH, conversation, read_trajectories
from proctor.types import FinishReason, Message, ToolCall
from proctor_bridges.exports.atif import trajectories
from proctor_bridges.exports.files import write_atif, write_sft
from proctor_bridges.exports.sft import RowChoice
from task_server.wire.messages import Stop
from tests.exported_run import ECHO, FINISHES, SECRET, THOUGHT, write_run
from tests.tool_calls import invalid_history

OVER = [sample for sample, finish in FINISHES.items() if finish is not None]
SCORED = [sample for sample, finish in FINISHES.items() if finish is not None and finish.score is not None]
EPOCHS = 2


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = write_run(tmp_path_factory.mktemp("runs"), epochs=EPOCHS)
    yield made
    made.engine.dispose()


def logs(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """(agent, task) -> file in the log -> its JSON"""
    found = {}
    for path in folder.glob("*.eval"):
        with zipfile.ZipFile(path) as log:
            assert {info.compress_type for info in log.infolist()} <= {zipfile.ZIP_DEFLATED}
            read = {name: json.loads(log.read(name)) for name in log.namelist()}
        told = read["header.json"]["eval"]
        found[told["solver"], told["task"]] = read
    return found


def samples(log: dict[str, Any]) -> dict[tuple[str, int], dict[str, Any]]:
    return {(v["metadata"]["sample"], v["epoch"]): v for k, v in log.items() if k.startswith("samples/")}


def test_there_is_a_log_for_each_pair_with_each_trial_that_is_over(store: Store, tmp_path: Path) -> None:
    assert write_inspect(store, tmp_path) == f"{4 * EPOCHS * len(OVER)} trials in 4 files"
    found = logs(tmp_path)
    assert set(found) == {(agent, task) for agent in THOUGHT for task in ("walk", "talk")}
    for log in found.values():
        assert set(samples(log)) == {(sample, epoch) for sample in OVER for epoch in (1, 2)}
        head = log["header.json"]
        assert (head["status"], head["version"]) == ("started", 2), "two trials of each pair are owed"
        assert head["eval"] == log["_journal/start.json"]["eval"]
        assert head["eval"]["dataset"]["samples"] == len(OVER)
        assert [each["id"] for each in log["summaries.json"]] == [
            each["id"] for name, each in log.items() if name.startswith("samples/")
        ]
    write_inspect(store, tmp_path)
    assert len(list(tmp_path.iterdir())) == 4, "written again, they replace the earlier ones"


def test_a_fault_is_an_error_and_counts_in_no_mean(store: Store, tmp_path: Path) -> None:
    write_inspect(store, tmp_path)
    for log in logs(tmp_path).values():
        for (sample, _), made in samples(log).items():
            finish = FINISHES[sample]
            assert finish is not None
            if finish.score is None:
                cause = str(finish.detail["cause"]).replace(f"https://{SECRET}.example/v1", "[address]")
                assert made["error"] == {"message": cause, "traceback": "", "traceback_ansi": ""}
                assert "scores" not in made
            else:
                assert made["scores"]["proctor"]["value"] == finish.score
                assert made["scores"]["proctor"]["metadata"] == finish.metrics
                assert "error" not in made
        (score,) = log["header.json"]["results"]["scores"]
        values = [each["scores"]["proctor"]["value"] for each in log["summaries.json"] if "scores" in each]
        assert score["metrics"]["mean"]["value"] == pytest.approx(math.fsum(values) / len(values))
        assert (score["scored_samples"], score["unscored_samples"]) == (EPOCHS * len(SCORED), EPOCHS * 2)
        assert [each["error"] for each in log["summaries.json"] if "error" in each].count(
            "no answer of [address]"
        ) == EPOCHS


@pytest.mark.parametrize(
    ("primary", "own", "wanted"),
    [
        ("mean_score", {"mean_score": 0.25}, {"mean_score": 0.25, "mean": 0.25, "stderr": 0.1}),
        ("main", {"main": 0.5}, {"main": 0.5, "mean": 0.25, "stderr_main": 0.1}),
        ("rate", {"rate": 0.5, "mean": 7.0}, {"rate": 0.5, "mean": 7.0, "mean_score": 0.25, "stderr_rate": 0.1}),
    ],
)
def test_metrics_keep_their_names_and_the_error_stands_beside_its_own(
    store: Store, primary: str, own: dict[str, float], wanted: dict[str, float]
) -> None:
    pair = exported_pairs(store)[0]
    given = {"primary": primary, "metrics": own, "mean_score": 0.25, "standard_error": 0.1}
    made: Any = inspect_log.header(
        pair.model_copy(update={"result": pair.result.model_copy(update=given)}), {}, "", metered=True
    )
    (score,) = made["results"]["scores"]
    assert {name: metric["value"] for name, metric in score["metrics"].items()} == wanted


def test_messages_calls_and_tokens_are_the_journals(store: Store, tmp_path: Path) -> None:
    write_inspect(store, tmp_path)
    found = logs(tmp_path)
    walked = samples(found["ann", "walk"])["won", 1]
    assert [message["role"] for message in walked["messages"]] == [
        *("system", "user", "assistant", "tool", "user", "assistant", "tool", "assistant")
    ]
    example, broken, last = (m for m in walked["messages"] if m["role"] == "assistant")
    assert [m["source"] for m in (example, broken, last)] == ["input", "generate", "generate"]
    assert example["tool_calls"][0]["arguments"] == {"door": "1"}
    assert broken["tool_calls"][0]["arguments"] == {}
    assert '{"door": ' in broken["tool_calls"][0]["parse_error"]
    assert [part["type"] for part in broken["content"]] == ["reasoning", "text"]
    assert [m["function"] for m in walked["messages"] if m["role"] == "tool"] == ["open_door", "open_door"]
    assert walked["input"] == "Example: door 1."
    assert walked["output"]["choices"][0]["stop_reason"] == "tool_calls"
    assert walked["scores"]["proctor"]["answer"] == "['x', 1]"
    assert walked["model_usage"]["lab/org/ann-7b"] == {
        "input_tokens": 120,
        "output_tokens": 20,
        "total_tokens": 220,
        "input_tokens_cache_read": 80,
        "reasoning_tokens": 10,
    }
    assert (walked["total_time"], walked["working_time"]) == (20.0, 6.0)
    talked = samples(found["bob", "talk"])["long", 2]
    assert [m["content"] if isinstance(m["content"], str) else m["content"][1]["text"] for m in talked["messages"]] == [
        *("Guess? [a, b]", "a", "No. Guess? [b]", "b")
    ]
    assert list(talked["metadata"]["conversations"]) == ["..", "main-2"]
    assert [event["data"]["conversation"] for event in talked["events"] if event["event"] == "info"] == ["..", "main-2"]
    assert talked["limit"]["type"] == "turn"
    assert talked["limit"]["limit"] == 4
    assert samples(found["bob", "talk"])["full", 1]["output"]["choices"][0]["stop_reason"] == "model_length"
    assert found["bob", "talk"]["header.json"]["eval"]["model"].startswith("url-"), "never an endpoint's address"


def test_each_turn_is_an_event_with_the_history_that_was_sent(store: Store, tmp_path: Path) -> None:
    write_inspect(store, tmp_path)
    for (agent, task), log in logs(tmp_path).items():
        by_trial = {made["metadata"]["trial"]: made for made in samples(log).values()}
        for trial in read_trajectories(store, agent, task):
            made, turns = by_trial[trial.trial], list(conversation(trial.turns))
            pool, calls = made["events_data"]["messages"], [e for e in made["events"] if e["event"] == "model"]
            assert [e["metadata"]["turn"] for e in calls] == [turn.turn for turn in turns if turn.action is not None]
            for event, turn in zip(calls, turns, strict=False):
                sent = [message for start, end in event["input_refs"] for message in pool[start:end]]
                assert [(m["role"], text(m)) for m in sent] == [
                    (m.role, m.content) for m in (*turn.earlier, *turn.messages)
                ]
                (choice,) = event["output"]["choices"]
                assert turn.action is not None
                assert text(choice["message"]) == turn.action.content
                assert event["output"]["usage"]["total_tokens"] == turn.prompt_tokens + turn.completion_tokens
            assert len({message["id"] for message in pool}) == len(pool)
            assert {m["id"] for m in made["messages"]} | {
                e["output"]["choices"][0]["message"]["id"] for e in calls
            } <= {message["id"] for message in pool}
    walked = samples(logs(tmp_path)["ann", "walk"])["won", 1]
    assert [(e["event"], e["working_start"], e["working_time"]) for e in walked["events"]] == [
        *(("model", 1.0, 2.0), ("tool", 3.0, 1.0), ("model", 4.0, 2.0))
    ]
    tool = walked["events"][1]
    assert (tool["result"], tool["error"]["type"]) == ("Unreadable.", "parsing")
    assert tool["message_id"] in {message["id"] for message in walked["messages"]}


def text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else content[-1]["text"]


def test_ids_are_safe_and_each_pairs_own(store: Store, tmp_path: Path) -> None:
    """Else inspect-scout's scan ends at its first trial, and Inspect's viewer hides the other agents' logs."""
    write_inspect(store, tmp_path)
    heads = [log["header.json"]["eval"] for log in logs(tmp_path).values()]
    assert len({head["task_id"] for head in heads}) == len({head["eval_id"] for head in heads}) == 4
    assert heads[0]["model_args"]["proctor_model"] in ("org/ann-7b", "bob")
    ids = [made["uuid"] for log in logs(tmp_path).values() for made in samples(log).values()]
    assert len(set(ids)) == 4 * EPOCHS * len(OVER)
    assert not any("/" in each for head in heads for each in (*ids, head["task_id"], head["eval_id"], head["run_id"]))


def test_a_refusal_is_an_event_without_a_thing_said(store: Store) -> None:
    pair = exported_pairs(store)[0]
    trial = next(each for each in read_trajectories(store, pair.result.agent, pair.result.task) if each.turns)
    stopped = trial.turns[1].model_copy(update={"reply": Stop(reason=FinishReason.REFUSED), "tries": 1})
    made: Any = inspect_log.sample(trial.model_copy(update={"turns": (trial.turns[0], stopped)}), pair)
    last = made["events"][-1]
    assert (last["error"], last["output"]["choices"][0]["stop_reason"]) == ("refused", "content_filter")
    assert len(last["input_refs"]) == 1
    assert last["input_refs"][0][1] == len(made["messages"])


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"type": "string", "description": "d", "enum": ["a"]}, {"type": "string", "description": "d", "enum": ["a"]}),
        ({"type": "array", "items": {"type": "any"}}, {"type": "array", "items": {}}),
        ({"type": "object", "properties": {"a": True}, "required": ["a", "b"]},
         {"type": "object", "properties": {"a": {}}, "required": ["a"]}),
        ({"type": ["string", "null"], "enum": "a", "description": 1}, {}),
        ({"$ref": "#/a"}, {}),
    ],
)  # fmt: skip
def test_of_a_functions_schema_stays_what_inspect_can_read(store: Store, schema: Any, wanted: Any) -> None:
    pair = exported_pairs(store)[0]
    trial = next(each for each in read_trajectories(store, pair.result.agent, pair.result.task) if each.turns)
    seen = json.loads(trial.turns[0].observation)
    tools = [{"name": "f", "description": "", "parameters": {"properties": {"x": schema}}}]
    turn = trial.turns[0].model_copy(update={"observation": json.dumps({**seen, "tools": tools})})
    made: Any = inspect_log.sample(trial.model_copy(update={"turns": (turn,)}), pair)
    assert made["events"][0]["tools"][0]["parameters"]["properties"] == {"x": wanted}


@pytest.mark.parametrize("text", ['{"a":1e999}', '{"a":[{"b":-1e999}]}', '{"a":NaN}', '{"a":'])
def test_arguments_that_json_cannot_hold_are_unreadable(text: str) -> None:
    assert arguments_object(text) is None
    assert arguments_object('{"a":[1e99,{"b":null}]}') == {"a": [1e99, {"b": None}]}


def test_no_line_holds_a_number_that_is_no_json() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        list(json_lines([{"a": math.inf}]))


def test_ids_are_safe_in_names_and_stay_apart() -> None:
    odd = ["a/b", "a%2Fb", "..", "../x", "a\\b", "a:b", "a\nb", "ä", ".x", "%2Ex", "plain-1.txt"]
    made = [inspect_log.sample_id(each) for each in odd]
    assert len(set(made)) == len(odd)
    assert all(re.fullmatch(r"[^/\\:\x00-\x1f.][^/\\:\x00-\x1f]*", each) for each in made)
    assert made[-1] == "plain-1.txt"


def test_a_trajectory_has_steps_without_gaps_and_results_at_their_calls(store: Store, tmp_path: Path) -> None:
    trials, files = write_atif(store, tmp_path)
    assert trials == 4 * EPOCHS * len(OVER)
    read = {path.parent.relative_to(tmp_path): json.loads(path.read_text()) for path in tmp_path.rglob("*.json")}
    silent = 2 * EPOCHS
    assert files == len(read) == 2 * EPOCHS * len(OVER) + 3 * 2 * EPOCHS * len(OVER) - 2 * silent
    for made in read.values():
        assert made["schema_version"] == "ATIF-v1.7"
        assert [step["step_id"] for step in made["steps"]] == list(range(1, len(made["steps"]) + 1))
        told = made["extra"]["proctor"]
        assert ("score" in told) != ("cause" in told)
        assert SECRET not in told.get("cause", "")
        assert told["run_digest"]
    walked = next(
        made
        for made in read.values()
        if made["extra"]["proctor"] | {"task": "walk", "sample": "won", "epoch": 0} == made["extra"]["proctor"]
        and made["agent"]["name"] == "ann"
    )
    example, broken, last = (step for step in walked["steps"] if step["source"] == "agent")
    assert example["is_copied_context"]
    assert "metrics" not in example
    assert broken["observation"]["results"] == [{"source_call_id": "c1", "content": "Unreadable."}]
    assert broken["tool_calls"][0]["extra"] == {"arguments": '{"door": '}
    assert broken["metrics"] == {
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "cached_tokens": 40,
        "completion_token_ids": [7, 8],
        "logprobs": [-0.5, -0.25],
    }
    assert broken["reasoning_content"] == THOUGHT["ann"]
    assert "observation" not in last
    assert walked["final_metrics"]["total_prompt_tokens"] == 200
    assert [tool["function"]["name"] for tool in walked["agent"]["tool_definitions"]] == ["open_door"]


def test_tokens_that_are_not_known_are_left_out_and_no_zeros(store: Store) -> None:
    pair = exported_pairs(store)[0]
    trial = next(each for each in read_trajectories(store, pair.result.agent, pair.result.task) if each.turns)
    first, *others = trial.turns
    unknown = first.model_copy(update={"prompt_tokens": 0, "completion_tokens": 0, "metered": False})
    unmetered = trial.model_copy(update={"turns": (unknown, *others)})
    made: Any = trajectories(unmetered, pair)["main"]
    broken, last = (step for step in made["steps"] if step["source"] == "agent" and "is_copied_context" not in step)
    assert "llm_call_count" not in broken
    assert broken["metrics"] == {"completion_token_ids": [7, 8], "logprobs": [-0.5, -0.25]}
    assert (last["llm_call_count"], last["metrics"]["prompt_tokens"]) == (1, 100)
    assert made["final_metrics"] == {"total_steps": len(made["steps"])}
    assert inspect_log.sample(unmetered, pair)["model_usage"] == {}
    assert inspect_log.sample(trial, pair)["model_usage"] != {}
    stats: Any = [inspect_log.header(pair, {}, "", metered=metered)["stats"] for metered in (True, False)]
    assert [bool(each["model_usage"]) for each in stats] == [True, False]


def rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def messages(row: dict[str, Any]) -> list[Message]:
    """The messages of a row as ours."""
    return [
        Message(
            role=message["role"],
            content=message["content"],
            tool_call_id=message.get("tool_call_id"),
            tool_calls=tuple(ToolCall(id=c["id"], **c["function"]) for c in message.get("tool_calls", ())),
        )
        for message in row["messages"]
    ]


def test_rows_to_train_on_are_valid_histories_and_say_which_answers_were_the_agents(
    store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "sft.jsonl"
    assert write_sft(store, path, RowChoice()) == 2 * EPOCHS * len(SCORED) * (1 + 3)
    for row in rows(path):
        assert invalid_history(messages(row)) is None
        assert row["score"] is not None
        assert len(row["trainable"]) == len(row["messages"])
        assert {m["role"] for m, mine in zip(row["messages"], row["trainable"], strict=True) if mine} == {"assistant"}
        assert all(isinstance(json.loads(c["function"]["arguments"]), dict) for m in row["messages"]
                   for c in m.get("tool_calls", ()))  # fmt: skip
        if row["task"] == "walk":
            assert row["trainable"] == [False, False, False, False, False, True, False, True, False]
            assert row["completion_token_ids"] == [[7, 8], []]
            assert row["logprobs"] == [[-0.5, -0.25], []]
            assert row["tools"][0]["function"]["name"] == "open_door"
        else:
            assert "logprobs" not in row
            assert row["messages"][-1]["role"] == "assistant"


@pytest.mark.parametrize(
    ("choice", "taken"),
    [
        (RowChoice(min_score=0.5), {"won", "long"}),
        (RowChoice(reasons=frozenset({FinishReason.COMPLETED})), {"won", "../lost"}),
        (RowChoice(reasons=frozenset({FinishReason.COMPLETED}), min_score=1.0), {"won"}),
        (RowChoice(reasons=frozenset({FinishReason.TASK_ERROR, FinishReason.TURN_LIMIT})), {"broken", "long"}),
        (RowChoice(reasons=frozenset({FinishReason.TASK_ERROR}), min_score=0.0), set()),
    ],
)
def test_rows_are_chosen(store: Store, tmp_path: Path, choice: RowChoice, taken: set[str]) -> None:
    write_sft(store, tmp_path / "sft.jsonl", choice)
    assert {row["sample"] for row in rows(tmp_path / "sft.jsonl")} == taken


def test_arguments_may_be_objects(store: Store, tmp_path: Path) -> None:
    write_sft(store, tmp_path / "sft.jsonl", RowChoice(arguments="object"))
    calls = [c["function"]["arguments"] for row in rows(tmp_path / "sft.jsonl")
             for m in row["messages"] for c in m.get("tool_calls", ())]  # fmt: skip
    assert {"door": "1"} in calls
    assert all(isinstance(each, dict) for each in calls)


def test_parquet_holds_the_same_rows(store: Store, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    everything = RowChoice(reasons=frozenset(FinishReason))
    count = write_sft(store, tmp_path / "sft.parquet", everything)
    write_sft(store, tmp_path / "sft.jsonl", everything)
    wanted = rows(tmp_path / "sft.jsonl")
    found = parquet.read_table(tmp_path / "sft.parquet").to_pylist()
    assert count == len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert [m["content"] for m in one["messages"]] == [m["content"] for m in other["messages"]]
        assert [m["tool_calls"] for m in one["messages"]] == [m.get("tool_calls") for m in other["messages"]]
        assert json.loads(one["tools"]) == other["tools"]
        same = ("score", "trainable", "reason", "sample", "epoch", "run_digest")
        assert {name: one[name] for name in same} == {name: other[name] for name in same}
        assert one["logprobs"] == other.get("logprobs")


def texts(folder: Path) -> Iterator[str]:
    """The text of all files of a folder, those in zips too."""
    for path in filter(Path.is_file, folder.rglob("*")):
        if path.suffix == ".eval":
            with zipfile.ZipFile(path) as log:
                yield from (name + log.read(name).decode() for name in log.namelist())
        else:
            yield path.read_bytes().decode("utf-8", "replace")


def test_neither_keys_nor_what_only_an_endpoint_may_see_is_in_an_export(store: Store, tmp_path: Path) -> None:
    write_inspect(store, tmp_path)
    write_atif(store, tmp_path)
    write_sft(store, tmp_path / "sft.jsonl", RowChoice(reasons=frozenset(FinishReason)))
    write_sft(store, tmp_path / "sft.parquet", RowChoice(reasons=frozenset(FinishReason)))
    assert not [text for text in texts(tmp_path) if SECRET in text or ECHO in text]


def test_an_agents_reasoning_is_in_its_own_files_alone(store: Store, tmp_path: Path) -> None:
    write_inspect(store, tmp_path / "inspect")
    write_atif(store, tmp_path / "atif")
    (tmp_path / "sft").mkdir()
    write_sft(store, tmp_path / "sft" / "sft.jsonl", RowChoice())
    assert not [text for text in texts(tmp_path / "sft") if any(each in text for each in THOUGHT.values())]
    for (agent, _), log in logs(tmp_path / "inspect").items():
        assert THOUGHT[agent] in json.dumps(log)
        assert not [each for name, each in THOUGHT.items() if name != agent and each in json.dumps(log)]
    for text in texts(tmp_path / "atif"):
        agent = json.loads(text)["agent"]["name"]
        assert not [each for name, each in THOUGHT.items() if name != agent and each in text]


def test_a_file_that_cannot_be_written_leaves_the_earlier_one(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "sft.jsonl"
    path.write_text("earlier")

    def fail(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        assert not statement.startswith("SELECT proctor_turn"), "broken off"

    sa.event.listen(store.engine, "before_cursor_execute", fail)
    with pytest.raises(AssertionError, match="broken off"):
        write_sft(store, path, RowChoice())
    sa.event.remove(store.engine, "before_cursor_execute", fail)
    assert [each.name for each in tmp_path.iterdir()] == ["sft.jsonl"]
    assert path.read_text() == "earlier"
    with pytest.raises(StoreError, match=r"nowhere/sft.jsonl: can't be written: .*--to"):
        write_sft(store, tmp_path / "nowhere" / "sft.jsonl", RowChoice())
    with pytest.raises(StoreError, match=r"sft.jsonl: can't be made: .*--to"):
        write_atif(store, path)


def test_memory_holds_a_few_trials_at_once(tmp_path: Path) -> None:
    names = [f"s{number}" for number in range(BATCH * 3)]
    store = write_run(tmp_path / "runs", names, epochs=1)
    sizes: list[int] = []

    @sa.event.listens_for(store.engine, "before_cursor_execute")
    def count(connection: object, cursor: object, statement: str, parameters: Any, *_: object) -> None:
        if statement.startswith("SELECT proctor_turn"):
            sizes.append(len(parameters))

    write_sft(store, tmp_path / "sft.jsonl", RowChoice())
    assert len(sizes) == 4 * 3
    assert max(sizes) <= BATCH + 1
    store.engine.dispose()
