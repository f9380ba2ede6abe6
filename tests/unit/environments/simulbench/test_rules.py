"""The judge and user without a model, and the dialogues of our own that they know."""

from collections import Counter

import pytest

from environments.simulbench import policies, rules, shipped
from environments.simulbench.dataset import places
from environments.simulbench.records import PUBLISHED_LICENCE, Dialogue

WRONG = (
    ("Vending Machine", 0, "```\ncredit 50: waiting\n```"),
    ("Vending Machine", 1, "```\ncredit 150: waiting\n```"),
    ("Vending Machine", 2, "```\ncredit 20: nuts are stuck, nothing drops\n```"),
    ("Vending Machine", 3, "```\ncredit 0: one juice drops; 20 cents kept\n```"),
    ("Vending Machine", 3, "```\ncredit 20: no juice, too little credit; nothing returned\n```"),
    ("Lift", 0, "[7, 5, 1]"),
    ("Lift", 2, "[8, 6, 2], [1]"),
    ("Stack Calculator", 1, "```\n6 14\n```"),
    ("Stack Calculator", 2, "```\n100 6 6\n```"),
    ("Stack Calculator", 3, "```\n0\n```"),
    ("Robot on a Grid", 1, "```\nD3 west\n```"),
    ("Robot on a Grid", 2, "```\nC3 north or C3 south\n```"),
    ("Shopping List", 1, "12 eggs\n1 loaf of bread\n5 apples"),
    ("Shopping List", 3, "10 apples\n4 packs of butter\n6 eggs\n1 loaf of bread"),
    ("Greenhouse", 1, "11:00, 23 degrees, window open, then closed"),
    ("Greenhouse", 2, "15:00, 18 degrees, window closed"),
    ("Roman Numerals", 0, "```\nnot MCMXCIV but MCMXCVI\n```"),
    ("Roman Numerals", 2, "```\nMCMLXVIII\n```"),
    ("Telegraphist", 1, "... . -. -.. / .... . .-.. .--. / .--."),
    ("Telegraphist", 1, ".... -. -.. / .... . .-.. .--."),
    ("Telegraphist", 2, "TOO LATE OR TO LET"),
    ("Kitchen Scale", 2, "24 tablespoons or 12 teaspoons"),
    ("Formula Namer", 3, "O2 and CO2"),
    ("Cash Desk", 1, "```\n10 + 2 + 2 + 1\n```"),
    ("Spelling Alphabet", 3, "Romeo Echo Tango India Papa Uniform"),
)
"""Wrong replies, written by hand: act, exchange and reply. They have the form, and often all facts."""


def test_no_wrong_reply_is_rated_higher_than_the_naive_one() -> None:
    acts = {dialogue.act: dialogue for dialogue in shipped.dialogues()}
    assert {act for act, _, _ in WRONG} == acts.keys()
    for act, turn, response in WRONG:
        history = [line.message() for line in acts[act].messages[: 2 * turn + 1]]
        naive = policies.naive("main", history).content
        exchange = acts[act].exchanges[turn]
        assert rules.rate(history, response, exchange) <= rules.rate(history, naive, exchange) <= 3.0, response


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
