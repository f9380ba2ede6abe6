"""The parts of a plan on several machines: together they are the run in one piece, to the last digit."""

import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gates import gate
from tests.e2e.proctor import INTERRUPTED, Server, begin, completed, exits, lasting, proctor, server
from tests.faults.parts.farm import put_away
from tests.pace import until
from tests.scripted_model import ScriptedModel

KEY = {"OPENAI_API_KEY": "token-of-the-tests"}
TASKS = """\
  - {name: db-own, environment: db, parameters: {engine: sqlite}}
  - {name: ltp, environment: ltp}
"""
PLAN = """\
name: team
epochs: 2
endpoints: [{{name: e, base_url: "{agents}", concurrency: 6}}]
agents:
  - {{name: reference, builtin: reference, endpoint: e}}
  - {{name: naive, builtin: naive, endpoint: e}}
tasks:
{tasks}"""
PARTS = 4
CALLS = "proctor_agent_requests_total"


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("agents")
    (folder / "agents.yaml").write_text(
        f"tasks:\n{TASKS}agents:\n"
        "  - {name: reference, kind: reference, latency_s: 0.02}\n"
        "  - {name: naive, kind: naive, latency_s: 0.02}\n"
    )
    with server("agents", "--config", "agents.yaml", cwd=folder) as running:
        yield running


@pytest.fixture
def plan(tmp_path: Path, agents: Server) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN.format(agents=agents.url, tasks=TASKS))
    return path


def part(number: int, folder: Path, store: dict[str, str]) -> "subprocess.Popen[str]":
    arguments = ("run", "plan.yaml", "--name", "eval", "--part", f"{number}/{PARTS}", "-q")
    return begin(*arguments, cwd=folder, **store)


def said(*arguments: str, cwd: Path, **extra: str) -> str:
    return exits(0, *arguments, cwd=cwd, **extra).stdout


def _without_seconds(table: re.Match[str]) -> str:
    """A table of HTML without its last column, where that has seconds."""
    if ">s per trial</th></tr>" not in table[0]:
        return table[0]
    return re.sub(r"<td>[\d.,]+</td>\n</tr>", "</tr>", table[0])


def results(folder: Path, *runs: str, **store: str) -> dict[str, Any]:
    """All that is told of a run, without what differs between equal runs."""
    found: dict[str, Any] = {"report": lasting(json.loads(said("report", *runs, "--json", cwd=folder, **store)))}
    found["compare"] = lasting(json.loads(said("compare", ",".join(runs), "--json", cwd=folder, **store)))
    for what in ("trials", "turns", "replies"):
        said("export", *runs, "--what", what, "--to", f"{what}.jsonl", cwd=folder, **store)
        found[what] = [lasting(json.loads(line)) for line in (folder / f"{what}.jsonl").read_text().splitlines()]
    said("export", *runs, "--as", "sft", "--to", "sft.jsonl", cwd=folder, **store)
    found["sft"] = [lasting(json.loads(line)) for line in (folder / "sft.jsonl").read_text().splitlines()]
    said("report", *runs, "--html", "r.html", "--samples", "--trials", "3,40", cwd=folder, **store)
    said_of_resumes = r"<div><dt>Resumed</dt><dd>.*</dd></div>\n"
    html = re.sub(said_of_resumes, "", (folder / "r.html").read_text())
    html = re.sub(rf'<p class="note">[^<]* {INTERRUPTED}[^<]*</p>', "", html)
    html = re.sub(r"<table.*?</table>", _without_seconds, html, flags=re.DOTALL)
    html = re.sub(r"<ul><li>attempt 1: .*?</ul>|after \d+ attempts?", "", html)
    found["html"] = re.sub(r"\d+(\.\d+)? s\b|\d{4}-\d\d-\d\d[T ][\d:+.]+", "", html)
    return found


def test_four_parts_of_which_two_are_killed_are_the_run_in_one_piece(
    tmp_path: Path, plan: Path, agents: Server, store: dict[str, str]
) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    with gate(plan, agents.url) as way:
        said("run", "plan.yaml", "--name", "eval", "-q", cwd=tmp_path, **KEY)
        (folder / "plan.yaml").write_text(plan.read_text())
        begun, before = way.calls, agents.metric(CALLS)
        way.shut(spared=30)
        playing = [part(number, folder, store) for number in range(1, PARTS + 1)]
        until(lambda: way.calls >= begun + 30 + PARTS or any(each.poll() is not None for each in playing))
        for killed in (playing[1], playing[3]):
            killed.send_signal(signal.SIGKILL)
            killed.communicate()
        way.open()
        for number in (2, 4):
            said("resume", f"eval.{number}of{PARTS}", "-q", cwd=folder, **store)
        for each in (playing[0], playing[2]):
            completed(each, within_s=100)
        whole, together = results(tmp_path, "eval", **KEY), results(folder, "eval", **store)
        assert list(whole) == list(together)
        for what, value in whole.items():
            assert together[what] == value, what
        names = [f"eval.{number}of{PARTS}" for number in range(PARTS, 0, -1)]
        assert results(folder, *names, **store) == together
        answered = [row for row in together["turns"] if row["action"]]
        paid = agents.metric(CALLS) - before
        assert len(answered) <= paid <= len(answered) + 2 * 6, "what the killed ones had in flight is asked for again"
        _refused(folder, store)


