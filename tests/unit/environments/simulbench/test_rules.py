"""The judge and user without a model, and the dialogues of our own that they know."""

from collections import Counter

import pytest

from environments.simulbench import policies, rules, shipped
from environments.simulbench.dataset import places
from environments.simulbench.records import PUBLISHED_LICENCE, Dialogue, Exchange
from proctor.types import Message

TASK = "Be a kettle. Reply in a code block. The first thing: it is switched on."
HISTORY = (
    Message(role="user", content=TASK),
    Message(role="assistant", content="```\nwater warms up slowly: 21 degrees\n```"),
    Message(role="user", content="Another minute passes while somebody opens the lid."),
)
GOOD = "```\nlid open, minute passes, another ten degrees, somebody opens steam valve: 35 hot\n```"
EXCHANGE = Exchange(request="x", answer="```\nthe lid is open, 35 hot\n```", facts=("open", "35 hot"))
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
    assert rules.likeness(HISTORY, response) == 9 - sum(rules.WEIGHTS[name] for name in lost)


@pytest.mark.parametrize(
    ("response", "rating"),
    [
        ("```\nthe lid is open, 35 hot\n```", 10.0),
        ("```\nOPEN  35 hot\n```", 10.0),
        ("lid open, 35 hot", 9.0),
        ("```\n35 hot\n```", 3.0),
        ("```\n35 hot, open\n```", 3.0),
        ("```\nopen, 135 hot\n```", 3.0),
        ("```\nopen, not 35 hot\n```", 3.0),
        ("open", 2.0),
        ("As an AI I say: open", 1.0),
    ],
)
def test_the_right_reply_or_a_part_of_it_with_all_facts_is_right(response: str, rating: float) -> None:
    assert rules.rate(HISTORY, response, EXCHANGE) == rating


@pytest.mark.parametrize("response", [GOOD, GOOD.strip("`"), "no", "As an AI"])
def test_where_no_right_reply_is_known_none_is_rated_higher_than_a_wrong_one(response: str) -> None:
    assert rules.rate(HISTORY, response, None) <= rules.rate(HISTORY, "```\nwrong\n```", EXCHANGE) == 3.0


def test_no_wrong_reply_is_rated_higher_than_the_naive_one() -> None:
    acts = {dialogue.act: dialogue for dialogue in shipped.dialogues()}
    assert {act for act, _, _ in WRONG} == acts.keys()
    for act, turn, response in WRONG:
        history = [line.message() for line in acts[act].messages[: 2 * turn + 1]]
        naive = policies.naive("main", history).content
        exchange = acts[act].exchanges[turn]
        assert rules.rate(history, response, exchange) <= rules.rate(history, naive, exchange) <= 3.0, response


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
