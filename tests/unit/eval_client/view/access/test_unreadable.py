"""Stores that hold what Proctor never writes: every answer stays an answer, and says what is wrong."""

import json
import re
from pathlib import Path

import pytest
import sqlalchemy as sa

from eval_client.store.connection import connect, sqlite_url
from eval_client.store.tables import run_table, trial_table, turn_table
from eval_client.view.app import PAGES
from eval_client.view.json_api import ROUTES
from tests.e2e.pages import addresses
from tests.e2e.pages.hostile import MEGABYTES, NUL, RUN, SAMPLE, SURROGATE, TASK, hostile_folder, named
from tests.unit.eval_client.view.conftest import Client

GARBAGE = ("", "{", "NaN,", '{"kind": "action", "messages": 7}')


def test_every_page_is_listed_for_the_tests_of_all_pages() -> None:
    """A new page is one line in tests/e2e/pages/addresses.py."""
    names = addresses.Named("run", "task", "sample")
    listed = (
        *addresses.PAGES,
        *addresses.QUIET,
        *addresses.PARTS,
        *addresses.TEXTS,
        *addresses.FILES,
        *addresses.ABSENT,
    )
    paths = [names.fill(address).partition("?")[0] for address in listed]
    for route, _ in (*PAGES, *ROUTES):
        pattern = re.sub(r"{\w+}", "[^/]+", route)
        assert any(re.fullmatch(pattern, path) for path in paths), route


@pytest.mark.thorough
async def test_no_page_grows_with_the_texts_that_it_shows(folder: Path, client: Client) -> None:
    hostile_folder(folder)
    names = addresses.Named(RUN, TASK, SAMPLE)
    async with client() as viewer:
        for address in addresses.PAGES:
            page = await viewer.get(names.fill(address))
            assert len(page.content) < 150_000, address
        whole = await viewer.get(names.fill("/runs/{run}/trials/1/raw?part=evidence"))
    assert MEGABYTES in whole.text


async def test_json_holds_every_character_that_is_stored(folder: Path, client: Client) -> None:
    hostile_folder(folder)
    async with client() as viewer:
        answer = await viewer.get(addresses.Named(RUN, "", "").fill("/api/v1/runs/{run}/trials/0"))
    turns = json.loads(answer.content)["turns"]["items"]
    assert turns[0]["action"]["content"] == named("answer") + NUL + SURROGATE
    assert turns[2]["messages"][-1]["content"] == named("observation") + MEGABYTES + NUL + SURROGATE


@pytest.mark.parametrize("garbage", GARBAGE)
async def test_a_run_that_cannot_be_read_is_one_line_in_the_list(folder: Path, client: Client, garbage: str) -> None:
    change(folder, run_table.update().values(manifest=garbage))
    async with client() as viewer:
        listed = await viewer.get("/")
        assert (listed.status_code, "unreadable" in listed.text) == (200, True)
        (told,) = (await viewer.get("/api/v1/runs")).json()["items"]
        assert told["state"] == "unreadable"
        assert "Manifest" in told["problem"]
        assert (await viewer.get("/runs/first")).status_code == 503


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("column", [turn_table.c.reply, turn_table.c.observation, trial_table.c.finish])
async def test_a_trial_that_cannot_be_read_says_so(
    folder: Path, client: Client, column: sa.Column[str], garbage: str
) -> None:
    change(folder, sa.update(column.table).values({column: garbage}))
    async with client() as viewer:
        page = await viewer.get("/runs/first/trials/0")
        told = await viewer.get("/api/v1/runs/first/trials/0")
    assert (page.status_code, told.status_code) == (503, 503)
    assert "holds a value that can&#39;t be read" in page.text
    assert told.headers["content-type"] == "application/problem+json"


def change(folder: Path, statement: sa.Update) -> None:
    """Changes the rows of the folder's run."""
    engine = connect(sqlite_url(folder / "first"))
    with engine.begin() as connection:
        connection.execute(statement)
    engine.dispose()
