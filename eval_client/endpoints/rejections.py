"""Pure: whether an agent's calls are all rejected alike, as by an endpoint that can't answer any of them."""

import re

SAME_REJECTIONS = 8
_VARYING = re.compile(r"[\w-]*\d[\w-]*")
"""Numbers and ids, which differ between rejections that say the same."""


class Rejections:
    """Counts an agent's rejected calls in a row that say the same, without an answer between.

    A rejection decides only once no earlier call is under way: that one may still be answered.
    """

    def __init__(self) -> None:
        self._calls = 0
        self._under_way: set[int] = set()
        self._rejected = 0
        self._cause = ""

    def begin(self) -> int:
        """Record that a call begins; its number."""
        self._calls += 1
        self._under_way.add(self._calls)
        return self._calls

    def end(self, call: int) -> None:
        """Record that a call is over, however it ended."""
        self._under_way.discard(call)

    def answered(self) -> None:
        """Record an answer."""
        self._rejected = 0

    def rejected(self, call: int, cause: str) -> bool:
        """Record a call that was rejected for good; whether all calls of the agent are."""
        same = _VARYING.sub("#", cause)
        self._rejected = self._rejected + 1 if same == self._cause else 1
        self._cause = same
        return self._rejected >= SAME_REJECTIONS and min(self._under_way) >= call
