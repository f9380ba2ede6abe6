"""Several models that judge the same thing: which may stand together, what they are called, how they answer."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import TypeVar

from pydantic import JsonValue

from proctor.llm.config import ChatConfig

Given = TypeVar("Given")


def check_judges(judge: ChatConfig | None, judges: Sequence[ChatConfig], defaults: Mapping[str, JsonValue]) -> None:
    """Raises ValueError where `judges` stands beside `judge`, is a single one, or has one twice.

    `defaults` is the sampling where theirs says nothing.
    """
    if not judges:
        return
    if judge is not None:
        raise ValueError("judges: `judge` is set too; write all judges into `judges`, and leave `judge` out")
    if len(judges) == 1:
        raise ValueError("judges: there is only one; write `judge:` for a single judge")
    asked = [
        (each.replicas_file, each.urls(), each.dialect, each.query, each.model, {**defaults, **each.sampling})
        for each in judges
    ]
    if any(each in asked[:place] for place, each in enumerate(asked)):
        raise ValueError("judges: two are one model with one sampling, so one reply would count twice; change one")


def judge_names(judges: Sequence[ChatConfig]) -> tuple[str, ...]:
    """The names of their models, with a number from 1 where several have the same."""
    counts, seen = Counter(each.model for each in judges), Counter[str]()
    names = []
    for each in judges:
        seen[each.model] += 1
        names.append(f"{each.model} ({seen[each.model]})" if counts[each.model] > 1 else each.model)
    return tuple(names)


async def all_answers(asked: Iterable[Awaitable[Given]]) -> list[Given]:
    """The answers of all, asked at once. Raises the first one's error, after the others have answered.

    So what the others answered is kept, and never a judgement without one of them.
    """
    found = await asyncio.gather(*asked, return_exceptions=True)
    given = []
    for each in found:
        if isinstance(each, BaseException):
            raise each
        given.append(each)
    return given


def majority(votes: Sequence[bool]) -> bool | float:
    """What most say; 0.5 where as many say yes as no."""
    yes = sum(votes)
    return 0.5 if 2 * yes == len(votes) else 2 * yes > len(votes)
