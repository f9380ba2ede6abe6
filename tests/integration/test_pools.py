"""Pools in files and in database servers: one client at a time, no key told, no harm from what is damaged."""

import fcntl
import logging
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from eval_client.core.limits.pool import Pool, PoolClient, Quota
from eval_client.store import pools as pools_module
from eval_client.store.connection import connect
from eval_client.store.pools import FilePools, PoolError, Pools, RowPools, pool_name, state_folder
from eval_client.store.tables import endpoint_table

URL, KEY = "https://model.example/v1", "sk-canary-7f3a9c55"


def counted(pool: Pool, now: float) -> Pool:
    """One more client."""
    one = PoolClient(run="r", endpoint="e", name="r", number=0, ceiling=1, slice=Quota(held=0, wanted=0), seen=now)
    return pool.model_copy(update={"clients": {**pool.clients, f"{len(pool.clients)}": one}})


def count(pools: Pools, name: str) -> int:
    found: list[int] = []

    def look(pool: Pool, now: float) -> Pool:
        found.append(len(pool.clients))
        return pool

    pools.change(name, look)
    return found[0]


@pytest.fixture
def files(tmp_path: Path) -> FilePools:
    return FilePools(tmp_path / "proctor" / "endpoints")


@pytest.fixture(
    params=[
        "files",
        pytest.param("postgresql_url", marks=pytest.mark.postgresql),
        pytest.param("mariadb_url", marks=pytest.mark.mariadb),
    ]
)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Pools]]:
    """What gives another client's view of the same place."""
    if request.param == "files":
        yield lambda: FilePools(tmp_path / "endpoints")
        return
    engine = connect(request.getfixturevalue(request.param))
    endpoint_table.drop(engine, checkfirst=True)
    yield lambda: RowPools(engine)
    engine.dispose()


def test_changes_follow_one_another_and_all_clients_find_the_same_pool(opened: Callable[[], Pools]) -> None:
    start = threading.Barrier(4)

    def client(_number: int) -> str:
        pools = opened()
        start.wait()
        name = pool_name("endpoint", URL, KEY)
        for _ in range(5):
            pools.change(name, counted)
        return name

    with ThreadPoolExecutor(4) as threads:
        names = set(threads.map(client, range(4)))
    assert len(names) == 1
    assert count(opened(), names.pop()) == 20


def test_names_differ_by_url_and_key_and_tell_neither() -> None:
    names = {pool_name("endpoint", *of) for of in ((URL, KEY), (URL, KEY + "x"), (URL + "x", KEY))}
    assert len(names) == 3
    assert all(len(name) == 32 and KEY not in name for name in names)


@pytest.mark.postgresql
@pytest.mark.parametrize("text", ["{", "[]", '{"clients": {"a": {}}}', "x" * 10_000])
def test_a_damaged_row_is_begun_anew(text: str, postgresql_url: str, caplog: pytest.LogCaptureFixture) -> None:
    engine = connect(postgresql_url)
    pools = RowPools(engine)
    name = pool_name("endpoint", URL, KEY)
    pools.change(name, counted)
    with engine.begin() as connection:
        connection.execute(endpoint_table.update().where(endpoint_table.c.id == name).values(state=text))
    assert count(pools, name) == 0
    assert "is reset" in caplog.text
    engine.dispose()


@pytest.mark.postgresql
def test_an_account_that_may_neither_make_nor_use_the_table_is_told(postgresql_url: str) -> None:
    _unable_is_told(postgresql_url, "proctor@", "CREATE ROLE reader LOGIN")


@pytest.mark.mariadb
def test_so_is_one_of_mariadb(mariadb_url: str) -> None:
    account = "reader@localhost"
    rights = f"GRANT SELECT ON proctor.other TO {account}"
    _unable_is_told(mariadb_url, "root@", "CREATE TABLE other (id INT)", f"CREATE USER {account}", rights)


def _unable_is_told(url: str, owner: str, *statements: str) -> None:
    """An account `reader` that the statements make, without a table, with one of another account, and in mid-run."""
    engine, reader = connect(url), connect(url.replace(owner, "reader@"))
    endpoint_table.drop(engine, checkfirst=True)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))
    with pytest.raises(PoolError, match="proctor_endpoint"):
        RowPools(reader).change("a", counted)
    pools = RowPools(engine)
    pools.change(name := pool_name("endpoint", URL, KEY), counted)
    with pytest.raises(PoolError, match="proctor_endpoint"):
        RowPools(reader).change("a", counted)
    endpoint_table.drop(engine)
    with pytest.raises(PoolError, match="proctor_endpoint"):
        pools.change(name, counted)
    for one in (engine, reader):
        one.dispose()


