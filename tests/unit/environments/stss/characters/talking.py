"""Talks of two in the shipped town, of whom the second is driven by rules."""

from collections.abc import Sequence

from environments.stss.characters.driver import Context
from environments.stss.characters.rule_driver import RuleDriver
from environments.stss.dataset import shipped
from environments.stss.hearing.slots import SpokenLine
from environments.stss.town.schedule import Commitment

TOWN = shipped().town
DRIVER = RuleDriver(TOWN, 1.0, "test")
ADA, FINN = "Ada Birch", "Finn Larsen"
INVITED = "I would like to invite you to a kite contest at Harbour Green tomorrow at 16:00."


def context(*lines: str, name: str = FINN, commitments: tuple[Commitment, ...] = ()) -> Context:
    """A talk that Clara begins and in which both speak by turns."""
    speakers = ("Clara Novak", name)
    said = tuple(SpokenLine(speakers[index % 2], text) for index, text in enumerate(lines))
    return Context(TOWN.personas[name], now=600, partner="Clara Novak", lines=said, commitments=commitments)


async def answers(*said: str, name: str = FINN, commitments: tuple[Commitment, ...] = ()) -> list[str]:
    """What the character says to each of these, in order."""
    lines: list[str] = []
    for text in said:
        lines.append(text)
        reply, _ = await DRIVER.reply(context(*lines, name=name, commitments=commitments))
        lines.append(reply)
    return lines[1::2]


async def agreed(*said: str, name: str = FINN, commitments: tuple[Commitment, ...] = ()) -> tuple[Commitment, ...]:
    """What the character promises in a talk in which these are said to it."""
    replies = await answers(*said, name=name, commitments=commitments)
    return await promised(said, replies, name=name, commitments=commitments)


async def promised(
    said: Sequence[str], replies: Sequence[str], name: str = FINN, commitments: tuple[Commitment, ...] = ()
) -> tuple[Commitment, ...]:
    """What the character promises in a talk of these lines."""
    lines = [text for pair in zip(said, replies, strict=True) for text in pair]
    return await DRIVER.after_conversation(context(*lines, name=name, commitments=commitments))
