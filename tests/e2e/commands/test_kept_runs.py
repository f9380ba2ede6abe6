"""Runs that are kept: listed, copied between stores, and removed."""

import json
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest

from tests.e2e.commands.terminal import on_a_terminal
from tests.e2e.proctor import begin, exits, proctor
from tests.pace import slowly, until

PLAN = """\
name: kept
tags: [nightly]
agents: [{name: naive, builtin: naive}]
tasks: [{name: db-own, environment: db, parameters: {engine: sqlite}}]
"""
ANY = ("--owner", "any")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs `a` of Ann, with a tag of its own, `b` of Bob, and `c`."""
    folder = tmp_path_factory.mktemp("played")
    (folder / "plan.yaml").write_text(PLAN)
    for name, owner, *options in (("a", "ann", "--tag", "small"), ("b", "bob"), ("c", "")):
        command = ("run", "plan.yaml", "--name", name, "--limit", "2", "-q", *options)
        exits(0, *command, cwd=folder, PROCTOR_USER=owner)
    return folder


def take(played: Path, folder: Path, *runs: str) -> None:
    """Copy some of the runs that were played."""
    for name in runs:
        shutil.copytree(played / "runs" / name, folder / "runs" / name)


def names(folder: Path, *options: str, **extra: str) -> list[str]:
    listed = exits(0, "ls", "--json", *options, cwd=folder, **extra)
    return [row["run"] for row in json.loads(listed.stdout)]


def date_back(run: Path, created_at: str) -> None:
    """Make a run older than it is."""
    with sqlite3.connect(run / "run.sqlite") as store:
        store.execute("UPDATE proctor_run SET created_at = ?", (created_at,))
    store.close()


def test_runs_are_found_by_tag_and_owner(tmp_path: Path, played: Path) -> None:
    take(played, tmp_path, "a", "b")
    date_back(tmp_path / "runs" / "a", "2026-01-31T23:30:00+00:00")
    assert names(tmp_path, *ANY) == ["a", "b"]
    assert names(tmp_path, *ANY, "--tag", "nightly") == ["a", "b"]
    assert names(tmp_path, *ANY, "--tag", "nightly", "--tag", "small") == ["a"]
    assert names(tmp_path, "--owner", "bob") == names(tmp_path, PROCTOR_USER="bob") == ["b"]
    line = proctor("ls", "--owner", "ann", cwd=tmp_path).stdout
    assert line == "a: finished, 2/2 trials scored, begun 2026-01-31 23:30 by ann, tags nightly small\n"
    exits(0, "resume", "a", "-q", cwd=tmp_path)
    assert names(tmp_path, "--tag", "small", "--owner", "ann") == ["a"]


def test_whose_runs_are_left_out_is_said(tmp_path: Path, played: Path) -> None:
    take(played, tmp_path, "a", "b", "c")
    mine = proctor("ls", cwd=tmp_path, PROCTOR_USER="ann")
    assert [line.split(":")[0] for line in mine.stdout.splitlines()] == ["a", "c"], "nobody is known to have begun c"
    assert mine.stderr == "not ann's: bob (1); --owner any lists them too\n"
    assert "not eve's: ann (1), bob (1), ? (1)" in proctor("ls", "--owner", "eve", cwd=tmp_path).stderr
    nobody = proctor("ls", cwd=tmp_path, PROCTOR_USER="")
    assert len(nobody.stdout.splitlines()) == 3
    assert "by ?" in nobody.stdout.splitlines()[2]
    assert nobody.stderr.startswith("which runs are yours is not known, so all count; set PROCTOR_USER")


def test_rm_by_age_takes_this_users_runs_and_asks_where_an_owner_is_not_known(tmp_path: Path, played: Path) -> None:
    take(played, tmp_path, "a", "b", "c")
    for name in ("a", "b", "c"):
        date_back(tmp_path / "runs" / name, "2026-01-31T00:00:00+00:00")
    old = ("rm", "--older-than", "30d")
    pruned = proctor(*old, "--yes", cwd=tmp_path, PROCTOR_USER="ann")
    assert (pruned.returncode, pruned.stdout) == (0, "removed a\n")
    assert "no run is that old" in proctor(*old, "--yes", cwd=tmp_path, PROCTOR_USER="ann").stderr
    for options, user in (((), ""), (ANY, "ann")):
        refused = exits(2, *old, "--yes", *options, cwd=tmp_path, PROCTOR_USER=user)
        assert "whose all these are is not known: name them to `proctor rm`" in " ".join(refused.stderr.split())
    assert names(tmp_path, *ANY) == ["b", "c"]
    assert proctor(*old, "--yes", "--owner", "bob", cwd=tmp_path).stdout == "removed b\n"
    with on_a_terminal(*old, "--yes", *ANY, cwd=tmp_path) as (process, terminal):
        terminal.until("Remove this run for good? [y/N]")
        terminal.type(b"y\n")
        assert process.wait(slowly(30)) == 0
    assert names(tmp_path, *ANY) == []


def test_stop_leaves_the_run_of_another_person_alone(tmp_path: Path, played: Path) -> None:
    take(played, tmp_path, "a", "b", "c")
    for run, owner in (("b", "bob"), ("c", "any")):
        refused = exits(2, "stop", run, cwd=tmp_path, PROCTOR_USER="ann")
        assert f"and you are ann; stop it with --owner {owner}" in " ".join(refused.stderr.split())
    assert proctor("stop", cwd=tmp_path, PROCTOR_USER="ann").stderr == "a is not being played\n"
    assert proctor("stop", "b", *ANY, cwd=tmp_path).stderr == "b is not being played\n"


def test_an_empty_folder_says_how_to_begin(tmp_path: Path) -> None:
    listed = proctor("ls", cwd=tmp_path)
    assert (listed.returncode, listed.stdout) == (0, "")
    assert "no runs in runs yet; begin with `proctor demo`" in listed.stderr
    assert proctor("ls", "--json", cwd=tmp_path).stdout == "[]\n"


def test_wrong_ages_and_tags_are_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    for arguments, told in (
        (("rm", "--older-than", "30"), "write a number and m, h, d or w"),
        (("rm", "a", "--older-than", "30d"), "name the runs to remove, or their age"),
        (("rm", "a", "--tag", "nightly"), "--tag and --owner choose among runs --older-than an age"),
        (("prune",), "`proctor prune` is gone: it is `proctor rm --older-than AGE`"),
        (("run", "plan.yaml", "--tag", "a b"), "--tag a b: use up to 64 letters"),
    ):
        refused = exits(2, *arguments, cwd=tmp_path)
        assert told in " ".join(refused.stderr.split())
        assert "secret" not in refused.stderr


def test_rm_removes_what_it_is_told_to_alone(tmp_path: Path, played: Path) -> None:
    take(played, tmp_path, "a", "b", "c")
    asked = exits(2, "rm", "a", cwd=tmp_path)
    assert "a: finished, 2/2 trials scored" in asked.stderr
    assert "add --yes" in asked.stderr
    assert proctor("rm", "a", "nope", "--yes", cwd=tmp_path).returncode == 2
    assert names(tmp_path, *ANY) == ["a", "b", "c"]
    removed = proctor("rm", "a", "runs/b", "--yes", cwd=tmp_path)
    assert (removed.returncode, removed.stdout) == (0, "removed a\nremoved b\n")
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["c"]


def test_rm_asks_on_a_terminal(tmp_path: Path, played: Path) -> None:
    take(played, tmp_path, "a")
    for answer, left in ((b"n\n", ["a"]), (b"y\n", [])):
        with on_a_terminal("rm", "a", cwd=tmp_path) as (process, terminal):
            terminal.until("Remove this run for good? [y/N]")
            terminal.type(answer)
            assert process.wait(slowly(30)) == (1 if left else 0)
        assert names(tmp_path, *ANY) == left


def test_rm_by_age_takes_old_runs_alone(tmp_path: Path, played: Path) -> None:
    take(played, tmp_path, "a", "b", "c")
    for name in ("a", "b"):
        date_back(tmp_path / "runs" / name, "2026-01-31T00:00:00+00:00")
    assert proctor("resume", "b", "-q", cwd=tmp_path).returncode == 0
    refused = proctor("rm", "--older-than", "30d", *ANY, cwd=tmp_path)
    assert (refused.returncode, refused.stderr.splitlines()[0][:11]) == (2, "a: finished")
    assert names(tmp_path, *ANY) == ["a", "b", "c"]
    assert proctor("rm", "--older-than", "30d", "--yes", *ANY, cwd=tmp_path).stdout == "removed a\n"
    assert names(tmp_path, *ANY) == ["b", "c"]
    assert "no run is that old" in proctor("rm", "--older-than", "30d", "--yes", *ANY, cwd=tmp_path).stderr


def test_a_run_that_is_played_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(
        PLAN.replace("{name: naive, builtin: naive}", "{name: m, endpoint: 'http://127.0.0.1:9/v1'}")
    )
    client = begin("run", "plan.yaml", "--name", "r", cwd=tmp_path, OPENAI_API_KEY="x")
    until(lambda: '"running"' in proctor("status", "r", "--json", cwd=tmp_path).stdout)
    refused = proctor("rm", "r", "--yes", cwd=tmp_path)
    assert (refused.returncode, "proctor stop r" in refused.stderr) == (2, True)
    assert "no run is that old" in proctor("rm", "--older-than", "0m", "--yes", cwd=tmp_path).stderr
    client.send_signal(signal.SIGINT)
    client.send_signal(signal.SIGINT)
    client.communicate(timeout=slowly(60))


@pytest.mark.parametrize(("shell", "says"), [("bash", "complete -o nosort"), ("zsh", "compdef"), ("fish", "complete ")])
def test_completion_is_clicks_own(tmp_path: Path, shell: str, says: str) -> None:
    printed = exits(0, "completion", shell, cwd=tmp_path)
    assert says in printed.stdout
    asked = {"COMP_WORDS": "proctor comp", "COMP_CWORD": "1"}
    completed = proctor(cwd=tmp_path, _PROCTOR_COMPLETE="bash_complete", **asked)
    assert completed.stdout.split() == ["plain,compare", "plain,completion"]
