"""`proctor rescore`: the journalled answers of a run are scored again; no agent is asked."""

import json
import signal
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from tests.database_servers import postgresql
from tests.e2e.proctor import begin, completed, exits, proctor, rows
from tests.e2e.scripted import GOOD, ScriptedEndpoint, listening, reply
from tests.pace import until

KEY = {"OPENAI_API_KEY": "token-of-the-tests"}
DB = "{name: db, environment: db, parameters: {engine: sqlite}}"
STRICT = ("--set", "tasks.db.parameters.profile=strict")


def says(text: str) -> bytes:
    """A completion with this text."""
    completion = json.loads(GOOD)
    completion["choices"][0]["message"]["content"] = text
    return reply(200, json.dumps(completion).encode())


def play(folder: Path, endpoint: ScriptedEndpoint, tasks: str = DB, *options: str, **extra: str) -> None:
    """The run `r`: a model plays some samples of each task."""
    (folder / "plan.yaml").write_text(
        f"name: p\nagents: [{{name: m, endpoint: '{endpoint.url}', concurrency: 2}}]\ntasks: [{tasks}]\n"
        "limits: {attempts: 1}\n"
    )
    played = proctor("run", "plan.yaml", "--name", "r", "-q", *options, cwd=folder, **KEY, **extra)
    assert played.returncode in (0, 1), played.stderr


