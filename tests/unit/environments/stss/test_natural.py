"""The town understands an ideal performer that speaks as people do."""

import pytest

from environments.stss.data.repairs import repair
from environments.stss.dataset import shipped
from environments.stss.environment import Stss
from proctor.session.play import PolicyAgent, play_to_finish
from tests.unit.environments.stss.natural import Wish, asks, natural

SEEDS = range(3)


def test_natural_asks_are_the_people_s_own_words_with_the_task_s_slots() -> None:
    wish = Wish("public", "kite party", "Gull Bakery", 17 * 60)
    for needs in ((), ("activity",), ("start",), ("place",)):
        found = asks(wish, needs)
        assert len(found) >= 3
        assert all("kite party" in text for text in found if not needs)


@pytest.mark.thorough
async def test_an_ideal_performer_that_speaks_naturally_reaches_most_of_the_robot_s_score() -> None:
    """The aim of 0.85 of the robot's score."""
    environment = Stss()
    robot = spoken = 0.0
    for sample in environment.samples():
        task = repair(environment.task(sample), shipped().town).task
        policy, script = environment.reference(sample), environment.script(sample)
        robot += len(SEEDS) * ((await play_to_finish(environment, sample, PolicyAgent(policy))).score or 0.0)
        for seed in SEEDS:
            agent = PolicyAgent(natural(policy, task, script, seed))
            spoken += (await play_to_finish(environment, sample, agent)).score or 0.0
    assert spoken / robot >= 0.85
