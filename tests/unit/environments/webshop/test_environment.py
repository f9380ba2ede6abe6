"""The environment as a whole: its samples, its sessions, its summary, what it refuses."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import JsonValue

from environments.webshop.catalogue.make import DATABASE, INDEX, make
from environments.webshop.catalogue.nouns import extractor
from environments.webshop.catalogue.published import files_in
from environments.webshop.environment import WebShop
from environments.webshop.scoring import Profile
from proctor.environment import ContextLimitExceeded, EnvironmentFault
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Finish, FinishReason
from tests.scripted_agent import Scripted
from tests.unit.environments.fixed_policies import looker
from tools.datagen.webshop import generator

Json = Mapping[str, JsonValue]
PROFILES: tuple[Profile, ...] = ("compat", "strict")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
async def environment(cache: Path) -> AsyncIterator[WebShop]:
    environment = WebShop(cache=cache)
    async with environment.lifespan():
        yield environment


def saying(*actions: str) -> Scripted:
    """An agent that does these things, then runs out of context."""
    return Scripted(*(f"Action: {action}" for action in actions), ContextLimitExceeded())


def test_samples_are_goals(cache: Path) -> None:
    assert WebShop(cache=cache).samples()[:2] == ("goal-00000", "goal-00001")
    assert len(WebShop(cache=cache).samples()) == 200
    assert WebShop(cache=cache, goals=(198, 200)).samples() == ("goal-00198", "goal-00199")


@pytest.mark.parametrize("sample", ["goal-00200", "goal-", "100", "goal-7", "goal-²", "goal--1", ""])
async def test_an_unknown_sample_is_refused(environment: WebShop, sample: str) -> None:
    with pytest.raises(ValueError, match="no sample"):
        environment.reference(sample)
    assert (await play_to_finish(environment, sample, saying())).reason is FinishReason.TASK_ERROR


async def test_a_worker_without_a_catalogue_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="proctor webshop index"):
        async with WebShop(data=tmp_path).lifespan():
            pass


async def test_those_who_index_the_shipped_catalogue_at_once_end_with_the_same(tmp_path: Path) -> None:
    environments = [WebShop(cache=tmp_path) for _ in range(3)]
    digests = await asyncio.gather(*(asyncio.to_thread(environment.digest) for environment in environments))
    assert len(set(digests)) == 1
    assert len(list(tmp_path.iterdir())) == 1


async def test_connections_are_closed_behind_a_session_that_outlives_the_shop(cache: Path) -> None:
    environment = WebShop(cache=cache)
    async with environment.lifespan():
        shop = environment._shop
        assert shop is not None
        with shop.store._connection():
            shop.store.close()
        assert shop.store._idle.qsize() == 0


async def test_the_summary_counts_no_fault(environment: WebShop) -> None:
    bought = await play_to_finish(environment, "goal-00000", PolicyAgent(environment.reference("goal-00000")))
    looked = await play_to_finish(environment, "goal-00000", PolicyAgent(looker))
    summary = environment.summarize([bought, looked, Finish.fault(FinishReason.TASK_ERROR, "broken")])
    assert (summary.primary, summary.metrics["reward"], summary.metrics["success_rate"]) == ("reward", 0.5, 0.5)
    assert (summary.metrics["purchase_rate"], summary.metrics["r_type"]) == (0.5, 1.0)
    assert (summary.metrics["requested"], summary.metrics["scored"], summary.metrics["turn_limit"]) == (3, 2, 1)
    assert any("no WebShop scores" in note for note in summary.notes)
    parts = ("r_type", "r_att", "r_option", "r_price")
    assert not set(parts) & environment.summarize([looked]).metrics.keys(), "nothing was bought"
    nothing = environment.summarize([Finish.fault(FinishReason.TASK_ERROR, "broken")]).metrics
    assert not {"reward", "success_rate", "purchase_rate", "rounds", "noop_actions"} & nothing.keys()
    assert (nothing["requested"], nothing["scored"], nothing["turn_limit"]) == (1.0, 0.0, 0.0)


async def played(folder: Path, options: Json, wanted: list[str], *moves: str) -> dict[Profile, Finish]:
    """The finish in each profile where a catalogue's only product has these options."""
    goal = {"instruction": "i", "instruction_attributes": ["table"], "instruction_options": wanted}
    contents = {
        "items_shuffle": [{"asin": "A1", "name": "table", "customization_options": options}],
        "items_ins_v2": {},
        "items_human_ins": {"A1": [goal]},
    }
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    make(files_in(folder), folder / "made", extractor("lexical"))
    finishes: dict[Profile, Finish] = {}
    for profile in PROFILES:
        environment = WebShop(data=folder / "made", profile=profile)
        async with environment.lifespan():
            finishes[profile] = await play_to_finish(environment, "goal-00000", saying(*moves))
    return finishes


