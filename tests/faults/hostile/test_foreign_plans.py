"""Nothing that a store holds is an instruction: plans of others are listed and refused, those of this user go on."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.proctor import begin, exits, proctor, rows
from tests.e2e.scripted import ScriptedEndpoint, listening
from tests.pace import until

PLAN = """\
endpoints: [{{name: own, base_url: "{url}"}}]
agents: [{{name: m, endpoint: own}}]
tasks: [{{name: db, environment: db, parameters: {{engine: sqlite}}}}]
"""
Stored = dict[str, Any]


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with listening(scripted := ScriptedEndpoint()):
        yield scripted


@pytest.fixture
def hostile() -> Iterator[ScriptedEndpoint]:
    with listening(scripted := ScriptedEndpoint()):
        yield scripted


@pytest.fixture
def killed(tmp_path: Path, endpoint: ScriptedEndpoint) -> Path:
    """The folder of a run whose client was killed with a trial under way; from now on its endpoint answers."""
    endpoint.always = True
    (tmp_path / "plan.yaml").write_text(PLAN.format(url=endpoint.url))
    client = begin("run", "plan.yaml", "--name", "r", "--limit", "2", "--set", "tags=[mine]", cwd=tmp_path)
    until(lambda: len(endpoint.requests) > 0)
    client.kill()
    client.communicate()
    endpoint.hang_up()
    return tmp_path / "runs" / "r"


def change(run: Path, edit: Callable[[Stored], None]) -> None:
    """Edit the manifest in a run's store."""
    with sqlite3.connect(run / "run.sqlite") as store:
        (text,) = store.execute("SELECT manifest FROM proctor_run").fetchone()
        manifest = json.loads(text)
        edit(manifest)
        store.execute("UPDATE proctor_run SET manifest = ?", (json.dumps(manifest),))
    store.close()


def in_plan(field: str, value: Callable[[Path, str], object]) -> Callable[[Stored, Path, str], None]:
    """Sets a field of the stored plan to what `value` makes of the test's folder and the hostile endpoint's URL."""

    def edit(manifest: Stored, folder: Path, url: str) -> None:
        *path, last = field.split(".")
        inner = manifest["plan"]
        for key in path:
            inner = inner[int(key) if key.isdigit() else key]
        inner[last] = value(folder, url)

    return edit


def mark(folder: Path, _url: str) -> list[str]:
    """A command that leaves a file, and prints a key."""
    return ["sh", "-c", "touch $0/ran; echo stolen", str(folder), "{url}"]


def marking_file(folder: Path, _url: str) -> str:
    """A Python file that leaves a mark when it is loaded."""
    (folder / "evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\nanswer = None\n")
    return f"{folder / 'evil.py'}:answer"


def other_plan(manifest: Stored, folder: Path, url: str) -> None:
    """The path of the plan's file leads to another one."""
    (folder / "other.yaml").write_text(PLAN.format(url=url))
    manifest["plan_path"] = str(folder / "other.yaml")


def one_more_option(manifest: Stored, folder: Path, _url: str) -> None:
    manifest["overrides"] = [*manifest["overrides"], f"on_end={json.dumps(mark(folder, ''))}"]


