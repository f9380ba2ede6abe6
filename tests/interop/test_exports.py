"""Exports of real runs, read by Inspect, Harbor's models and Every Eval Ever: the acceptance of interop, 5.4."""

import dataclasses
import json
import math
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from eval_client.report.scrub import publishable
from tests.e2e.proctor import exits, proctor
from tests.e2e.scripted import listening
from tests.e2e.tools_endpoint import CANARY, TokensEndpoint, importable
from tests.exported_run import RUN, SECRET, THOUGHT, write_run
from tests.interop.counterparts import interpreter, run
from tests.pace import slowly
from tests.support import ROOT
from tests.tool_calls import invalid_history
from tests.unit.eval_client.report.test_exports import messages, rows, texts

KEY = "canary-of-the-key-0123456789"
PLAN = """\
name: doors
endpoints: [{{name: scripted, base_url: "{endpoint}", api_key_env: SCRIPTED_KEY}}]
agents:
  - {{name: tokens, endpoint: scripted, model: tokens, sampling: {{logprobs: true}}}}
  - {{name: plain, endpoint: scripted, model: plain}}
tasks:
  - {{name: doors, environment: doors, parameters: {{turns: 3, count: 2}}}}
  - {{name: plain-doors, environment: doors, parameters: {{turns: 3, count: 2, protocol: text}}}}
"""
MEASURED = """\
import sys
from pathlib import Path
from eval_client.cli.main import main
try:
    main()
finally:  # not the ru_maxrss, which counts the process that started this one
    print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0], file=sys.stderr)
"""
RUNS = ("demo", "doors", RUN)
each_run = pytest.mark.parametrize("name", RUNS)


@dataclasses.dataclass(frozen=True)
class Exports:
    """A run's exports, and its trials and turns by the older ones."""

    folder: Path
    trials: list[dict[str, Any]]
    turns: list[dict[str, Any]]

    def over(self) -> dict[int, dict[str, Any]]:
        return {row["id"]: row for row in self.trials if row["reason"] is not None}


def exported(run_folder: Path) -> Exports:
    forms = ("--as=inspect", "--as=atif", "--as=sft", "--as=every-eval-ever")
    for options in (*([form] for form in forms), ["--what=trials"], ["--what=turns"]):
        exits(0, "export", str(run_folder), *options, cwd=run_folder)
    return Exports(run_folder, rows(run_folder / "trials.jsonl"), rows(run_folder / "turns.jsonl"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Exports]:
    """A demo, a run by function calls at an endpoint that gives log probabilities, and one with faults."""
    folder, scripted = tmp_path_factory.mktemp("exports"), TokensEndpoint()
    exits(0, "demo", "--limit=1", "-o", "demo", cwd=folder)
    with listening(scripted):
        (folder / "plan.yaml").write_text(PLAN.format(endpoint=scripted.url))
        keys = {"SCRIPTED_KEY": KEY, **importable(folder)}
        exits(0, "run", "plan.yaml", "-o", "doors", cwd=folder, **keys)
    write_run(folder / "made").engine.dispose()
    found = {"demo": next((folder / "demo").iterdir()), "doors": next((folder / "doors").iterdir())}
    found[RUN] = folder / "made" / RUN
    return {name: exported(path) for name, path in found.items()}


@pytest.fixture(scope="module")
def logs(runs: dict[str, Exports]) -> dict[str, list[dict[str, Any]]]:
    """run -> what Inspect reads in each of its logs."""
    return {name: run("inspect", "read_inspect.py", each.folder / "inspect") for name, each in runs.items()}


@each_run
def test_1_inspect_reads_what_the_store_has(name: str, runs: dict[str, Exports], logs: Any) -> None:
    made, read = runs[name], logs[name]
    assert {(log["solver"], log["task"]) for log in read} == {(row["agent"], row["task"]) for row in made.trials}
    assert len(read) == len(list((made.folder / "inspect").iterdir()))
    owed = {(row["agent"], row["task"]) for row in made.trials if row["reason"] is None}
    for log in read:
        assert log["status"] == ("started" if (log["solver"], log["task"]) in owed else "success")
        assert log["metadata"]["run"] == made.folder.name
        assert re.fullmatch("[0-9a-f]{32}", log["metadata"]["run_digest"])
    found = {sample["trial"]: sample for log in read for sample in log["samples"]}
    over = made.over()
    assert set(found) == set(over)
    for trial, row in over.items():
        sample = found[trial]
        assert (sample["sample"], sample["key"][1]) == (row["sample"], row["epoch"] + 1)
        assert (sample["score"], sample["error"]) == (row["score"], row["cause"] and publishable(row["cause"]))
        limit = {"turn_limit": "turn", "context_limit": "context"}.get(row["reason"])
        assert sample["limit"] == limit
        answers = [turn for turn in made.turns if turn["trial"] == trial and turn["action"] is not None]
        called = [
            [call["id"], call["name"]]
            for turn in answers
            if turn["observation"].get("conversation", "main") == "main"
            for call in turn["action"]["tool_calls"]
        ]
        assert [call[:2] for call in sample["calls"] if call[0] != "ex"] == called
        assert sample["events"].count("model") == len(answers)
        assert sample["events"].count("info") == len(sample["conversations"])
        if not sample["conversations"]:
            said = [turn["action"]["content"] for turn in answers]
            assert [text for text in sample["texts"] if text in said][-len(said) :] == said


@each_run
def test_1_inspects_summaries_are_those_of_its_samples(name: str, logs: Any) -> None:
    for log in logs[name]:
        by_key = {tuple(each["key"]): each for each in log["samples"]}
        assert len(by_key) == len(log["summaries"])
        for each in log["summaries"]:
            sample = by_key[tuple(each["key"])]
            assert (each["score"], each["error"], each["limit"]) == (sample["score"], sample["error"], sample["limit"])
            assert each["messages"] == len(sample["texts"])
            assert each["completed"] == (sample["error"] is None)


def test_2_inspects_own_commands_list_and_dump_the_logs(runs: dict[str, Exports]) -> None:
    folder = runs["demo"].folder / "inspect"
    program = Path(interpreter("inspect")).parent / "inspect"
    listed = inspect(program, "log", "list", "--json", "--log-dir", str(folder))
    assert {Path(each["name"]).name for each in listed} == {path.name for path in folder.iterdir()}
    path = min(folder.iterdir())
    assert inspect(program, "log", "dump", str(path))["eval"]["run_id"] == runs["demo"].folder.name


def inspect(program: Path, *arguments: str) -> Any:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=slowly(120), check=True)
    return json.loads(done.stdout)


