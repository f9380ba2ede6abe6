"""The viewer on runs of a database server."""

import httpx
import pytest
import sqlalchemy as sa

from eval_client.store.connection import connect
from eval_client.store.records import Manifest, TaskRecord, Trial
from eval_client.store.store import Store
from eval_client.store.tables import run_table
from eval_client.view.access import ViewAccess
from eval_client.view.app import build_app
from eval_client.view.runs import ServerRuns

RUNS = ("first", "broken", "<b>'; last")
PLAN = {"agents": [{"name": "gpt", "model": "m"}], "tasks": [{"name": "riddles", "environment": "ltp"}]}


@pytest.fixture(
    params=[
        pytest.param("postgresql_url", marks=pytest.mark.postgresql),
        pytest.param("mariadb_url", marks=pytest.mark.mariadb),
    ]
)
def url(request: pytest.FixtureRequest) -> str:
    """The URL of a database with three runs, one of which can't be read."""
    found: str = request.getfixturevalue(request.param)
    engine = connect(found)
    record = TaskRecord(environment="ltp", digest="d", samples=1)
    for run in RUNS:
        manifest = Manifest(version="1", plan_path="p", plan=PLAN, identity={}, tasks={"riddles": record})
        Store(engine, run).create(manifest, [Trial(id=0, agent="gpt", task="riddles", sample="漢/<b>", epoch=0)])
    with engine.begin() as connection:
        connection.execute(run_table.update().where(run_table.c.id == "broken").values(manifest="{"))
    engine.dispose()
    return found


async def test_it_lists_all_runs_and_one_that_cannot_be_read_is_one_line(url: str) -> None:
    runs = ServerRuns(url)
    transport = httpx.ASGITransport(build_app(runs, ViewAccess()))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as viewer:
        listed = (await viewer.get("/api/v1/runs")).json()
        states = {each["run"]: each["state"] for each in listed["items"]}
        assert states == {"first": "stopped", "broken": "unreadable", "<b>'; last": "stopped"}
        page = await viewer.get("/")
        assert page.status_code == 200
        assert all(address in page.text for address in ("/runs/first", "/runs/%3Cb%3E%27%3B%20last"))
        for address in ("/runs/first", "/runs/%3Cb%3E%27%3B%20last/trials?sample=%3CB%3E", "/runs/first/trials/0"):
            shown = await viewer.get(address)
            assert shown.status_code == 200
            assert address == "/runs/first" or "漢/&lt;b&gt;" in shown.text
        for address, status in (("/runs/broken", 503), ("/runs/none", 404), ("/runs/first/trials?cause=%00", 400)):
            assert (await viewer.get(address)).status_code == status
    engine = runs.open("first").engine
    with pytest.raises(sa.exc.SQLAlchemyError), engine.begin() as connection:
        connection.execute(run_table.update().values(state="written"))
    engine.dispose()
