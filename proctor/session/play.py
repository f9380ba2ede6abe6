"""Plays a session to its finish."""

import asyncio
import random
import time

from proctor.environment import (
    Agent,
    AgentStopped,
    AgentUnavailable,
    Environment,
    EnvironmentFault,
    Policy,
    ServiceAway,
)
from proctor.retry import RetryPolicy
from proctor.session.thoughts import without_thought
from proctor.session.transcript import Transcript
from proctor.types import Action, Finish, FinishReason, Observation, ParsedAction

_RETURNS = RetryPolicy(base_s=0.5, cap_s=5.0)
"""When a session whose service was away is played again."""


class PolicyAgent(Agent):
    """Plays a policy in this process and keeps its transcript, for tests and checks."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._transcript = Transcript()

    async def act(self, observation: Observation) -> Action:
        action = self._policy(observation.conversation, tuple(self._transcript.observe(observation)))
        self._transcript.answer(observation, action)
        return action


def read_answer(environment: Environment, action: Action) -> ParsedAction | None:
    """How the environment reads an answer as the agent gave it, which may begin with a `<think>` block."""
    if environment.drops_thoughts:
        action = action.model_copy(update={"content": without_thought(action.content)})
    return environment.parse_action(action)


class _Thinking(Agent):
    """Counts the replies that begin with a `<think>` block; with `drops`, removes the block."""

    def __init__(self, agent: Agent, *, drops: bool) -> None:
        self._agent, self._drops = agent, drops
        self.thoughts = 0

    async def act(self, observation: Observation) -> Action:
        action = (await self._agent.act(observation)).well_formed()
        reply = without_thought(action.content)
        if reply == action.content:
            return action
        self.thoughts += 1
        return action.model_copy(update={"content": reply}) if self._drops else action

    def with_count(self, finish: Finish) -> Finish:
        """The finish with the count under "thoughts" of its detail, unless it is 0."""
        if not self.thoughts:
            return finish
        return finish.model_copy(update={"detail": {**finish.detail, "thoughts": self.thoughts}})


class _Recalling(Agent):
    """Keeps the answers of an agent, to give them again while a session is played anew."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._kept: list[tuple[Observation, Action]] = []
        self._played = 0

    @property
    def turns(self) -> int:
        """How many answers the agent has given."""
        return len(self._kept)

    def rewind(self) -> None:
        """The session begins anew."""
        self._played = 0

    async def act(self, observation: Observation) -> Action:
        if self._played == self.turns:
            self._kept.append((observation, await self._agent.act(observation)))
        before, action = self._kept[self._played]
        self._played += 1
        if before != observation:
            raise EnvironmentFault(f"turn {self._played} observed something else when it was played again")
        return action


async def _play(environment: Environment, sample: str, agent: Agent, seed: int, patience_s: float) -> Finish:
    """Play a session, and play it again where a service was away, until that is away for too long at one turn."""
    if not patience_s:
        return await environment.play(sample, agent, seed)
    recalling, reached, away_since, tries = _Recalling(agent), -1, 0.0, 0
    while True:
        try:
            return await environment.play(sample, recalling, seed)
        except ServiceAway as away:
            now = time.monotonic()
            if recalling.turns > reached:
                reached, away_since, tries = recalling.turns, now, 0
            tries += 1
            pause_s = _RETURNS.wait_s(tries, random.random())
            if pause_s is None or now + pause_s - away_since > patience_s:
                raise EnvironmentFault(f"waited {now - away_since:.0f} s for a service: {away}") from away
            await asyncio.sleep(pause_s)
            recalling.rewind()


async def play_to_finish(
    environment: Environment, sample: str, agent: Agent, seed: int = 0, patience_s: float = 0.0
) -> Finish:
    """Play one session and turn every exception but a cancellation into a finish: only here are they classified.

    A service of the environment that is away is waited for, up to `patience_s` seconds without a new turn; the session
    is then played again up to where it was, without its agent.

    `detail["thoughts"]` is the number of replies that began with a `<think>` block, absent if 0.
    """
    thinking = _Thinking(agent, drops=environment.drops_thoughts)
    try:
        finish = await _play(environment, sample, thinking, seed, patience_s)
    except AgentStopped as stopped:
        finish = Finish(reason=stopped.reason, score=0.0)
    except AgentUnavailable as unavailable:
        finish = Finish.fault(FinishReason.AGENT_ERROR, str(unavailable))
    except Exception as error:
        finish = Finish.fault(FinishReason.TASK_ERROR, f"{type(error).__name__}: {error}")
    return thinking.with_count(finish)
