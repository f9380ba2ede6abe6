"""The database environment as configured, played on the embedded engine where a session is needed."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from environments.database.environment import Database
from environments.database.policies import answer, operation
from proctor.config.task import TaskDefinition
from proctor.config.yaml import FileError
from proctor.environment import Agent, AgentUnavailable, ContextLimitExceeded, Policy
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Action, Finish, FinishReason, Observation
from tests.pace import slowly

EMBEDDED = Database(engine="sqlite", statement_limit_s=slowly(0.5))


class Scripted(Agent):
    """Gives its replies one after the other, and keeps what it was shown."""

    def __init__(self, *replies: Action | Exception) -> None:
        self._replies = iter(replies)
        self.seen: list[str] = []

    async def act(self, observation: Observation) -> Action:
        self.seen.append(observation.messages[-1].content)
        reply = next(self._replies)
        if isinstance(reply, Exception):
            raise reply
        return reply


async def play(sample: str, *replies: Action | Exception) -> tuple[Finish, list[str]]:
    agent = Scripted(*replies)
    async with EMBEDDED.lifespan():
        return await play_to_finish(EMBEDDED, sample, agent), agent.seen


async def overall(database: Database, policy: Callable[[str], Policy]) -> float:
    async with database.lifespan():
        finishes = [await play_to_finish(database, each, PolicyAgent(policy(each))) for each in database.samples()]
    assert not [finish for finish in finishes if finish.reason is not FinishReason.COMPLETED]
    return database.summarize(finishes).metrics["overall_cat_accuracy"]


async def test_the_reference_solves_every_shipped_sample_on_the_embedded_engine() -> None:
    assert await overall(EMBEDDED, EMBEDDED.reference) == 1.0


@pytest.mark.thorough
@pytest.mark.mariadb
async def test_the_reference_solves_every_shipped_sample_on_mariadb() -> None:
    for profile in ("strict", "errata"):
        database = Database(profile=profile)
        assert await overall(database, database.reference) == 1.0


async def test_the_naive_policy_scores_a_little_and_the_random_one_is_well_formed() -> None:
    assert 0 < await overall(EMBEDDED, EMBEDDED.naive) < 0.3
    assert await overall(EMBEDDED, lambda sample: EMBEDDED.random(sample, seed=7)) < 0.3


async def test_policies_repeat_themselves_for_a_seed_and_differ_between_seeds() -> None:
    async def replies(seed: int) -> list[str]:
        said: list[str] = []
        for sample in EMBEDDED.samples():
            policy = EMBEDDED.random(sample, seed)

            def listening(conversation: str, transcript: object, policy: Policy = policy) -> Action:
                action = policy(conversation, transcript)  # type: ignore[arg-type]
                said.append(action.content)
                return action

            await play_to_finish(EMBEDDED, sample, PolicyAgent(listening))
        return said

    async with EMBEDDED.lifespan():
        assert await replies(1) == await replies(1)
        assert await replies(1) != await replies(2)


async def test_the_first_observation_holds_instruction_confirmation_and_question() -> None:
    agent = Scripted(answer(["x"]))
    async with EMBEDDED.lifespan():
        await play_to_finish(EMBEDDED, "select-00000", agent)
    assert agent.seen[0].startswith("Who keeps the Marrow Point lighthouse?\nThe table is called Lighthouses")


async def test_a_change_is_judged_by_the_table_whatever_the_answer() -> None:
    finish, seen = await play("update-00003", operation("UPDATE museum_loans SET Returned = 'yes'"), answer(["done"]))
    assert (finish.score, seen[1]) == (0.0, "[]")
    right = operation("UPDATE museum_loans SET Returned = 'yes' WHERE Piece = 'Clock no. 7'")
    finish, _ = await play("update-00003", right, Action(content="no form at all"))
    assert (finish.reason, finish.score, finish.metrics["strict"]) == (FinishReason.INVALID_FORMAT, 1.0, 0.0)


async def test_a_comment_swallows_the_rest_of_the_statement_in_compat_only() -> None:
    commented = operation("-- one\nSELECT 1\nWHERE 1")
    _, seen = await play("select-00000", commented, answer([]))
    assert seen[1] == "[]"
    for profile in ("strict", "errata"):
        database, agent = Database(engine="sqlite", profile=profile), Scripted(commented, answer([]))
        async with database.lifespan():
            await play_to_finish(database, "select-00000", agent)
        assert agent.seen[1] == "[(1,)]"


async def test_an_agent_that_stops_or_breaks_is_told_apart() -> None:
    finish, _ = await play("select-00000", ContextLimitExceeded())
    assert (finish.reason, finish.score, finish.detail["type"]) == (FinishReason.CONTEXT_LIMIT, 0.0, "other")
    finish, _ = await play("select-00000", AgentUnavailable("gone"))
    assert (finish.reason, finish.score) == (FinishReason.AGENT_ERROR, None)


async def test_gold_answers_stay_inside() -> None:
    finish, seen = await play("select-00000", operation("SELECT 1"), answer(["wrong"]))
    assert "Tom Quay" not in finish.model_dump_json() + "".join(seen)


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


def test_the_digest_changes_with_what_shapes_a_trial() -> None:
    profiles = [Database(profile=profile) for profile in ("compat", "strict", "errata")]
    others = [Database(engine="sqlite"), Database(statement_limit_s=5), Database(data=Path(__file__))]
    digests = [database.digest() for database in (*profiles, *others)]
    assert len(set(digests)) == len(digests)
    assert Database().digest() == digests[0]


def test_the_digest_follows_the_content_of_the_data(tmp_path: Path) -> None:
    data = tmp_path / "my.jsonl"
    data.write_text("one")
    before = Database(data=data).digest()
    data.write_text("two")
    assert Database(data=data).digest() != before


def test_scores_compare_only_on_published_data_with_the_published_judgement() -> None:
    data = Path("dev.jsonl")
    for database in (Database(), EMBEDDED, Database(data=data, engine="sqlite"), Database(data=data, profile="strict")):
        assert database.not_comparable_because()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"overlay": "x.json"}, "profile: errata"),
        ({"server": "nonsense"}, "not a server URL"),
        ({"server": "mysql://me@db/", "engine": "sqlite"}, "remove one of the two"),
        ({"statement_limit_s": 0}, "greater than 0"),
    ],
)
def test_fields_that_do_not_fit_together_are_explained(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Database.model_validate(fields)


def test_a_password_in_a_definition_is_refused_without_being_shown() -> None:
    definition = TaskDefinition(name="t", environment="db", parameters={"server": "mysql://me:hunter2@db/"})
    with pytest.raises(FileError, match="PROCTOR_DB_PASSWORD") as caught:
        definition.build()
    assert "hunter2" not in str(caught.value)


async def test_an_unknown_sample_and_a_play_outside_of_the_lifespan_are_refused() -> None:
    with pytest.raises(ValueError, match="no sample 'nope'"):
        EMBEDDED.reference("nope")
    with pytest.raises(RuntimeError, match="lifespan"):
        await EMBEDDED.play("select-00000", Scripted())
