"""Names an agent of a run, one of its tasks, or one of its trials, on the command line."""

from typing import NamedTuple


class CompareError(ValueError):
    """What is asked for can't be compared or found; the message names the fix."""


class NotComparable(CompareError):
    """What is asked for is there, and its differences, its gaps or its size forbid a comparison."""


class Reference(NamedTuple):
    """RUN, RUN:AGENT, RUN:AGENT@TASK or RUN:AGENT@TASK/SAMPLE; `latest` for RUN where the text begins with a colon."""

    run: str
    agent: str | None
    task: str | None
    sample: str | None


def parse_reference(text: str) -> Reference:
    """Split at the first colon, the first @ after it, and the first / after that; a sample may hold any character.

    Raises CompareError where a part is empty.
    """
    run, colon, rest = text.partition(":")
    agent, at, rest = rest.partition("@")
    task, slash, sample = rest.partition("/")
    for sign, part, name in ((colon, agent, "agent"), (at, task, "task"), (slash, sample, "sample")):
        if sign and not part:
            raise CompareError(f"{text!r}: no {name} after {sign!r}; write RUN:AGENT, or RUN:AGENT@TASK")
    return Reference(run or "latest", agent or None, task or None, sample or None)
