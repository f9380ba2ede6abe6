"""Which categories samples have, and which shipped samples share a world, so that their scores are not independent."""

from collections import Counter, defaultdict

import pytest

from environments.alfworld.environment import ALFWorld
from environments.card_game.environment import CardGame
from environments.database.environment import Database
from environments.knowledge_graph.environment import KnowledgeGraph
from environments.lateral_thinking.environment import LateralThinking
from environments.mind2web.environment import Mind2Web
from environments.operating_system.environment import OperatingSystem
from environments.simulbench.environment import SimulBench
from environments.simulbench.records import Mode
from environments.stss.environment import Stss
from environments.webshop.environment import WebShop
from eval_client.core.selection import NO_FILTERS, Catalogue, choose
from proctor.environment import Environment


def clusters(environment: Environment) -> dict[str, list[str]]:
    """cluster -> its samples"""
    found = defaultdict(list)
    for sample in environment.samples():
        found[environment.cluster(sample)].append(sample)
    assert all(0 < len(cluster) <= 255 for cluster in found)
    return dict(found)


def test_db_samples_share_the_content_of_their_table() -> None:
    environment = Database(engine="sqlite")
    found = clusters(environment)
    assert (len(environment.samples()), len(found)) == (20, 7)
    contents = [{environment._entry(sample).table.rows for sample in samples} for samples in found.values()]
    assert all(len(tables) == 1 for tables in contents)
    assert len(set.union(*contents)) == 7


def test_alfworld_games_share_the_task_in_its_room() -> None:
    found = clusters(ALFWorld())
    assert "pick_and_place_simple-Bread-None-CounterTop-1" in found
    assert Counter(map(len, found.values())) == {1: 34, 2: 1}


def test_simulbench_scripts_and_pairs_share_the_simulation_task() -> None:
    def sizes(mode: Mode) -> list[int]:
        return sorted(map(len, clusters(SimulBench(mode=mode)).values()))

    assert clusters(SimulBench())["000#Vending_Machine"] == ["000-2", "000-3", "000-4"]
    assert sizes("script") == sizes("compare")
    assert (len(sizes("script")), sum(sizes("script"))) == (12, 30)
    assert sizes("live") == [1] * 12


def test_mind2web_steps_share_the_recorded_task() -> None:
    environment = Mind2Web()
    found = clusters(environment)
    assert (len(environment.samples()), len(found)) == (302, environment._dataset.head.tasks)
    assert all(samples[0] == cluster for cluster, samples in found.items())
    texts = {environment.contest(sample).step.task for sample in found["own-00000"]}
    assert len(texts) == 1


def test_card_games_share_the_deal_both_seats_of_it() -> None:
    environment = CardGame(stages=(1, 2), repetitions=2)
    found = clusters(environment)
    assert set(found) >= {"random-stage1-0", "random-stage2-1"}
    opponents = {setup.opponent for setup in environment._setups.values()}
    assert (len(found), {len(samples) for samples in found.values()}) == (2 * 2 * len(opponents), {2})


def test_stss_tasks_share_their_template() -> None:
    assert clusters(Stss()) == {sample: [sample] for sample in Stss().samples()}
    assert clusters(Stss(templates=2)) == {
        "template-0": ["template-0-0", "template-0-1"],
        "template-1": ["template-1-0", "template-1-1"],
    }


def test_webshop_goals_share_their_product() -> None:
    environment = WebShop(goals=(190, 200))
    samples = environment.samples()
    assert [environment.cluster(sample) for sample in samples] == [environment.goal(sample).asin for sample in samples]


@pytest.mark.parametrize("kind", [KnowledgeGraph, LateralThinking, OperatingSystem])
def test_other_samples_are_clusters_of_their_own(kind: type[Environment]) -> None:
    environment = kind()
    assert clusters(environment) == {sample: [sample] for sample in environment.samples()}


def categories(environment: Environment, limit: int | None = None) -> Counter[str]:
    samples = environment.samples()
    catalogue = Catalogue(
        {sample: environment.cluster(sample) for sample in samples},
        {sample: environment.category(sample) for sample in samples},
    )
    chosen = choose("t", catalogue, None, NO_FILTERS, limit)
    return Counter(catalogue.category_of[sample] for sample in chosen.samples)


@pytest.mark.parametrize(
    ("environment", "kinds"),
    [
        (Database(engine="sqlite"), {"SELECT", "INSERT", "UPDATE"}),
        (OperatingSystem(), {"own-operations check", "own-questions check", "own-questions match"}),
        (LateralThinking(), {"zh", "en"}),
        (CardGame(), {"random-stage2", "greedy-stage2"}),
        (Stss(), {"public", "appointment", "companions", "online", "help"}),
    ],
)
def test_so_many_samples_as_there_are_categories_cover_all(environment: Environment, kinds: set[str]) -> None:
    assert set(categories(environment)) == kinds
    assert categories(environment, len(kinds)) == dict.fromkeys(kinds, 1)


@pytest.mark.parametrize("environment", [ALFWorld(), SimulBench(), KnowledgeGraph()])
def test_other_worlds_have_several_categories_too(environment: Environment) -> None:
    kinds = categories(environment)
    assert len(kinds) == 6
    assert categories(environment, 6) == dict.fromkeys(kinds, 1)


@pytest.mark.parametrize("environment", [Mind2Web(), WebShop()])
def test_the_others_have_one(environment: Environment) -> None:
    assert set(categories(environment)) == {""}