EDITS = {
    "command agent": in_plan("agents", lambda *at: [{"name": "m", "kind": "command", "command": mark(*at)}]),
    "on_end": in_plan("on_end", mark),
    "url": in_plan("endpoints.0.base_url", lambda _folder, url: url),
    "variable": in_plan("endpoints.0.api_key_env", lambda _folder, _url: "ANOTHER_KEY"),
    "key command": in_plan("endpoints.0.api_key_command", mark),
    "key file": in_plan("endpoints.0.api_key_file", lambda folder, _url: str(folder / "secret")),
    "header": in_plan("endpoints.0.headers", lambda _folder, _url: {"x": "${ANOTHER_KEY}"}),
    "proxy": in_plan("endpoints.0.proxy", lambda _folder, url: url.removesuffix("/v1")),
    "controller": in_plan("controller", lambda _folder, url: url.removesuffix("/v1")),
    "data": in_plan("tasks.0.data", lambda folder, _url: str(folder / "secret")),
    "world": in_plan("tasks.0.environment", lambda _folder, _url: "ltp"),
    "world's file": in_plan("tasks.0.environment", marking_file),
    "agent's file": in_plan(
        "agents", lambda *at: [{"name": "m", "builtin": "function", "function": marking_file(*at)}]
    ),
    "judge": in_plan("tasks.0.parameters.host", lambda _folder, url: {"model": "j", "base_url": url}),
    "plan's file": other_plan,
    "option": one_more_option,
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_stored_plan_that_was_changed_does_nothing(
    edit: Callable[[Stored, Path, str], None], tmp_path: Path, killed: Path, hostile: ScriptedEndpoint
) -> None:
    (tmp_path / "secret").write_text("sk-of-this-user")
    change(killed, lambda manifest: edit(manifest, tmp_path, hostile.url))
    for command in (["resume", "r"], ["resume", "r", "--retry", "sample=*"], ["rescore", "r", "--pay-judges"]):
        refused = exits(2, *command, cwd=tmp_path, ANOTHER_KEY="sk-another-key-of-mine")
        assert "was not started here with the plan that its store holds" in refused.stderr
        assert "--plan FILE" in refused.stderr
        assert "Traceback" not in refused.stderr
    for command in (["report", "r"], ["status", "r"], ["ls"], ["export", "r"]):
        shown = proctor(*command, cwd=tmp_path, ANOTHER_KEY="sk-another-key-of-mine")
        assert shown.returncode in (0, 2), shown.stderr
        assert "Traceback" not in shown.stderr
    assert hostile.requests == []
    assert not (tmp_path / "ran").exists()
    exits(0, "resume", "r", "--plan", "plan.yaml", cwd=tmp_path)
    assert (hostile.requests, (tmp_path / "ran").exists()) == ([], False)


def test_what_the_stored_plan_would_do_is_listed_without_control_characters(tmp_path: Path, killed: Path) -> None:
    words, function = ["sh", "-c", "curl \x1b[2Jevil"], "/tmp/evil.py:answer"
    change(killed, lambda manifest: manifest["plan"]["agents"][0].update(command=words, function=function))
    refused = proctor("resume", "r", cwd=tmp_path)
    assert f'agents.m.function: "{function}"' in refused.stderr
    assert r'agents.m.command: ["sh", "-c", "curl \u001b[2Jevil"]' in refused.stderr
    assert "\x1b" not in refused.stderr


def test_a_run_of_this_user_goes_on_silently_wherever_it_lies(tmp_path: Path, killed: Path) -> None:
    (tmp_path / "archive").mkdir()
    shutil.move(killed, tmp_path / "archive" / "r")
    (tmp_path / "plan.yaml").unlink()
    resumed = proctor("resume", "archive/r", "-q", cwd=tmp_path)
    assert (resumed.returncode, "plan" in resumed.stderr) == (0, False), resumed.stderr
    exits(0, "resume", "archive/r", "-q", cwd=tmp_path)


def test_a_changed_file_is_said_and_one_in_the_runs_folder_is_refused(
    tmp_path: Path, killed: Path, endpoint: ScriptedEndpoint
) -> None:
    with (tmp_path / "plan.yaml").open("a") as plan:
        plan.write("limits: {patience_s: 50}\n")
    resumed = exits(0, "resume", "r", "-q", cwd=tmp_path)
    assert "plan.yaml has changed since the run was started" in resumed.stderr

    exits(
        0,
        "run",
        "-m",
        "m",
        "--base-url",
        endpoint.url,
        "-e",
        "db",
        "--set",
        "tasks.db.parameters.engine=sqlite",
        "--limit",
        "1",
        "--name",
        "made",
        cwd=tmp_path,
    )
    assert proctor("resume", "made", cwd=tmp_path).returncode == 0
    with (tmp_path / "runs" / "made" / "plan.yaml").open("a") as plan:
        plan.write(f"on_end: {json.dumps(mark(tmp_path, ''))}\n")
    refused = exits(2, "resume", "made", cwd=tmp_path)
    assert "has changed since the run was started, and others may write there" in refused.stderr
    assert not (tmp_path / "ran").exists()


def test_files_that_a_stored_plan_names_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(
        "agents: [{name: a, builtin: reference}, {name: b, builtin: naive}]\n"
        "tasks: [{name: sim, environment: simulbench}]\n"
    )
    exits(0, "run", "plan.yaml", "--name", "r", "--limit", "2", cwd=tmp_path)
    os.mkfifo(tmp_path / "waits for ever")
    run = tmp_path / "runs" / "r"
    change(run, lambda manifest: manifest["plan"]["tasks"][0].update(data=str(tmp_path / "waits for ever")))
    for command in (["compare", "r:a", "r:b"], ["report", "r", "--html", "r.html"], ["show", "r", "0"]):
        shown = proctor(*command, cwd=tmp_path)
        assert (shown.returncode, shown.stderr.count("Traceback")) == (0, 0), shown.stderr


@pytest.mark.parametrize("where", ["logs", "logs/worker-1.log"])
def test_a_link_in_the_runs_folder_is_not_followed(where: str, tmp_path: Path, killed: Path) -> None:
    shutil.rmtree(killed / "logs", ignore_errors=True)
    (tmp_path / "of this user").mkdir()
    (killed / where).parent.mkdir(exist_ok=True)
    (killed / where).symlink_to(tmp_path / "of this user")
    refused = proctor("resume", "r", cwd=tmp_path)
    assert (refused.returncode, list((tmp_path / "of this user").iterdir())) == (2, [])
    assert f"runs/r/{where} is a link" in refused.stderr
    (killed / where).unlink()
    assert proctor("resume", "r", "-q", cwd=tmp_path).returncode == 0


def test_another_user_names_the_plan_or_trusts_the_store(
    tmp_path: Path, killed: Path, endpoint: ScriptedEndpoint
) -> None:
    elsewhere = {"XDG_STATE_HOME": str(tmp_path / "state")}
    asked = len(endpoint.requests)
    refused = proctor("resume", "r", cwd=tmp_path, **elsewhere)
    assert (refused.returncode, len(endpoint.requests)) == (2, asked)
    assert f'endpoints.own.base_url: "{endpoint.url}"' in refused.stderr

    shutil.copytree(killed, tmp_path / "runs" / "s")
    with sqlite3.connect(tmp_path / "runs" / "s" / "run.sqlite") as store:
        store.execute("UPDATE proctor_run SET id = 's'")
        for table in ("proctor_trial", "proctor_attempt", "proctor_turn"):
            store.execute(f"UPDATE {table} SET run = 's'")
    store.close()
    named = exits(0, "resume", "r", "--plan", "plan.yaml", "-q", cwd=tmp_path, **elsewhere)
    assert "the store's options are not taken up" in named.stderr
    assert '--set "tags=[mine]"' in named.stderr
    once_more = proctor("resume", "r", "-q", cwd=tmp_path, **elsewhere)
    assert (once_more.returncode, once_more.stderr.count("store")) == (0, 0), once_more.stderr
    exits(0, "resume", "s", "--trust-stored-plan", "-q", cwd=tmp_path, **elsewhere)
    assert [row["score"] for row in rows("r", tmp_path)] == [row["score"] for row in rows("s", tmp_path)]


def test_a_list_that_cannot_be_written_is_said_and_costs_the_name_of_the_plan(tmp_path: Path, killed: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    elsewhere = {"XDG_STATE_HOME": str(tmp_path / "state")}
    named = exits(0, "resume", "r", "--plan", "plan.yaml", cwd=tmp_path, **elsewhere)
    assert "a resume of this run will ask for its plan's file" in named.stderr
    assert proctor("resume", "r", cwd=tmp_path, **elsewhere).returncode == 2
    assert os.path.isfile(tmp_path / "state")
