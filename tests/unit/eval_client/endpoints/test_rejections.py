"""An agent whose calls in a row are all rejected alike is stopped; one answer begins the counting anew."""

from eval_client.endpoints.endpoints import SAME_REJECTIONS, Rejections


def outcomes(calls: Rejections, *causes: str) -> list[bool]:
    """What each of these refusals decides, one call after the other."""
    decided = []
    for cause in causes:
        call = calls.begin()
        decided.append(calls.rejected(call, cause))
        calls.end(call)
    return decided


def test_the_last_of_calls_in_a_row_decides_although_ids_in_the_text_differ() -> None:
    causes = [f"status 400: no such model (request {number:x}a7)" for number in range(SAME_REJECTIONS)]
    assert outcomes(Rejections(), *causes) == [False] * (SAME_REJECTIONS - 1) + [True]


def test_one_answer_begins_the_counting_anew() -> None:
    calls = Rejections()
    outcomes(calls, *["no"] * (SAME_REJECTIONS - 1))
    calls.answered()
    assert outcomes(calls, *["no"] * SAME_REJECTIONS) == [False] * (SAME_REJECTIONS - 1) + [True]


def test_rejections_with_different_texts_are_those_of_single_requests() -> None:
    assert not any(outcomes(Rejections(), *["blocked", "too many images"] * SAME_REJECTIONS))


def test_nothing_is_decided_while_an_earlier_call_may_still_be_answered() -> None:
    calls = Rejections()
    slow = calls.begin()
    assert not any(outcomes(calls, *["no"] * SAME_REJECTIONS))
    calls.end(slow)  # cancelled, or failed in another way
    assert outcomes(calls, "no") == [True]