def test_a_run_scored_again_as_before_is_the_same_and_asks_no_agent(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    worlds = (
        f"{DB}, {{name: kg, environment: kg, parameters: {{protocol: tools}}}}, {{name: ltp, environment: ltp}}, "
        "{name: cards, environment: card_game}, {name: sim, environment: simulbench, parameters: {mode: live}}"
    )
    play(tmp_path, endpoint, worlds, "--limit", "2", "--tag", "t", "--set", "limits.trial.turns=3")
    asked = len(endpoint.requests)
    again = exits(0, "rescore", "r", "--name", "again", cwd=tmp_path, **KEY)
    assert "m x db: 0 scores changed, 0 are new, 0 unscored" in again.stderr
    assert "10 of 10 trials are scored again" in again.stderr
    assert "run: runs/again, re-scored from r" in again.stderr
    assert len(endpoint.requests) == asked
    assert rows("again", tmp_path) == rows("r", tmp_path)
    listed = json.loads(proctor("ls", "--json", "--tag", "t", cwd=tmp_path).stdout)
    assert [(run["run"], run["state"], run["parent"]) for run in listed] == [
        ("r", "finished", None),
        ("again", "finished", "r"),
    ]
    assert "re-scored from r" in proctor("ls", cwd=tmp_path).stdout
    assert "re-scored from r" in proctor("status", "again", cwd=tmp_path).stdout
    shown = proctor("show", "again", "0", cwd=tmp_path)
    assert "Final Answer" in shown.stdout


def test_parts_of_a_plan_scored_again_are_told_as_what_they_are_and_read_as_one_run(tmp_path: Path) -> None:
    agents = "agents: [{name: naive, builtin: naive}, {name: random, builtin: random}]"
    (tmp_path / "plan.yaml").write_text(f"{agents}\ntasks: [{DB}]\n")
    for part in ("1", "2"):
        asked = ("--name", "r", "--part", f"{part}/2", "--limit", "6", "--agent", "naive", "-q")
        exits(0, "run", "plan.yaml", *asked, cwd=tmp_path)
        exits(0, "rescore", f"r.{part}of2", "--name", f"again{part}", cwd=tmp_path)

    def told(*runs: str) -> list[object]:
        found = json.loads(exits(0, "report", *runs, "--json", cwd=tmp_path).stdout)
        (pair,) = found["pairs"]
        return [found["left_out"], *(pair[name] for name in ("planned", "scored", "metrics", "interval", "notes"))]

    assert told("again1") == told("r.1of2"), "the others are missing"
    assert told("again1", "again2") == told("r")


def test_other_settings_change_scores(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    endpoint.always = says('Action: Answer\nFinal Answer: "T4"')
    play(tmp_path, endpoint)
    before = {str(row["sample"]): row["score"] for row in rows("r", tmp_path)}
    again = exits(0, "rescore", "r", "--name", "strict", *STRICT, cwd=tmp_path)
    after = {str(row["sample"]): row["score"] for row in rows("strict", tmp_path)}
    changed = sorted(sample for sample, score in after.items() if score != before[sample])
    assert changed
    assert all((before[sample], after[sample]) == (0.0, 1.0) for sample in changed)
    assert f"m x db: {len(changed)} scores changed" in again.stderr
    assert {str(row["sample"]): row["score"] for row in rows("r", tmp_path)} == before
    report = json.loads(proctor("report", "strict", "--json", cwd=tmp_path).stdout)
    assert report["pairs"][0]["value"] > 0


def test_a_divergence_leaves_the_trial_unscored_with_its_cause(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    data = tmp_path / "questions.jsonl"
    data.write_text((files("environments.database") / "samples" / "select.jsonl").read_text())
    play(tmp_path, endpoint, DB.replace("environment: db", "environment: db, data: questions.jsonl"), "--limit", "2")
    first, *others = data.read_text().splitlines()
    asked = json.loads(first)
    data.write_text("\n".join([json.dumps(asked | {"description": "Something else?"}), *others]))
    exits(1, "rescore", "r", "--name", "n", cwd=tmp_path)
    changed, same = rows("n", tmp_path)
    assert changed["score"] is None
    assert changed["cause"] == "diverged: turn 1 shows something else than it did to the agent"
    assert same["score"] is not None
    states = {run["run"]: run["state"] for run in json.loads(proctor("ls", "--json", cwd=tmp_path).stdout)}
    assert states["n"] == "incomplete"


def test_a_run_of_which_no_trial_can_be_scored_again_is_refused_with_what_to_do(
    tmp_path: Path, endpoint: ScriptedEndpoint
) -> None:
    play(tmp_path, endpoint, DB, "--limit", "2")
    again = exits(2, "rescore", "r", "--name", "n", "--set", "tasks.db.parameters.protocol=tools", cwd=tmp_path)
    assert "task db: none of its 2 trials can be scored again" in again.stderr
    assert "score the run with the Proctor that played it" in again.stderr
    assert not (tmp_path / "runs" / "n").exists()


def test_a_trial_without_answers_is_unscored_too(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    endpoint.bad = [reply(400, b'{"error": {"message": "no"}}')]
    play(tmp_path, endpoint, DB, "--limit", "2", "--set", "agents.m.concurrency=1")
    assert proctor("rescore", "r", "--name", "n", cwd=tmp_path).returncode == 1
    first, second = rows("n", tmp_path)
    assert first["cause"] == "the session asks for answer 1, and the run has 0"
    assert second["score"] is not None


@pytest.fixture
def judge() -> Iterator[ScriptedEndpoint]:
    """A second endpoint, for judges."""
    scripted = ScriptedEndpoint()
    scripted.always = says("Fine. Rating: [[7]]")
    with listening(scripted):
        yield scripted


def test_kept_answers_of_judges_are_used_and_new_ones_are_bought_only_if_allowed(
    tmp_path: Path, endpoint: ScriptedEndpoint, judge: ScriptedEndpoint
) -> None:
    task = "{name: sim, environment: simulbench}"
    judged = ("--set", f"tasks.sim.parameters.judge={{model: j, base_url: '{judge.url}'}}")
    play(tmp_path, endpoint, task, "--limit", "3", XDG_CACHE_HOME=str(tmp_path / "c1"))
    there = {"XDG_CACHE_HOME": str(tmp_path / "c2"), **KEY}
    refused = exits(2, "rescore", "r", "--name", "n", *judged, cwd=tmp_path, **there)
    assert "3 trials need new answers of judges, hosts or users (j: at least 3 calls)" in refused.stderr
    assert "--pay-judges" in refused.stderr
    assert (judge.requests, (tmp_path / "runs" / "n").exists()) == ([], False)
    exits(0, "rescore", "r", "--name", "n", "--pay-judges", *judged, cwd=tmp_path, **there)
    assert len(judge.requests) == 3
    assert [row["score"] for row in rows("n", tmp_path)] == [pytest.approx(6 / 9)] * 3
    elsewhere = {"XDG_CACHE_HOME": str(tmp_path / "c3"), **KEY}
    exits(0, "rescore", "n", "--name", "again", cwd=tmp_path, **elsewhere)
    assert len(judge.requests) == 3
    assert rows("again", tmp_path) == rows("n", tmp_path)
    helpers = [json.loads(proctor("report", run, "--json", cwd=tmp_path).stdout)["pairs"] for run in ("n", "again")]
    assert [[helper["calls"] for helper in pairs[0]["helpers"]] for pairs in helpers] == [[3], []]


def test_ctrl_c_leaves_nothing_of_a_re_score(
    tmp_path: Path, endpoint: ScriptedEndpoint, judge: ScriptedEndpoint
) -> None:
    play(tmp_path, endpoint, "{name: sim, environment: simulbench}", "--limit", "1")
    judge.always = True  # never answers
    judged = ("--set", f"tasks.sim.parameters.judge={{model: j, base_url: '{judge.url}'}}")
    there = {"XDG_CACHE_HOME": str(tmp_path / "cache"), **KEY}
    client = begin("rescore", "r", "--name", "n", "--pay-judges", *judged, cwd=tmp_path, **there)
    until(lambda: bool(judge.requests))
    assert client.stderr is not None
    assert any("0 of 1 trials are scored again" in line for line in client.stderr)
    resumed = exits(2, "resume", "r", "-q", cwd=tmp_path, **KEY)
    assert "another client" in resumed.stderr
    client.send_signal(signal.SIGINT)
    errors = completed(client, 130, within_s=60)
    assert "nothing was written" in errors
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["r"]


def test_what_can_not_be_scored_again_is_refused(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    play(tmp_path, endpoint, DB, "--limit", "1")
    assert proctor("rescore", "r", "--name", "n", cwd=tmp_path).returncode == 0
    for arguments, told in (
        (("rescore", "r", "--name", "n"), "exists already; choose another --name"),
        (("rescore", "r", "--set", "seed=1"), "--set: changes seed; a re-score can change parameters and data"),
        (("rescore", "r", "--set", "tasks.db.parameters.profil=strict"), "profil"),
        (("rescore", "nope"), "no run 'nope'"),
        (("resume", "n"), "the run holds answers of run 'r', scored again"),
    ):
        refused = exits(2, *arguments, cwd=tmp_path, **KEY)
        assert told in refused.stderr
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["n", "r"]


@pytest.mark.postgresql
def test_a_run_in_postgresql_is_scored_again_there(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    with postgresql() as database:
        there = {"PROCTOR_STORE": database.url}
        play(tmp_path, endpoint, DB, "--limit", "2", **there)
        exits(0, "rescore", "r", "--name", "n", *STRICT, cwd=tmp_path, **there)
        refused = proctor("rescore", "r", "--name", "n", cwd=tmp_path, **there)
        assert "exists already" in refused.stderr
        names = [run["run"] for run in json.loads(proctor("ls", "--json", cwd=tmp_path, **there).stdout)]
    assert names == ["r", "n"]
