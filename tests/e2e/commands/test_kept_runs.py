"""Runs that are kept: listed, copied between stores, and removed."""

import json
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest

from tests.database_servers import mariadb, postgresql
from tests.e2e.commands.terminal import on_a_terminal
from tests.e2e.proctor import begin, proctor, rows
from tests.pace import slowly, until

PLAN = """\
name: kept
tags: [nightly]
agents: [{name: naive, builtin: naive}]
tasks: [{name: db-own, environment: db, parameters: {engine: sqlite}}]
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs `a` of Ann, with a tag of its own, `b` of Bob, and `c`."""
    folder = tmp_path_factory.mktemp("played")
    (folder / "plan.yaml").write_text(PLAN)
    for name, owner, *options in (("a", "ann", "--tag", "small"), ("b", "bob"), ("c", "")):
        command = ("run", "plan.yaml", "--name", name, "--limit", "2", "-q", *options)
        run = proctor(*command, cwd=folder, PROCTOR_OWNER=owner)
        assert run.returncode == 0, run.stderr
    return folder


def take(played: Path, folder: Path, *runs: str) -> None:
    """Copy some of the runs that were played."""
    for name in runs:
        shutil.copytree(played / "runs" / name, folder / "runs" / name)


def names(folder: Path, *options: str, **extra: str) -> list[str]:
    listed = proctor("ls", "--json", *options, cwd=folder, **extra)
    assert listed.returncode == 0, listed.stderr
    return [row["run"] for row in json.loads(listed.stdout)]


def date_back(run: Path, created_at: str) -> None:
    """Make a run older than it is."""
    with sqlite3.connect(run / "run.sqlite") as store:
        store.execute("UPDATE proctor_run SET created_at = ?", (created_at,))
    store.close()


