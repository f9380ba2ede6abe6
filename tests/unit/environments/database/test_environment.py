"""The database environment as configured, played on the embedded engine, and the addresses of servers."""

import asyncio
from pathlib import Path

import pytest

from environments.database.engines.base import ServerAddress
from environments.database.environment import Database
from environments.database.policies import answer, operation
from proctor.config.task import TaskDefinition
from proctor.config.yaml import FileError
from proctor.environment import Agent
from proctor.session.play import play_to_finish
from proctor.types import Action, Finish, Observation
from tests.pace import slowly
from tests.scripted_agent import Scripted

EMBEDDED = Database(engine="sqlite", statement_limit_s=slowly(0.5))


async def play(sample: str, *replies: Action | Exception) -> tuple[Finish, list[str]]:
    agent = Scripted(*replies)
    async with EMBEDDED.lifespan():
        return await play_to_finish(EMBEDDED, sample, agent), agent.told


async def test_errors_limits_and_refusals_of_the_embedded_engine_are_observations(tmp_path: Path) -> None:
    stolen = tmp_path / "stolen"
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT COUNT(*) FROM n"
    statements = (
        "SELEC 1",
        f"ATTACH '{stolen}' AS stolen",
        f"VACUUM INTO '{stolen}'",
        "PRAGMA writable_schema = 1",
        endless,
        "SELECT zeroblob(100000000)",
        "SELECT '" + "x" * (1 << 20) + "'",
        "SELECT 1",
    )
    _, seen = await play("select-00000", *map(operation, statements), answer([]))
    assert all(text[0].isdigit() and "): " in text for text in seen[1:-1])
    assert seen[5] == "1317 (70100): Query execution was interrupted"
    assert seen[-1] == "[(1,)]"
    assert not stolen.exists()


async def test_a_cancelled_session_of_the_embedded_engine_ends_its_statement() -> None:
    database = Database(engine="sqlite", statement_limit_s=3600)
    asked = asyncio.Event()

    class Endless(Agent):
        async def act(self, observation: Observation) -> Action:
            asked.set()
            return operation("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT COUNT(*) FROM n")

    async with database.lifespan():
        task = asyncio.create_task(play_to_finish(database, "select-00000", Endless()))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_a_password_in_a_definition_is_refused_without_being_shown() -> None:
    definition = TaskDefinition(name="t", environment="db", parameters={"server": "mysql://me:hunter2@db/"})
    with pytest.raises(FileError, match="PROCTOR_DB_PASSWORD") as caught:
        definition.build()
    assert "hunter2" not in str(caught.value)


async def test_an_unknown_sample_and_a_play_outside_of_the_lifespan_are_refused() -> None:
    with pytest.raises(ValueError, match="no sample 'nope'"):
        EMBEDDED.reference("nope")
    with pytest.raises(RuntimeError, match="lifespan"):
        await EMBEDDED.play("select-00000", Scripted("?"))


def test_an_address_never_prints_its_password() -> None:
    assert "hunter2" not in repr(ServerAddress("me", "hunter2"))
