"""The judge and user without a model, the dialogues that they know, and what any judge or user says."""

import math
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from environments.simulbench import policies, reply, rules, shipped
from environments.simulbench.dataset import places
from environments.simulbench.records import PUBLISHED_LICENCE, Dialogue
from environments.simulbench.reply import UnreadableAnswer


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


PROFILES: tuple[reply.Profile, ...] = ("strict", "compat")


def test_a_fence_that_is_never_closed_is_read_at_once() -> None:
    with pytest.raises(UnreadableAnswer, match="no JSON"):
        reply.user_request("```" + "\n" * 1_000_000)


@pytest.mark.parametrize("piece", ["rating ", "rating: (", "[[", "rating is [[", "\\\\[", "9", "[[9"])
def test_a_long_answer_is_read_in_time_that_grows_with_its_length(piece: str) -> None:
    for profile in PROFILES:
        with pytest.raises(UnreadableAnswer):
            reply.rating("[[" + piece * (100_000 // len(piece)), profile)


@given(st.text(alphabet=st.sampled_from('[]{}"`0123456789.ABC:userating \n\x00雪'), max_size=60))
@example("[[٣]]")
@example("[[1e400]]")
@example("NaN")
@example("[[" + "9" * 400 + "]]")
@example('{"user": {"request": "\\ud800"}}')
def test_any_text_is_read_within_range_or_unreadable(text: str) -> None:
    assert readable(lambda: 1 <= reply.rating(text, "strict") <= 10)
    assert readable(lambda: 0 <= reply.rating(text, "compat") < math.inf)
    assert readable(lambda: reply.verdict(text, "strict") in "ABC")
    assert readable(lambda: reply.verdict(text, "compat") in "ABC")
    assert readable(lambda: reply.user_request(text).request != "")


def readable(holds: Callable[[], bool]) -> bool:
    """Whether it holds of what was read, if anything could be."""
    try:
        return holds()
    except UnreadableAnswer:
        return True