def test_runs_are_found_by_tag_owner_and_date(tmp_path: Path, played: Path) -> None:
    take(played, tmp_path, "a", "b")
    date_back(tmp_path / "runs" / "a", "2026-01-31T23:30:00+00:00")
    assert names(tmp_path) == ["a", "b"]
    assert names(tmp_path, "--tag", "nightly") == ["a", "b"]
    assert names(tmp_path, "--tag", "nightly", "--tag", "small") == ["a"]
    assert names(tmp_path, "--owner", "bob") == ["b"]
    assert names(tmp_path, "--since", "30d") == ["b"]
    assert names(tmp_path, "--until", "2026-01-31") == ["a"]
    assert names(tmp_path, "--until", "2026-01-31T23:00") == []
    assert names(tmp_path, "--since", "2026-01-31", "--until", "2026-02-01") == ["a"]
    line = proctor("ls", "--owner", "ann", cwd=tmp_path).stdout
    assert line == "a: finished, 2/2 trials scored, begun 2026-01-31 23:30 by ann, tags nightly small\n"
    resumed = proctor("resume", "a", "-q", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert names(tmp_path, "--tag", "small", "--owner", "ann") == ["a"]


def test_an_empty_folder_says_how_to_begin(tmp_path: Path) -> None:
    listed = proctor("ls", cwd=tmp_path)
    assert (listed.returncode, listed.stdout) == (0, "")
    assert "no runs in runs yet; begin with `proctor demo`" in listed.stderr
    assert proctor("ls", "--json", cwd=tmp_path).stdout == "[]\n"


def test_wrong_dates_and_tags_are_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    for arguments, told in (
        (("ls", "--since", "yesterday"), "write 2026-11-20, 2026-11-20T18:00 (UTC), or an age"),
        (("prune", "--older-than", "30"), "write a number and m, h, d or w"),
        (("run", "plan.yaml", "--tag", "a b"), "--tag a b: use up to 64 letters"),
        (("copy", "r"), "--to: name the store to copy to"),
        (("copy", "r", "--to", "postgresql+psycopg://u:secret@db/x"), "put the URL into PROCTOR_COPY_TO"),
    ):
        refused = proctor(*arguments, cwd=tmp_path)
        assert refused.returncode == 2
        assert told in " ".join(refused.stderr.split())
        assert "secret" not in refused.stderr


def test_rm_removes_what_it_is_told_to_alone(tmp_path: Path, played: Path) -> None:
    take(played, tmp_path, "a", "b", "c")
    asked = proctor("rm", "a", cwd=tmp_path)
    assert asked.returncode == 2
    assert "a: finished, 2/2 trials scored" in asked.stderr
    assert "add --yes" in asked.stderr
    assert proctor("rm", "a", "nope", "--yes", cwd=tmp_path).returncode == 2
    assert names(tmp_path) == ["a", "b", "c"]
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
        assert names(tmp_path) == left


def test_prune_takes_old_runs_alone(tmp_path: Path, played: Path) -> None:
    take(played, tmp_path, "a", "b", "c")
    for name in ("a", "b"):
        date_back(tmp_path / "runs" / name, "2026-01-31T00:00:00+00:00")
    assert proctor("resume", "b", "-q", cwd=tmp_path).returncode == 0
    assert proctor("prune", "--older-than", "30d", "--dry-run", cwd=tmp_path).stdout.startswith("a: finished")
    assert proctor("prune", "--older-than", "30d", cwd=tmp_path).returncode == 2
    assert names(tmp_path) == ["a", "b", "c"]
    assert proctor("prune", "--older-than", "30d", "--yes", cwd=tmp_path).stdout == "removed a\n"
    assert names(tmp_path) == ["b", "c"]
    assert "no run is that old" in proctor("prune", "--older-than", "30d", "--yes", cwd=tmp_path).stderr


def test_a_run_that_is_played_is_neither_removed_nor_copied(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(
        PLAN.replace("{name: naive, builtin: naive}", "{name: m, endpoint: 'http://127.0.0.1:9/v1'}")
    )
    client = begin("run", "plan.yaml", "--name", "r", cwd=tmp_path, OPENAI_API_KEY="x")
    until(lambda: '"running"' in proctor("status", "r", "--json", cwd=tmp_path).stdout)
    for arguments in (("rm", "r", "--yes"), ("copy", "r", "--to", "other")):
        refused = proctor(*arguments, cwd=tmp_path)
        assert refused.returncode == 2
        assert "proctor stop r" in refused.stderr
    assert "no run is that old" in proctor("prune", "--older-than", "0m", "--yes", cwd=tmp_path).stderr
    assert not (tmp_path / "other").exists() or not any((tmp_path / "other").iterdir())
    client.send_signal(signal.SIGINT)
    client.send_signal(signal.SIGINT)
    client.communicate(timeout=slowly(60))


def there_and_back(folder: Path, url: str) -> None:
    """Copy the run `a` to a database and back; every table is the same."""
    before = dump(folder / "runs" / "a")
    there = proctor("copy", "a", "--to", url, cwd=folder)
    assert there.returncode == 0, there.stderr
    assert "2 trials, 2 attempts" in there.stdout
    assert names(folder, "--tag", "small", PROCTOR_STORE=url) == ["a"]
    assert rows("a", folder, PROCTOR_STORE=url) == rows("a", folder)
    again = proctor("copy", "a", "--to", url, cwd=folder)
    assert again.returncode == 2
    assert "exists in the other store already" in again.stderr
    back = proctor("copy", "a", "--store", url, "--to", "back", cwd=folder)
    assert back.returncode == 0, back.stderr
    assert dump(folder / "back" / "a") == before
    assert proctor("copy", "a", "--store", url, "--to", "back", cwd=folder).returncode == 2
    assert proctor("resume", "a", "-q", cwd=folder, PROCTOR_STORE=url).returncode == 0
    assert proctor("rm", "a", "--yes", cwd=folder, PROCTOR_STORE=url).returncode == 0
    assert names(folder, PROCTOR_STORE=url) == []
    assert names(folder) == ["a"]


def dump(run: Path) -> list[str]:
    """All rows of a SQLite store, sorted."""
    store = sqlite3.connect(run / "run.sqlite")
    rows = sorted(line for line in store.iterdump() if line.startswith("INSERT"))
    store.close()
    return rows


@pytest.mark.postgresql
def test_a_run_goes_to_postgresql_and_back_with_every_row(tmp_path: Path, played: Path) -> None:
    take(played, tmp_path, "a")
    with postgresql() as database:
        there_and_back(tmp_path, database.url)


@pytest.mark.mariadb
def test_a_run_goes_to_mariadb_and_back_with_every_row(tmp_path: Path, played: Path) -> None:
    take(played, tmp_path, "a")
    with mariadb() as database:
        there_and_back(tmp_path, database.url)


@pytest.mark.parametrize(("shell", "says"), [("bash", "complete -o nosort"), ("zsh", "compdef"), ("fish", "complete ")])
def test_completion_is_clicks_own(tmp_path: Path, shell: str, says: str) -> None:
    printed = proctor("completion", shell, cwd=tmp_path)
    assert printed.returncode == 0
    assert says in printed.stdout
    asked = {"COMP_WORDS": "proctor comp", "COMP_CWORD": "1"}
    completed = proctor(cwd=tmp_path, _PROCTOR_COMPLETE="bash_complete", **asked)
    assert completed.stdout.split() == ["plain,compare", "plain,completion"]