def test_2_ten_thousand_trials_are_exported_in_less_than_300_mb(tmp_path: Path) -> None:
    write_run(tmp_path / "runs", [f"s{number}" for number in range(2500)], epochs=1).engine.dispose()
    command = [sys.executable, "-c", MEASURED, "export", RUN, "--as", "inspect"]
    options: dict[str, Any] = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": slowly(300)}
    done = subprocess.run(command, check=True, **options)
    assert done.stdout.startswith("10,000 trials in 4 files")
    assert int(done.stderr.splitlines()[-1]) < 300_000, "kilobytes"


@each_run
def test_3_inspects_mean_is_ours_over_scored_trials(name: str, runs: dict[str, Exports], logs: Any) -> None:
    for log in logs[name]:
        mine = [r for r in runs[name].trials if (r["agent"], r["task"]) == (log["solver"], log["task"])]
        scores = [row["score"] for row in mine if row["score"] is not None]
        mean = log["metrics"].get("mean_score", log["metrics"]["mean"])  # a task may have a `mean` of its own
        assert mean == pytest.approx(math.fsum(scores) / len(scores))
        faults = [row for row in mine if row["cause"] is not None]
        assert log["scored"] == [len(scores), len(faults), len(mine)]
        theirs = [sample["score"] for sample in log["samples"] if sample["score"] is not None]
        assert math.fsum(theirs) / len(theirs) == pytest.approx(mean)


@each_run
def test_4_harbors_model_accepts_every_trajectory(name: str, runs: dict[str, Exports]) -> None:
    made = runs[name]
    read = run("harbor", "read_atif.py", made.folder / "atif")
    over = made.over()
    assert {int(Path(each["path"]).parts[0]) for each in read} == set(over)
    for trial, row in over.items():
        mine = [each for each in read if int(Path(each["path"]).parts[0]) == trial]
        turns = [turn for turn in made.turns if turn["trial"] == trial and turn["action"] is not None]
        assert sum(each["prompt_tokens"] for each in mine) == sum(turn["prompt_tokens"] for turn in turns)
        called = sorted(call["id"] for turn in turns for call in turn["action"]["tool_calls"])
        assert sorted(call[0] for each in mine for call in each["calls"] if call[0] != "ex") == called
        for each in mine:
            assert each["proctor"].get("score") == row["score"]
            assert each["proctor"].get("cause") == (row["cause"] and publishable(row["cause"]))
            protocol = next(t["observation"].get("tools") for t in made.turns if t["trial"] == trial) if turns else []
            assert bool(each["tools"]) == bool(protocol)


@each_run
def test_5_rows_to_train_on_are_valid_histories(name: str, runs: dict[str, Exports]) -> None:
    made = runs[name]
    read = rows(made.folder / "sft.jsonl")
    answers = defaultdict[int, list[str]](list)
    for row in read:
        assert invalid_history(messages(row)) is None
        assert any(row["trainable"])
        said = zip(row["messages"], row["trainable"], strict=True)
        answers[row["trial"]] += [message["content"] for message, mine in said if mine]
    given = defaultdict[int, list[str]](list)
    scored = {row["id"] for row in made.trials if row["score"] is not None}
    for turn in made.turns:
        if turn["trial"] in scored and turn["action"] is not None:
            given[turn["trial"]].append(turn["action"]["content"])
    assert set(answers) == scored
    assert {trial: sorted(each) for trial, each in answers.items()} == {
        trial: sorted(each) for trial, each in given.items()
    }


