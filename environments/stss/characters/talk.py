"""A talk of two characters in turns, and its duration."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from environments.stss.characters.driver import SIDE_LIMIT
from environments.stss.hearing.slots import SpokenLine

CHARS_A_MINUTE = 240
Speaker = Callable[[Sequence[SpokenLine]], Awaitable[tuple[str, bool]]]
"""Given the talk so far, returns the next utterance and whether the talk ends with it."""


async def converse(opening: SpokenLine, first: str, speaks: Mapping[str, Speaker]) -> list[SpokenLine]:
    """The lines of a talk that begins with `opening` and a reply of `first`; each side has at most eight."""
    lines, speaker = [opening], first
    while sum(line.speaker == speaker for line in lines) < SIDE_LIMIT:
        text, end = await speaks[speaker](lines)
        lines.append(SpokenLine(speaker, text))
        if end:
            break
        speaker = next(name for name in speaks if name != speaker)
    return lines


def minutes(lines: Sequence[SpokenLine]) -> int:
    """The duration of a talk in simulated minutes."""
    return max(1, -(-sum(len(line.text) for line in lines) // CHARS_A_MINUTE))
