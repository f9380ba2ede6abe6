"""The agent that a check plays with."""

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence

from proctor.conformance.garbage import garbage
from proctor.environment import Agent, Policy
from proctor.session.play import PolicyAgent
from proctor.types import Action, Message, Observation, Tool

Then = Callable[[Observation], Awaitable[Action]]
"""Answers observations that a policy is not asked about."""


async def _never(_: Observation) -> Action:
    """For a policy that is followed to the end."""
    raise AssertionError("a policy without limit is never left")


class Player(Agent):
    """Follows a policy for `acts` acts, by default to the end, then calls `then`; records what it observes."""

    def __init__(self, policy: Policy, acts: float = math.inf, then: Then = _never) -> None:
        self._agent = PolicyAgent(policy)
        self._acts = acts
        self._then = then
        self._calls: dict[str, list[str]] = {}
        self.seen: list[str] = []
        """The digests of the observations."""
        self.offered: tuple[Tool, ...] = ()
        """The functions that the latest observation offers."""
        self.unanswered: str | None = None
        """How an observation answers calls otherwise than once each; None where none does."""

    async def act(self, observation: Observation) -> Action:
        await asyncio.sleep(0)  # so that the deadline ends a session that never ends by itself
        self._check_answers(observation)
        self.seen.append(observation.digest())
        self.offered = observation.tools
        action = await (self._agent.act if len(self.seen) <= self._acts else self._then)(observation)
        if observation.tools:
            self._calls[observation.conversation] = [call.id for call in action.tool_calls]
        return action

    def _check_answers(self, observation: Observation) -> None:
        made = self._calls.pop(observation.conversation, [])
        problem = _unanswered([] if observation.fresh else made, observation.messages)
        if problem is not None and self.unanswered is None:
            self.unanswered = f"the observation of turn {len(self.seen) + 1} {problem}"


def _unanswered(waiting: Sequence[str], messages: Sequence[Message]) -> str | None:
    """What is wrong with the answers to calls: endpoints want one tool message for each, before any other message."""
    left = list(waiting)
    for message in messages:
        if message.role != "tool":
            if left:
                break
            left += [call.id for call in message.tool_calls]
        elif message.tool_call_id in left:
            left.remove(message.tool_call_id)
        else:
            return f"answers a call that nobody made: {message.tool_call_id!r}"
    return f"does not answer the calls {left}: each needs one tool message, before any other message" if left else None


def raising(error: Exception) -> Then:
    """Fails."""

    async def then(_: Observation) -> Action:
        raise error

    return then


def replying_garbage(numbers: Iterable[int]) -> Then:
    """Gives the kinds of garbage with these numbers, over and over."""
    cycle = itertools.cycle(numbers)

    async def then(observation: Observation) -> Action:
        kinds = garbage(observation.tools)
        return kinds[next(cycle) % len(kinds)]

    return then