async def test_strict_clicks_values_with_brackets_and_shared_ones(tmp_path: Path) -> None:
    options: Json = {"Size": [{"value": "7 [US] oz"}, {"value": "Blue"}], "Color": [{"value": "blue"}]}
    moves = ("search[table]", "click[a1]", "click[7 [US] oz]", "click[color: blue]", "click[Buy Now]")
    rewards = await played(tmp_path, options, ["7 [us] oz", "blue"], *moves)
    assert rewards["strict"].detail["chosen"] == {"size": "7 [us] oz", "color": "blue"}
    assert rewards["strict"].score == 1.0
    assert rewards["compat"].detail["chosen"] == {}
    assert rewards["compat"].metrics["noop_actions"] == 2


async def test_a_value_named_as_a_button_buys_in_compat_and_can_be_chosen_in_strict(tmp_path: Path) -> None:
    options: Json = {"Kind": [{"value": "Buy Now"}, {"value": "plain"}]}
    moves = ("search[table]", "click[a1]", "click[kind: buy now]", "click[buy now]", "click[buy now]")
    finishes = await played(tmp_path, options, ["buy now"], *moves)
    assert {finish.reason for finish in finishes.values()} == {FinishReason.COMPLETED}
    assert {finish.metrics["rounds"] for finish in finishes.values()} == {4}
    assert finishes["compat"].detail["chosen"] == {}
    assert finishes["strict"].detail["chosen"] == {"kind": "buy now"}


@pytest.mark.parametrize(
    ("sql", "reason"),
    [("delete from products", FinishReason.CONTEXT_LIMIT), ("drop table products", FinishReason.TASK_ERROR)],
)
async def test_missing_products_are_counted_and_a_broken_database_is_a_fault(
    tmp_path: Path, sql: str, reason: FinishReason
) -> None:
    generator.write(tmp_path / "files", 20, 1)
    make(files_in(tmp_path / "files"), tmp_path / "made", extractor("lexical"))
    with closing(sqlite3.connect(tmp_path / "made" / DATABASE)) as connection:
        connection.execute(sql)
        connection.commit()
    environment = WebShop(data=tmp_path / "made")
    async with environment.lifespan():
        finish = await play_to_finish(environment, "goal-00000", saying("search[people praise it]"))
    assert finish.reason is reason
    assert reason.is_fault or finish.metrics["missing_products"] > 10


async def test_a_damaged_index_is_a_fault(tmp_path: Path) -> None:
    """Tantivy panics over it, and a panic is no Exception."""
    generator.write(tmp_path / "files", 200, 1)
    make(files_in(tmp_path / "files"), tmp_path / "made", extractor("lexical"))
    (terms,) = (tmp_path / "made" / INDEX).glob("*.term")
    content = bytearray(terms.read_bytes())
    content[len(content) // 4 : len(content) * 3 // 4] = b"\xff" * (len(content) * 3 // 4 - len(content) // 4)
    terms.write_bytes(content)
    environment = WebShop(data=tmp_path / "made")
    async with environment.lifespan():
        finish = await play_to_finish(environment, "goal-00000", saying("search[people praise it]"))
    assert finish.reason is FinishReason.TASK_ERROR
    assert "no search index, or a damaged one" in str(finish.detail["cause"])
    assert "proctor webshop index" in str(finish.detail["cause"])