def test_log_probabilities_and_token_ids_are_kept_where_the_endpoint_gave_them(runs: dict[str, Exports]) -> None:
    for row in rows(runs["doors"].folder / "sft.jsonl"):
        if row["agent"] == "tokens":
            assert row["completion_token_ids"] == [[11, 12]] * sum(row["trainable"])
            assert row["logprobs"] == [[-0.5, -0.125]] * sum(row["trainable"])
        else:
            assert not {"completion_token_ids", "logprobs"} & row.keys()


def test_6_no_export_holds_a_key_or_another_agents_reasoning(runs: dict[str, Exports]) -> None:
    canaries = {turn["action"]["reasoning"]: turn["agent"] for turn in runs["doors"].turns}
    assert len(canaries) > 20
    assert all(thought.startswith(CANARY) for thought in canaries)
    for name in RUNS:
        for part in ("inspect", "atif", "every-eval-ever", "sft.jsonl"):
            path = runs[name].folder / part
            for text in texts(path) if path.is_dir() else [path.read_text(encoding="utf-8")]:
                assert not [secret for secret in (KEY, SECRET, "signature") if secret in text]
                if part == "sft.jsonl":
                    assert not [thought for thought in (*canaries, *THOUGHT.values()) if thought in without_ids(text)]
    for path in (runs["doors"].folder / "atif").rglob("trajectory.json"):
        text = path.read_text(encoding="utf-8")
        agent = json.loads(text)["agent"]["name"]
        assert not [thought for thought, whose in canaries.items() if whose != agent and thought in text]


@each_run
def test_7_every_eval_evers_schemas_and_checks_accept_every_record(name: str, runs: dict[str, Exports]) -> None:
    made = runs[name]
    read = run("eee", "read_records.py", made.folder / "every-eval-ever")
    assert [each["errors"] for each in read] == [[]] * len(read)
    told = [warning for each in read for warning in each["warnings"]]
    assert all("names no datastore directory" in warning for warning in told), "only who made a model is not known"
    reported = proctor("report", str(made.folder), "--format", "json", cwd=made.folder)
    pairs = {(pair["agent"], pair["task"]): pair for pair in json.loads(reported.stdout)["pairs"] if pair["scored"]}
    records = [each["values"][0] for each in read if each["path"].endswith(".json")]
    assert {each["version"] for each in read} == {record["schema_version"] for record in records} == {"0.3.0"}
    assert len(records) == len(pairs)
    for record in records:
        results = {each["metric_config"]["metric_name"]: each["score_details"] for each in record["evaluation_results"]}
        task = record["evaluation_results"][0]["evaluation_name"]
        pair = pairs[record["model_info"]["additional_details"]["agent"], task]
        assert {metric: each["score"] for metric, each in results.items()} == {
            "mean_score": pair["mean_score"],
            **pair["metrics"],
        }
        error = results[pair["primary"]]["uncertainty"].get("standard_error", {}).get("value")
        assert error == pair["standard_error"]
        assert record["detailed_evaluation_results"]["total_rows"] == pair["scored"]
    rows_read = [row for each in read if each["path"].endswith(".jsonl") for row in each["values"]]
    assert sorted(row["evaluation"]["score"] for row in rows_read) == sorted(
        row["score"] for row in made.trials if row["score"] is not None
    )


def without_ids(text: str) -> str:
    """A text without ids of calls: those of the scripted endpoint hold its thoughts."""
    return re.sub(rf"id-{CANARY}-[0-9a-f]+", "", text)


def test_the_page_on_exports_is_true(runs: dict[str, Exports], tmp_path: Path) -> None:
    """Its commands are run one after the other, word by word, as a reader would; its programs too."""
    page = (ROOT / "docs" / "how-to" / "exports.md").read_text(encoding="utf-8")
    programs = {name: str(Path(interpreter(name)).parent) for name in ("inspect", "harbor")}
    (tmp_path / "runs").symlink_to(runs["demo"].folder.parent)
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert {kind for kind, _ in blocks} == {"console", "python"}
    for kind, text in blocks:
        if kind == "console":
            for line in text.splitlines():
                if line.startswith("$ "):
                    command(line[2:], programs["inspect"], tmp_path)
        else:
            (tmp_path / "program.py").write_text(text)
            python = interpreter("harbor" if "harbor" in text else "inspect")
            command(f"{python} program.py", programs["inspect"], tmp_path)


def command(line: str, programs: str, folder: Path) -> None:
    if line.startswith("proctor "):
        done = proctor(*line.split("#", maxsplit=1)[0].split()[1:], cwd=folder)
    else:
        done = subprocess.run(
            f'PATH="{programs}:$PATH"; {line}', shell=True, cwd=folder, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, (line, done.stdout, done.stderr)
