"""Scripted policies without memory that play the simulator: references, a weak heuristic and a random one."""

import random
from collections.abc import Sequence

from environments.simulbench.records import Exchange
from environments.simulbench.rules import wants_block
from proctor.environment import Policy
from proctor.types import Action, Message


def always(text: str) -> Policy:
    """A policy that always replies with the same text."""
    return lambda conversation, transcript: Action(content=text)


def knowing(exchanges: Sequence[Exchange]) -> Policy:
    """A policy that gives the right reply to each known request."""

    def policy(conversation: str, transcript: Sequence[Message]) -> Action:
        request = transcript[-1].content
        exchange = next((exchange for exchange in exchanges if exchange.request == request), exchanges[-1])
        return Action(content=exchange.answer)

    return policy


def naive(conversation: str, transcript: Sequence[Message]) -> Action:
    """Repeats the request, in the form that the task asks for."""
    return Action(content=_blocked(f"Here is what you asked for: {transcript[-1].content}", transcript))


def chance(sample: str, seed: int) -> Policy:
    """A policy that replies with random words of the dialogue."""

    def policy(conversation: str, transcript: Sequence[Message]) -> Action:
        dice = random.Random(f"{sample}:{seed}:{len(transcript)}")
        known = [word for message in transcript for word in message.content.split()] or ["nothing"]
        return Action(content=" ".join(dice.choice(known) for _ in range(dice.randint(1, 4))))

    return policy


def _blocked(text: str, transcript: Sequence[Message]) -> str:
    return f"```\n{text}\n```" if wants_block(transcript) else text