def _refused(folder: Path, store: dict[str, str]) -> None:
    """What can't be read as one run, and what a missing part is."""
    other = said("run", "plan.yaml", "--name", "other", "--limit", "3", "--part", "2/4", "-q", cwd=folder, **store)
    assert other
    for runs, why in (
        (("eval.1of4", "eval.1of4"), "part 1 of 4 is given twice"),
        (("eval.1of4", "other.2of4"), "are no parts of one plan: they differ in tasks, limit, plan, samples"),
    ):
        for command in ("report", "export"):
            done = proctor(command, *runs, cwd=folder, **store)
            assert (done.returncode, why in done.stderr) == (2, True), done.stderr
    done = proctor("resume", "eval", cwd=folder, **store)
    assert (done.returncode, "eval.1of4" in done.stderr) == (2, True), done.stderr
    some = json.loads(said("report", "eval.1of4", "eval.3of4", "--json", cwd=folder, **store))
    whole = json.loads(said("report", "eval", "--json", cwd=folder, **store))
    assert [pair["planned"] for pair in some["pairs"]] == [pair["planned"] for pair in whole["pairs"]]
    assert all(0 < pair["scored"] < pair["planned"] for pair in some["pairs"])
    assert some["state"] == "incomplete"


def test_parts_keep_to_the_endpoints_concurrency_and_say_how(
    tmp_path: Path, plan: Path, agents: Server, store: dict[str, str]
) -> None:
    """Limits that are the run's own: the pools that all runs of this machine share are none of theirs."""
    plan.write_text(plan.read_text().replace("concurrency: 6", "concurrency: 6, shared: false"))
    most = 6 if "PROCTOR_STORE" in store else PARTS
    with gate(plan, agents.url) as way:
        way.shut(spared=0)
        arguments = ("run", "plan.yaml", "--name", "eval", "--set", "epochs=20")
        playing = [
            begin(*arguments, "--part", f"{number}/{PARTS}", cwd=tmp_path, **store) for number in range(1, PARTS + 1)
        ]
        until(lambda: way.calls >= most or any(each.poll() is not None for each in playing))
        time.sleep(3.0)
        assert way.calls == most
        told = []
        for each in playing:
            put_away(each)
            told.append(each.communicate()[1])
    line = "hold over all parts" if "PROCTOR_STORE" in store else "it takes 1/4 of concurrency (at least 1), rpm, tpm"
    assert all(line in text for text in told), told


def test_what_parts_spend_counts_together_in_one_server_and_else_each_has_its_share(
    tmp_path: Path, store: dict[str, str]
) -> None:
    with ScriptedModel(lambda _: "Thinking.\nAction: Answer\nFinal Answer: []") as model:
        threading.Thread(target=model.serve_forever, daemon=True).start()
        endpoint = f'{{name: e, base_url: "{model.url}", concurrency: 2}}'
        (tmp_path / "plan.yaml").write_text(
            f"name: spend\nepochs: 3\nendpoints: [{endpoint}]\nlimits: {{run: {{tokens: 1500}}}}\n"
            "agents: [{name: m, endpoint: e, sampling: {max_tokens: 10}}]\n"
            "tasks: [{name: db-own, environment: db, parameters: {engine: sqlite}}]\n"
        )
        spent = []
        for number in (1, 2):
            before = len(model.answered)
            done = proctor(
                *("run", "plan.yaml", "--name", "eval", "--part", f"{number}/2", "-q"), cwd=tmp_path, **store
            )
            spent.append(110 * (len(model.answered) - before))
            assert (done.returncode, "limits.run.tokens" in done.stderr) == (1, True), done.stderr
        model.shutdown()
    if "PROCTOR_STORE" in store:
        assert 750 < spent[0] <= sum(spent) <= 1500
    else:
        assert all(0 < each <= 750 for each in spent)


def test_what_is_gone_says_what_to_do(tmp_path: Path, plan: Path) -> None:
    for arguments in (("join", "r"), ("run", "plan.yaml", "--shards=2"), ("copy", "r")):
        done = exits(2, *arguments, cwd=tmp_path)
        assert ("copy the run's folder" if "copy" in arguments else "--part K/N") in done.stderr
    unnamed = proctor("run", "plan.yaml", "--part", "1/2", cwd=tmp_path)
    assert (unnamed.returncode, "--part: needs the name of the run" in unnamed.stderr) == (2, True)
    wrong = proctor("run", "plan.yaml", "--name", "r", "--part", "3/2", cwd=tmp_path)
    assert (wrong.returncode, "--part 3/2: write K/N" in wrong.stderr) == (2, True)
