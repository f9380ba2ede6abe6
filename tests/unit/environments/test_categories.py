"""Which kinds of samples the shipped ones are of, so that a few of them are some of every kind."""

from collections import Counter

import pytest

from environments.alfworld.environment import ALFWorld
from environments.card_game.environment import CardGame
from environments.database.environment import Database
from environments.knowledge_graph.environment import KnowledgeGraph
from environments.lateral_thinking.environment import LateralThinking
from environments.mind2web.environment import Mind2Web
from environments.operating_system.environment import OperatingSystem
from environments.simulbench.environment import SimulBench
from environments.stss.environment import Stss
from environments.webshop.environment import WebShop
from eval_client.core.selection import NO_FILTERS, Catalogue, choose
from proctor.environment import Environment


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
