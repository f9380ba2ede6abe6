"""An agent whose calls in a row are all rejected alike is stopped; one answer begins the counting anew."""

from eval_client.endpoints.limited_model import SAME_REJECTIONS, Rejections
from task_server.client.client import Call


class Agent:
    """An agent whose calls are all rejected."""

    def __init__(self) -> None:
        self.calls = {0: Call("another agent", 0.0)}
        self.rejections = Rejections("a", self.calls)

    def outcomes(self, *causes: str) -> list[bool]:
        """What each of these refusals decides, one call after the other."""
        return [self._decides(cause) for cause in causes]

    def _decides(self, cause: str) -> bool:
        call = self.calls[-1] = Call("a", 0.0)
        decided = self.rejections.rejected(call, cause)
        del self.calls[-1]
        return decided


ALL_BUT_ONE = ["no"] * (SAME_REJECTIONS - 1)


def test_the_last_of_calls_in_a_row_decides_although_ids_in_the_text_differ() -> None:
    causes = [f"status 400: no such model (request {number:x}a7)" for number in range(SAME_REJECTIONS)]
    assert Agent().outcomes(*causes) == [False] * len(ALL_BUT_ONE) + [True]


def test_one_answer_begins_the_counting_anew() -> None:
    agent = Agent()
    agent.outcomes(*ALL_BUT_ONE)
    agent.rejections.count = 0
    assert agent.outcomes(*ALL_BUT_ONE, "no") == [False] * len(ALL_BUT_ONE) + [True]


def test_rejections_with_different_texts_are_those_of_single_requests() -> None:
    assert not any(Agent().outcomes(*["blocked", "too many images"] * SAME_REJECTIONS))


def test_nothing_is_decided_while_an_earlier_call_may_still_be_answered() -> None:
    agent = Agent()
    agent.calls[1] = Call("a", 0.0)
    assert not any(agent.outcomes(*ALL_BUT_ONE, "no"))
    del agent.calls[1]  # cancelled, or failed in another way
    assert agent.outcomes("no") == [True]
