"""The judge and user without a model, and the dialogues of our own that they know."""

from collections import Counter

import pytest

from environments.simulbench import policies, shipped
from environments.simulbench.dataset import places
from environments.simulbench.judges import rules
from environments.simulbench.records import PUBLISHED_LICENCE, Dialogue, Exchange
from proctor.types import Message

TASK = "Be a kettle. Reply in a code block. The first thing: it is switched on."
HISTORY = (
    Message(role="user", content=TASK),
    Message(role="assistant", content="```\nwater warms up slowly: 21 degrees\n```"),
    Message(role="user", content="Another minute passes while somebody opens the lid."),
)
GOOD = "```\nlid open, minute passes, another ten degrees, somebody opens steam valve: 35 hot\n```"
EXCHANGE = Exchange(request="x", answer="x", facts=("35 hot", "open"))


@pytest.mark.parametrize(
    ("response", "lost"),
    [
        (GOOD, set()),
        (GOOD.strip("`"), {"in its form"}),
        ("As an AI I am no kettle. " + GOOD, {"in its role", "in its form"}),
        ("```\nAnother minute passes while somebody opens the lid.\n```", {"of its own"}),
        ("```\nentirely beside every point that was raised\n```", {"about the request"}),
        (GOOD.replace("hot", "hot " + "hotter still " * 40), {"of fitting length"}),
        ("no", {"in its form", "about the request", "of fitting length"}),
    ],
)
def test_a_rating_falls_with_each_mark_that_is_missing(response: str, lost: set[str]) -> None:
    assert {name for name, met in rules.marks(HISTORY, response).items() if not met} == lost
    weight = sum(rules.WEIGHTS[name] for name in lost)
    assert rules.rate(HISTORY, response, None) == pytest.approx(10 - 9 * weight / 9, abs=0.05)


@pytest.mark.parametrize(
    ("response", "rating"),
    [("```\n35 hot, open\n```", 10.0), ("```\n35  HOT\n```", 6.5), ("35 hot, open", 9.0), ("```\n135 hot\n```", 3.0)],
)
def test_with_facts_they_decide(response: str, rating: float) -> None:
    assert rules.rate(HISTORY, response, EXCHANGE) == rating


def test_blank_is_the_worst() -> None:
    assert [rules.rate(HISTORY, blank, exchange) for blank in ("", " \n") for exchange in (None, EXCHANGE)] == [1.0] * 4


def test_the_better_of_two_and_a_tie() -> None:
    assert [rules.better(HISTORY, *two, None) for two in ((GOOD, "no"), ("no", GOOD), (GOOD, GOOD))] == [1, -1, 0]


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


def test_the_first_bad_reply_of_an_unknown_dialogue_is_challenging() -> None:
    dialogue = shipped.dialogues()[4].model_copy(update={"challenging": None, "exchanges": ()})
    lines = list(dialogue.messages)
    good = "Here is something new: carrots, pears, onions, honey, rice, flour, sugar, salt, pepper, beans, "
    for at in (1, 3, 5, 7):
        lines[at] = lines[at].model_copy(update={"content": good + lines[at - 1].content[:60]})
    assert rules.challenging(dialogue.model_copy(update={"messages": tuple(lines)})) == 0
    lines[5] = lines[5].model_copy(update={"content": "I'm sorry, I can't."})
    assert rules.challenging(dialogue.model_copy(update={"messages": tuple(lines)})) == 3
