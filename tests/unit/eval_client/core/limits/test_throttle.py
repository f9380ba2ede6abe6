"""Endpoint limits: halved by a wave of 429, growing back with success, held back while cooling."""

from eval_client.core.limits.throttle import LONGEST_COOL_S, EndpointLimit


def test_a_wave_of_429_halves_the_limit_once() -> None:
    limit = EndpointLimit(16)
    for _ in range(5):
        limit.throttled(10.0, retry_after_s=2.0)
    assert limit.capacity == 8
    assert limit.cool_for_s(10.5) == 1.5


def test_the_next_wave_halves_again_down_to_one() -> None:
    limit = EndpointLimit(4)
    for second in range(10):
        limit.throttled(float(second), None)
    assert limit.capacity == 1


def test_success_grows_the_limit_back_to_its_ceiling_and_no_further() -> None:
    limit = EndpointLimit(8)
    limit.throttled(0.0, None)
    grown = []
    for _ in range(100):
        limit.succeeded()
        grown.append(limit.capacity)
    assert grown[3] == 4
    assert 5 in grown
    assert grown[-1] == 8


def test_an_absurd_retry_after_is_bounded() -> None:
    limit = EndpointLimit(8)
    limit.throttled(0.0, retry_after_s=1e9)
    assert limit.cool_for_s(0.0) == LONGEST_COOL_S
    assert limit.cool_for_s(LONGEST_COOL_S + 1) == 0.0
