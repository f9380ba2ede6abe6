"""When a failed request is retried."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.retry import RetryPolicy, retry_after_s

POLICY = RetryPolicy(max_tries=6, max_retry_s=100)


def wait(tries: int, chance: float, *, elapsed_s: float = 0, retry_after_s: float | None = None) -> float | None:
    return POLICY.wait_s(tries, chance, elapsed_s=elapsed_s, retry_after_s=retry_after_s)


def test_the_widest_wait_doubles_up_to_the_cap() -> None:
    waits = [RetryPolicy().wait_s(n, 1.0) for n in (1, 2, 3, 6, 7, 8, 99)]
    assert waits == [0.5, 1, 2, 16, 30, 30, 30]


@pytest.mark.parametrize(
    ("tries", "chance", "limits", "wait_s"),
    [
        (3, 0.0, {}, 0.0),
        (3, 0.25, {}, 0.5),
        (5, 0.0, {}, 0.0),
        (6, 0.0, {}, None),
        (1, 0.0, {"elapsed_s": 100}, 0.0),
        (1, 0.0, {"elapsed_s": 100.1}, None),
        (1, 0.0, {"retry_after_s": 101}, None),
    ],
    ids=["a herd spreads down to zero", "full jitter", "the last but one", "the last", "fits", "too late", "too long"],
)
def test_waits(tries: int, chance: float, limits: dict[str, float], wait_s: float | None) -> None:
    assert wait(tries, chance, **limits) == wait_s


@given(
    tries=st.integers(1, 10_000),
    chance=st.floats(0, 1, exclude_max=True),
    elapsed_s=st.floats(0, 1000),
    asked_s=st.none() | st.floats(0, 1000),
)
def test_a_wait_never_undercuts_the_endpoint_and_never_outlasts_the_policy(
    tries: int, chance: float, elapsed_s: float, asked_s: float | None
) -> None:
    wait_s = wait(tries, chance, elapsed_s=elapsed_s, retry_after_s=asked_s)
    if wait_s is not None:
        assert tries < POLICY.max_tries
        assert (asked_s or 0) <= wait_s <= POLICY.max_retry_s - elapsed_s + 1e-9


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}, 37.0),
        ({"retry-after": "Sun, 06 Nov 1994 08:48:37 GMT"}, 0.0),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:37"}, 37.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"llm_provider-retry-after": "7"}, 7.0),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}, 360.0),
        (
            {
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-reset-tokens": "6m0s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-remaining-tokens": "900",
            },
            1.0,
        ),
        ({"x-ratelimit-reset-tokens": "59.56s"}, 59.56),
        ({"x-ratelimit-reset-tokens": "120ms"}, 0.12),
        ({"x-ratelimit-reset-requests": "1994-11-06T08:49:37Z"}, 37.0),
        ({"x-ratelimit-reset-requests": "784111777"}, 784111777.0 - 784111740.0),
        ({"llm_provider-x-ratelimit-reset-requests": "2s"}, 2.0),
        ({"x-ratelimit-reset-tokens-minute": "11.5", "x-ratelimit-remaining-tokens-minute": "0"}, 11.5),
        ({"x-ratelimit-reset": "784111752000", "x-ratelimit-remaining": "0"}, 12.0),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, now=784111740.0) == seconds


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Rate limit reached ... Please try again in 20s. Visit", 20.0),
        ("Please try again in 6m0s.", 360.0),
        ("Please try again in 1.335s.", 1.335),
        ("Please retry in 41.8s", 41.8),
        ("please wait 30 seconds before", 30.0),
        ("try again in 486ms", 0.486),
        ("max RPM: 3, please try again after 1 seconds", 1.0),
        ("Too many requests", None),
        ("a limit of 20s applies", None),
    ],
)
def test_a_wait_is_read_from_the_words_of_a_429(message: str, seconds: float | None) -> None:
    assert retry_after_s({}, now=0.0, message=message) == pytest.approx(seconds)
    assert retry_after_s({"retry-after": "3"}, now=0.0, message=message) == 3.0
