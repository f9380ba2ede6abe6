"""Runs in a database server that refuses an account its tables, or connections, and one that goes away."""

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.database_servers import DatabaseServer, mariadb, postgresql
from tests.e2e.gates import ENDLESS
from tests.e2e.proctor import begin, completed, proctor
from tests.pace import slowly, until

PLAN = "name: x\nagents: [{name: naive, builtin: naive}]\ntasks: [{name: ltp, environment: ltp}]\n"
SLOW = """\
import time

def answer(messages, tools):
    time.sleep(0.2)
    return "Is it so?"
"""
PASSWORD = "password-of-the-tests"
MOST = 500
SERVERS = [
    pytest.param(mariadb, marks=pytest.mark.mariadb),
    pytest.param(postgresql, marks=pytest.mark.postgresql),
]
Server = Callable[[], AbstractContextManager[DatabaseServer]]
ACCOUNT = {
    "mysql": (f"CREATE USER poor IDENTIFIED BY '{PASSWORD}'", "GRANT SELECT, INSERT, UPDATE, DELETE ON *.* TO poor"),
    "postgresql": (f"CREATE ROLE poor LOGIN PASSWORD '{PASSWORD}'", "REVOKE CREATE ON SCHEMA public FROM PUBLIC"),
}


@pytest.mark.parametrize("server", SERVERS)
def test_an_account_that_may_not_create_tables_is_told_so(server: Server, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    with server() as running:
        url = sa.make_url(running.url)
        with sa.create_engine(url, poolclass=sa.pool.NullPool).begin() as connection:
            for statement in ACCOUNT[url.get_backend_name()]:
                connection.exec_driver_sql(statement)
        poor = url.set(username="poor", password=PASSWORD).render_as_string(hide_password=False)
        refused = proctor("run", "plan.yaml", "--limit", "1", cwd=tmp_path, PROCTOR_STORE=poor)
    assert refused.returncode == 2
    (told,) = [line for line in refused.stderr.splitlines() if "Error" in line]
    assert "may not create the tables there; grant it CREATE" in told
    assert refused.stderr.splitlines()[-1] == told
    assert PASSWORD not in refused.stderr


@pytest.mark.parametrize("server", SERVERS)
def test_a_run_waits_at_its_start_until_the_server_takes_its_connections(server: Server, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    with server() as running, ExitStack() as held:
        engine = sa.create_engine(running.url, poolclass=sa.pool.NullPool)
        with contextlib.suppress(sa.exc.OperationalError):
            for _ in range(MOST):
                held.enter_context(engine.connect())
        client = begin("run", "plan.yaml", "--limit", "1", "--name", "r", cwd=tmp_path, PROCTOR_STORE=running.url)
        assert client.stderr is not None
        waits = next(line for line in client.stderr if "takes no more connections" in line)
        assert "waiting" in waits
        held.close()
        errors = completed(client, within_s=120)
        assert "Traceback" not in errors


@pytest.mark.parametrize("server", SERVERS)
def test_a_run_whose_server_was_killed_can_be_stopped_without_a_traceback(server: Server, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(SLOW)
    (tmp_path / "plan.yaml").write_text(PLAN.replace("builtin: naive", "function: ./agent.py:answer, concurrency: 2"))
    with server() as running:
        client = begin("run", "plan.yaml", "--name", "r", *ENDLESS, cwd=tmp_path, PROCTOR_STORE=running.url)
        engine = sa.create_engine(running.url, poolclass=sa.pool.NullPool)
        until(lambda: _turns(engine) > 0, slowly(60))
        running.kill()
        running.start()
        after = _turns(engine)
        until(lambda: _turns(engine) > after, slowly(60))
        until(lambda: "is not being played" not in proctor("stop", "r", cwd=tmp_path, PROCTOR_STORE=running.url).stderr)
        errors = completed(client, 130)
    assert "Traceback" not in errors
    assert "Exception during" not in errors


def _turns(engine: sa.Engine) -> int:
    try:
        with engine.connect() as connection:
            return int(connection.exec_driver_sql("SELECT count(*) FROM proctor_turn").scalar_one())
    except sa.exc.DBAPIError:
        return 0
