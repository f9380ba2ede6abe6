"""Plays a session to its finish."""

from proctor.environment import Agent, AgentStopped, AgentUnavailable, Environment, Policy, ServiceAway
from proctor.session.thoughts import without_thought
from proctor.session.transcript import Transcript
from proctor.types import Action, Finish, FinishReason, Observation, ParsedAction


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


async def play_to_finish(environment: Environment, sample: str, agent: Agent, seed: int = 0) -> Finish:
    """Play one session and turn every exception but a cancellation into a finish: only here are they classified.

    `detail["thoughts"]` is the number of replies that began with a `<think>` block, absent if 0.
    """
    thinking = _Thinking(agent, drops=environment.drops_thoughts)
    try:
        finish = await environment.play(sample, thinking, seed)
    except AgentStopped as stopped:
        finish = Finish(reason=stopped.reason, score=0.0)
    except AgentUnavailable as unavailable:
        finish = Finish.fault(FinishReason.AGENT_ERROR, str(unavailable))
    except ServiceAway as away:
        finish = Finish.away(f"{type(away).__name__}: {away}")
    except Exception as error:
        finish = Finish.fault(FinishReason.TASK_ERROR, f"{type(error).__name__}: {error}")
    return thinking.with_count(finish)
