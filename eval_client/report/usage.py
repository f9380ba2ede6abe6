"""What a trial typically needs: medians of the reference policies on the shipped samples."""

import functools
from pathlib import Path

from pydantic import TypeAdapter

from proctor.types import Value

FILE = Path(__file__).with_name("usage.json")
"""environment -> protocol -> its usage"""


class TrialUsage(Value):
    """Calls and tokens of one trial; a token is four ASCII characters, or one of another kind."""

    calls: int
    prompt_tokens: int
    """Over all calls: each of them sends the whole conversation again."""
    completion_tokens: int

    def at_most(self, calls: int | None) -> "TrialUsage":
        """The usage where a trial may have no more calls: the share of it that they are."""
        if calls is None or calls >= self.calls:
            return self
        share = calls / self.calls
        return TrialUsage(
            calls=calls,
            prompt_tokens=round(self.prompt_tokens * share),
            completion_tokens=round(self.completion_tokens * share),
        )


def typical_usage(environment: str, protocol: str) -> TrialUsage | None:
    """The typical usage of a trial in an environment that Proctor ships, with its default parameters; else None."""
    return _table().get(environment, {}).get(protocol)


@functools.cache
def _table() -> dict[str, dict[str, TrialUsage]]:
    return TypeAdapter(dict[str, dict[str, TrialUsage]]).validate_json(FILE.read_bytes())
