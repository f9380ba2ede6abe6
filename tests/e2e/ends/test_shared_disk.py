"""A run on a disk that machines share: without a write-ahead log, read while it is played, killed and resumed."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from eval_client.store.connection import connect, file_url
from eval_client.store.sqlite_file import open_for_reading
from eval_client.store.tables import trial_table
from tests.e2e.gates import gate
from tests.e2e.proctor import begin, completed, exits, rows, server, told_scored
from tests.e2e.shared_folder import shared_folder
from tests.pace import until

pytestmark = pytest.mark.bindfs

PLAN = """\
agents: [{{name: reference, builtin: reference, endpoint: "{agents}", concurrency: 4}}]
tasks: [{{name: own, environment: db, parameters: {{engine: sqlite}}}}]
"""
AGENTS = """\
token_env: PROCTOR_TOKEN
tasks: [{name: own, environment: db, parameters: {engine: sqlite}}]
agents: [{name: reference, kind: reference}]
"""
KEY = {"OPENAI_API_KEY": "token-of-the-tests"}


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    with shared_folder(tmp_path) as mounted:
        yield mounted


def test_a_run_is_read_killed_and_resumed(shared: Path) -> None:
    (shared / "agents.yaml").write_text(AGENTS)
    store = shared / "runs" / "r" / "run.sqlite"

    with server("agents", "--config", "agents.yaml", cwd=shared) as agents:
        (shared / "plan.yaml").write_text(PLAN.format(agents=agents.url))
        found = {each["id"]: each for each in json.loads(exits(0, "doctor", "--json", cwd=shared).stdout)["findings"]}
        assert "share (fuse.sshfs), whose locks hold" in found["runs-folder"]["what"]
        with gate(shared / "plan.yaml", agents.url) as way:
            way.shut(spared=20)  # each trial takes several: however late the kill comes, the run is not over before
            client = begin("run", "plan.yaml", "--name", "r", "--quiet", cwd=shared, **KEY)
            until(lambda: told_scored(shared) > 0)
            client.kill()
            client.communicate()
            assert not Path(f"{store}-wal").exists()
            with sqlite3.connect(store) as connection:
                assert connection.execute("PRAGMA journal_mode").fetchone() != ("wal",)
            assert 0 < told_scored(shared) < 20
            way.open()
            completed(begin("resume", "r", "--quiet", cwd=shared, **KEY))
    assert [row["score"] for row in rows("r", shared)] == [1.0] * 20
    assert "own" in exits(0, "report", "r", cwd=shared).stdout


def test_a_commit_that_was_killed_is_undone_for_who_reads(shared: Path) -> None:
    """The rollback journal that it left is hot: it has what the commit had changed."""
    (shared / "plan.yaml").write_text(
        "agents: [{name: naive, builtin: naive}]\ntasks: [{name: own, environment: kg}]\n"
    )
    exits(0, "run", "plan.yaml", "--name", "r", "-q", "--limit=3", cwd=shared)
    store = shared / "runs" / "r" / "run.sqlite"
    before = exits(0, "report", "r", "--json", cwd=shared).stdout
    reading = open_for_reading(connect(file_url(store.parent)))
    child = f"""
import os, sqlite3
connection = sqlite3.connect({str(store)!r})
connection.execute("PRAGMA cache_size=1")
connection.execute("UPDATE proctor_trial SET score = 0.123")
connection.execute("UPDATE proctor_turn SET observation = zeroblob(100000)")
os._exit(9)
"""
    subprocess.run([sys.executable, "-c", child], check=False)
    assert Path(f"{store}-journal").stat().st_size > 0
    with reading.connect() as connection:
        assert 0.123 not in connection.execute(sa.select(trial_table.c.score)).scalars().all()
    assert exits(0, "report", "r", "--json", cwd=shared).stdout == before
