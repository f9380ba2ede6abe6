"""The judge and user without a model, and the dialogues of our own that they know."""

from collections import Counter

import pytest

from environments.simulbench import policies, rules, shipped
from environments.simulbench.dataset import places
from environments.simulbench.records import PUBLISHED_LICENCE, Dialogue


def rated(act: str, turn: int, response: str) -> tuple[float, float]:
    """What a reply to an exchange of a shipped dialogue is worth, and the naive one, which is at most 3; for tables."""
    (dialogue,) = (each for each in shipped.dialogues() if each.act == act)
    history = [line.message() for line in dialogue.messages[: 2 * turn + 1]]
    naive, exchange = policies.naive("main", history).content, dialogue.exchanges[turn]
    return rules.rate(history, response, exchange), rules.rate(history, naive, exchange)


def test_what_is_shipped_is_enough_and_over_both_kinds() -> None:
    scripts = shipped.scripts()
    assert len(scripts) >= 24
    assert min(Counter(script.type for script in scripts).values()) >= 12
    assert set(places(scripts).values()) == {"lastonly", "firstchan", "subseqchan"}
    assert {script.licence for script in scripts} == {"Apache-2.0: Proctor"} != {PUBLISHED_LICENCE}
    used = {exchange.strategy for task in shipped.tasks() for exchange in task.exchanges[1:]}
    assert used == {"dissatisfaction", "next_step", "harder", "other"}


@pytest.mark.parametrize("dialogue", shipped.dialogues(), ids=lambda dialogue: dialogue.act)
def test_every_right_reply_that_is_shipped_is_rated_10_and_the_naive_one_far_below(dialogue: Dialogue) -> None:
    for turn, exchange in enumerate(dialogue.exchanges):
        history = [line.message() for line in dialogue.messages[: 2 * turn + 1]]
        assert history[-1].content == exchange.request
        assert rules.rate(history, exchange.answer, exchange) == 10.0
        assert rules.rate(history, policies.naive("main", history).content, exchange) < 7


def test_a_task_without_right_replies_is_gone_on_with_by_the_seed() -> None:
    task = shipped.tasks()[0].model_copy(update={"exchanges": ()})
    asked = [[rules.follow_up(task, turn, seed) for turn in (2, 3, 4)] for seed in range(30)]
    assert asked[7] == [rules.follow_up(task, turn, 7) for turn in (2, 3, 4)]
    assert {strategy for three in asked for strategy, _ in three} == {
        "dissatisfaction",
        "next_step",
        "harder",
        "other",
    }
