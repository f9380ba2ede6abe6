"""The database environment as configured, played on the embedded engine, its marks and servers."""

import asyncio
import math
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from environments.database import scoring
from environments.database.dataset import Table, TableEntry
from environments.database.engines.base import ServerAddress
from environments.database.environment import Database
from environments.database.policies import answer, operation
from environments.database.table_hash import TableHash
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


QUESTION = TableEntry(
    id="one",
    kind="counting",
    description="How many?",
    add_description="",
    table=Table(name="t", columns=("a",), rows=()),
    label=("2", "2"),
    accept=(("3",),),
    table_hash=None,
    query=None,
    record="0" * 16,
)
CHANGE = QUESTION.model_copy(update={"kind": "UPDATE", "table_hash": "f" * 32})


@pytest.mark.parametrize(
    ("answer", "compat", "strict", "multiset"),
    [("['2']", 1, 1, 0), ("['2', '2']", 1, 1, 1), ("['3']", 1, 1, 1), ("['2', '2.0']", 0, 1, 1), ("['4']", 0, 0, 0)],
)
def test_an_answer_is_right_where_it_is_any_accepted_one_and_the_session_was_completed(
    answer: str, compat: float, strict: float, multiset: float
) -> None:
    wanted = {"compat": compat, "strict": strict, "strict_multiset": multiset}
    assert scoring.marks(QUESTION, True, answer, TableHash(), scoring.V02) == wanted
    assert set(scoring.marks(QUESTION, False, answer, TableHash(), scoring.V02).values()) == {0.0}


def test_a_change_is_judged_by_the_hash_and_strict_wants_the_session_completed_too() -> None:
    changed, untouched = TableHash(sql="f" * 32), TableHash(sql="0" * 32)
    assert scoring.marks(CHANGE, True, "anything", changed, scoring.V02) == {"compat": 1.0, "strict": 1.0}
    assert scoring.marks(CHANGE, False, "", changed, scoring.V02) == {"compat": 1.0, "strict": 0.0}
    assert scoring.marks(CHANGE, True, "['2', '2']", untouched, scoring.V02) == {"compat": 0.0, "strict": 0.0}
    assert scoring.marks(CHANGE, True, "", TableHash(), scoring.V02) == {"compat": 0.0, "strict": 0.0}


def _is_nan(label: list[str]) -> bool:
    """Whether the label is one text that Python reads as NaN, which is equal to nothing."""
    try:
        return len(label) == 1 and math.isnan(float(label[0]))
    except ValueError:
        return False


@example(["NAN"])
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=10), min_size=1, max_size=4, unique=True))
def test_a_label_printed_by_python_is_right_in_both_profiles(label: list[str]) -> None:
    wanted = not _is_nan(label)
    assert scoring.compat(" " + repr(label), label) is wanted
    assert scoring.strict(" " + repr(label), label)
    assert scoring.strict_multiset(" " + repr(label[::-1]), label)