def the_file(folder: Path) -> Path:
    (path,) = folder.glob("*.json")
    return path


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"x" * (2 << 20), b'{"clients": 1}', b"[" * 100_000])
def test_a_damaged_file_is_begun_anew_and_said(
    content: bytes, files: FilePools, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files.change("a", counted)
    path = the_file(tmp_path / "proctor" / "endpoints")
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        files.change("a", counted)
    assert "is reset" in caplog.text
    assert count(files, "a") == 1
    assert path.stat().st_size < 1000


def test_folder_and_files_are_this_users_alone_and_hold_no_key(files: FilePools, tmp_path: Path) -> None:
    files.change(pool_name("endpoint", URL, KEY), counted)
    folder = tmp_path / "proctor" / "endpoints"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    everything = b"".join(path.name.encode() + path.read_bytes() for path in folder.iterdir())
    assert KEY.encode() not in everything
    assert b"model.example" not in everything
    folder.chmod(0o755)
    files.change("b", counted)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_pool_that_is_idle_leaves_no_file(files: FilePools, tmp_path: Path) -> None:
    files.change("a", counted)
    files.change("a", lambda pool, now: pool.without("0"))
    assert list((tmp_path / "proctor" / "endpoints").glob("*.json")) == []


@pytest.mark.parametrize(
    "server",
    [
        pytest.param("postgresql_url", marks=pytest.mark.postgresql),
        pytest.param("mariadb_url", marks=pytest.mark.mariadb),
    ],
)
def test_nor_a_row_and_who_waits_for_that_row_begins_a_new_one(server: str, request: pytest.FixtureRequest) -> None:
    engine = connect(request.getfixturevalue(server))
    pools = RowPools(engine)
    name = pool_name("endpoint", URL, KEY)
    pools.change(name, counted)

    with ThreadPoolExecutor(1) as others:

        def leave(pool: Pool, now: float) -> Pool:
            others.submit(pools.change, name, counted)
            return pool.without("0")

        pools.change(name, leave)
    assert count(pools, name) == 1
    pools.change(name, lambda pool, now: pool.without("0"))
    with engine.connect() as connection:
        assert connection.execute(sa.select(endpoint_table.c.id).where(endpoint_table.c.id == name)).all() == []
    engine.dispose()


def test_a_folder_that_cannot_be_used_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    for folder in (tmp_path / "file" / "endpoints", tmp_path / "link", Path("/proc/nowhere")):
        with pytest.raises(PoolError, match=str(folder).partition("/endpoints")[0]):
            FilePools(folder).change("a", counted)


def test_what_is_no_file_is_neither_waited_for_nor_followed(files: FilePools, tmp_path: Path) -> None:
    files.change("a", counted)
    path, target = the_file(tmp_path / "proctor" / "endpoints"), tmp_path / "target"
    target.write_text("mine")
    kinds: tuple[Callable[[], None], ...] = lambda: path.symlink_to(target), lambda: os.mkfifo(path), path.mkdir
    for make in kinds:
        path.unlink(missing_ok=True)
        make()
        with pytest.raises(PoolError):
            files.change("a", counted)
    assert target.read_text() == "mine"


def _hold(path: str, held: "multiprocessing.synchronize.Event") -> None:
    file = os.open(path, os.O_RDWR)
    fcntl.flock(file, fcntl.LOCK_EX)
    held.set()
    threading.Event().wait()


def test_a_lock_whose_holder_stands_still_is_not_waited_for_long_and_is_free_when_it_dies(
    files: FilePools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools_module, "LOCK_S", 0.05)
    files.change("a", counted)
    context = multiprocessing.get_context("spawn")
    held = context.Event()
    holder = context.Process(target=_hold, args=(str(the_file(tmp_path / "proctor" / "endpoints")), held))
    holder.start()
    held.wait()
    with pytest.raises(PoolError, match="locked"):
        files.change("a", counted)
    holder.kill()
    holder.join()
    files.change("a", counted)
    assert count(files, "a") == 2


def test_the_folder_lies_where_the_user_keeps_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert state_folder() == Path("/state/proctor")
    for unusable in ("", "relative"):
        monkeypatch.setenv("XDG_STATE_HOME", unusable)
        monkeypatch.setenv("HOME", "/home/me")
        assert state_folder() == Path("/home/me/.local/state/proctor")
