"""When a trial that met a fault is tried again."""

from eval_client.core.retry import AttemptPolicy


def test_attempts_are_bounded() -> None:
    policy = AttemptPolicy(3)
    assert policy.wait_s(1, 0.5) is not None
    assert policy.wait_s(2, 0.5) is not None
    assert policy.wait_s(3, 0.5) is None


def test_waits_double_up_to_a_bound_with_full_jitter() -> None:
    policy = AttemptPolicy(100)
    assert [policy.wait_s(made, 1.0) for made in (1, 2, 3, 4)] == [1.0, 2.0, 4.0, 8.0]
    assert policy.wait_s(50, 1.0) == 30
    assert policy.wait_s(50, 0.0) == 0.0
