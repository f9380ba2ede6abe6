"""Asking a database that is away for a while."""

import logging
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import sqlalchemy as sa

from eval_client.store import connection
from eval_client.store.connection import StoreError, connect, retry_until_available
from tests.support import ROOT


async def test_what_is_waited_for_is_said_once_when_it_takes_long(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection, "AGAIN_S", 0.0)
    left = 3 * connection.SAY_AFTER

    def ask() -> str:
        nonlocal left
        left -= 1
        if left:
            raise sa.exc.OperationalError("SELECT 1", {}, Exception("no route to host"))
        return "here"

    with caplog.at_level(logging.WARNING):
        assert await retry_until_available(ask, aside=False) == "here"
    (record,) = caplog.records
    assert "no route to host" in record.getMessage()


def test_a_store_is_closed_at_the_end_of_a_process_that_frees_nothing(tmp_path: Path) -> None:
    code = """
        import atexit, gc, sys
        from eval_client.store import connection

        atexit.register(gc.freeze)
        engine = connection.connect(sys.argv[1])
        engine.itself = engine
        with engine.begin() as writing:
            writing.exec_driver_sql("create table t (a)")
    """
    store = tmp_path / "run.sqlite"
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), f"sqlite:///{store}"], cwd=ROOT, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["run.sqlite"]


PASSWORDS = ("hun@ter2pw", "hun:ter2pw", "hun@ter2:pw", "hun/ter2:pw", "hun@ter2:pw/x", "hun@ter2/pw", "hun?ter2@pw/x")


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("place", ["db.example/proctor", "db.example:5432/proctor", "db.example"])
@pytest.mark.parametrize("kind", ["postgresql", "postgresql+psycopg", "mysql", "mysql+pymysql", "mariadb"])
def test_a_password_that_is_not_encoded_is_read_whole_or_never_shown(kind: str, place: str, password: str) -> None:
    told = None
    try:
        engine = connect(f"{kind}://me:{password}@{place}")
    except StoreError as error:
        told = str(error)
    if told is None:
        assert (engine.url.password, engine.url.host) == (password, "db.example")
    else:
        assert not any(part in told for part in ("hun", "ter2", "pw", "\n"))


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nonsense", "no URL of a database"),
        ("://", "no URL of a database"),
        ("postgresql://me:secret@db.example", "names no database; write /NAME"),
        ("mysql://me:secret@db.example/", "names no database; write /NAME"),
        ("postgresql://me:se@cret@db.example/x", "more than one @; write %40 for @"),
        ("postgresql://me:secret@db.example:port/x", "port is no number"),
    ],
)
def test_a_url_that_can_not_be_used_is_refused_with_what_to_write(url: str, says: str) -> None:
    with pytest.raises(StoreError, match=re.escape(says)) as refused:
        connect(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_mysql_and_mariadb_without_a_driver_are_pymysqls(kind: str) -> None:
    engine = connect(f"{kind}://me:secret@db.example/x")
    assert (engine.dialect.name, engine.dialect.driver) == (kind, "pymysql")
