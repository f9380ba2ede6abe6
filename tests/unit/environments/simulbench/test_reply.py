"""What users and judges say, as requests, ratings and verdicts; whatever they say, nothing else is raised."""

import json
import math
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from environments.simulbench import reply
from environments.simulbench.reply import UnreadableAnswer

PROFILES: tuple[reply.Profile, ...] = ("strict", "compat")
USER = {"user": {"strategy": "harder", "request": " Now with 12 digits. "}}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(USER),
        f"```json\n{json.dumps(USER, indent=2)}\n```",
        f"```\n{json.dumps(USER)}\n```",
        f"Here it is:\n```JSON\n{json.dumps(USER)}\n```\nI hope that helps.",
        f"Sure! {json.dumps(USER)} That is it.",
        json.dumps({"user": {**USER["user"], "reason": 1}, "more": []}),
        f"I might say {{this}} or {{}}: {json.dumps(USER)} {{as you like}}",
        f"{json.dumps(USER)}\nOr rather: {json.dumps({'user': {'strategy': 1, 'request': 'x'}})}",
        f'{{"answer": {json.dumps(USER)}}}',
    ],
)
def test_a_users_json_is_found_plain_fenced_or_among_words(text: str) -> None:
    request = reply.user_request(text)
    assert (request.strategy, request.request) == ("harder", "Now with 12 digits.")


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("dissatisfaction", "dissatisfaction"),
        ("Express dissatisfaction", "dissatisfaction"),
        ("next_step", "next_step"),
        ("related next step", "next_step"),
        ("rarer or harder request", "harder"),
        ("1", "dissatisfaction"),
        ("2", "next_step"),
        (3, "harder"),
        (4, "other"),
        (3.0, "harder"),
        ("[2]", "next_step"),
        ("Strategy 3", "harder"),
        ("strategy: 1 (point out an error)", "dissatisfaction"),
        ("2. A request related to the ones before, and harder", "next_step"),
        ("dissatisfaction with 3 of them", "dissatisfaction"),
        ("the one with number 3", "harder"),
        ("30", "other"),
        (None, "other"),
        (["others"], "other"),
    ],
)
def test_a_strategy_is_known_by_any_word_of_its_name(name: object, strategy: str) -> None:
    assert reply.user_request(json.dumps({"user": {"strategy": name, "request": "x"}})).strategy == strategy


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no JSON"),
        ("Go on!", "no JSON"),
        ('{"user": {"strategy": "other", "request": "x"', "no JSON"),
        ('{"strategy": "other", "request": "x"}', "user: Field required"),
        ('{"user": "x"}', "user: Input should be"),
        ('{"user": "x"} {"other": {"a": 1}}', "user: Input should be"),
        ('{"user": {"strategy": "other"}}', "user.request holds no text"),
        ('{"user": {"request": "  "}}', "user.request holds no text"),
        ('{"user": {"request": 7}}', "user.request holds no text"),
        (json.dumps({"user": {"request": "x" * 8_001}}), "more than 8000 characters"),
        ('{"a":' * 100_000, "no JSON"),
        ('{"user": {"request": "\\ud800"}}', "user.request holds half a character"),
    ],
)
def test_a_user_who_asks_nothing_is_unreadable(text: str, problem: str) -> None:
    with pytest.raises(UnreadableAnswer, match=problem):
        reply.user_request(text)


@pytest.mark.parametrize("fences", [reply.MAX_FENCES - 1, reply.MAX_FENCES])
def test_only_the_first_fences_are_looked_into(fences: int) -> None:
    text = "{ ```\n```" * fences + f"```json\n{json.dumps(USER)}\n``` }}"
    if fences < reply.MAX_FENCES:
        assert reply.user_request(text).strategy == "harder"
    else:
        with pytest.raises(UnreadableAnswer):
            reply.user_request(text)


def test_a_fence_that_is_never_closed_is_read_at_once() -> None:
    with pytest.raises(UnreadableAnswer, match="no JSON"):
        reply.user_request("```" + "\n" * 1_000_000)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ('"a"', "a"),
        ('""a""', '"a"'),
        ('"a', "a"),
        ('I said "a"', 'I said "a"'),
        ("'a'", "'a'"),
        ('"', ""),
        ("", ""),
        (' "a"\n', "a"),
        ("\n a ", "a"),
    ],
)
def test_quotes_around_a_text_are_removed_as_published(said: str, text: str) -> None:
    assert reply.unquoted(said) == text


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


def test_what_a_judge_thought_first_is_no_rating_of_its_but_in_compat() -> None:
    text = "<think>Rating: [[2]], or [[B]]? {}</think>\n[[A]] Rating: [[9]]"
    assert (reply.rating(text, "strict"), reply.rating(text, "compat")) == (9.0, 2.0)
    assert reply.verdict("<think>[[B]]</think> [[A]]", "strict") == "A"
    assert reply.verdict("<think>[[A]]</think> [[B]]", "compat") == "A"
    assert (
        reply.user_request('<think>{"user": 1}</think>{"user": {"strategy": "2", "request": "More."}}').request
        == "More."
    )
