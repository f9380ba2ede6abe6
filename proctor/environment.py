"""The two interfaces: an environment is a coroutine that talks to an agent."""

import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, JsonValue

from proctor.digest import digest_of
from proctor.thoughts import without_thought
from proctor.types import Action, Finish, FinishReason, Message, Observation, Summary

Policy = Callable[[str, Sequence[Message]], Action]
"""An agent without memory: (conversation, its whole transcript so far) -> action."""

PolicyKind = Literal["reference", "naive", "random"]
POLICY_KINDS: tuple[PolicyKind, ...] = get_args(PolicyKind)
"""The policies that an environment may bring along, each by the name of its method."""

MEAN_SCORE = "mean_score"
"""The metric of an environment that has no summary of its own."""


class AgentStopped(Exception):
    """The agent can't go on, by its own doing; the environment scores what was reached."""

    def __init__(self, reason: FinishReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class ContextLimitExceeded(AgentStopped):
    """The transcript no longer fits the model's context."""

    def __init__(self) -> None:
        super().__init__(FinishReason.CONTEXT_LIMIT)


class AgentUnavailable(Exception):
    """The agent's endpoint failed after all retries: a fault, not a score."""


class AgentRefused(AgentUnavailable):
    """The endpoint refuses every request of this configuration (wrong key, unknown model): trying on is no use."""


class EnvironmentFault(Exception):
    """A part the environment stands on failed (container, database, judge): a fault, not a score."""


class Agent(ABC):
    """Whatever answers observations: a scripted policy, a model behind HTTP, a person."""

    @abstractmethod
    async def act(self, observation: Observation) -> Action:
        """The answer to an observation.

        Raises AgentStopped (ContextLimitExceeded among them) or AgentUnavailable.
        """


class Environment(BaseModel, ABC):
    """A class of world; an instance is a configured one, its fields are its configuration.

    A class of one's own needs `samples` and `play`; everything else has a default. Everything but `play` works without
    entering `lifespan`, and cheaply.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    capacity: ClassVar[int] = 8
    """Sessions a worker holds at once unless its task definition says otherwise."""

    revision: ClassVar[int] = 1
    """Raise it by one where the code changes what a trial sees or how it is scored: no other part of `digest` does."""

    operational: ClassVar[frozenset[str]] = frozenset()
    """Fields that shape no trial, such as a cache's folder: the default `digest` and a resumed run leave them out."""

    bad_replies: ClassVar[str | None] = None
    """The metric of a finish that counts the replies whose form was not understood; without one, a session that ended
    as `invalid_format` counts as one such reply."""

    @abstractmethod
    def samples(self) -> Sequence[str]:
        """The ids of all samples, in a stable order. Raises ValueError on broken data, naming file and field."""

    @abstractmethod
    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        """One session, from the first observation to its score. Equal seeds and actions give equal sessions.

        May let AgentStopped, AgentUnavailable and EnvironmentFault pass: `play_to_finish` classifies them.
        Cancellation must free whatever the session holds.
        """

    def digest(self) -> str:
        """Hex digits that change whenever data, prompts or anything else that shapes a trial changes.

        By default over the class's name, its `revision` and all fields but those in `operational`; a path among them
        counts by what lies there. Raises ValueError, naming the field, where a path leads nowhere.
        """
        return digest_of((type(self).__name__, self.revision, self))

    def reference(self, sample: str, seed: int = 0) -> Policy | None:
        """A policy known to solve the sample; None where there is none, and then for all samples."""
        return None

    def naive(self, sample: str, seed: int = 0) -> Policy | None:
        """A weak heuristic without the gold data, which a real model must beat; None as above."""
        return None

    def random(self, sample: str, seed: int = 0) -> Policy | None:
        """Well-formed actions chosen by chance, the floor beside every score; None as above."""
        return None

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        """Named metrics over the finishes of this task; by default their mean score.

        Faults among them are never counted as zero. `proctor.summary` adds the standard error.
        """
        scores = [finish.score for finish in finishes if finish.score is not None]
        return Summary(primary=MEAN_SCORE, metrics={MEAN_SCORE: math.fsum(scores) / len(scores)} if scores else {})

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """What all sessions of a worker share (a server, a pool), from before the first to after the last."""
        yield

    @classmethod
    def detect_parameters(cls) -> dict[str, JsonValue]:
        """The fields that make the best of this machine's parts, for the demo.

        Raises EnvironmentFault, saying why, where it can't be played here at all.
        """
        return {}

    @property
    def max_turns(self) -> int | None:
        """The most turns a session can have; None where that is not known. A class variable does where it is fixed."""
        return None

    @property
    def drops_thoughts(self) -> bool:
        """True where a closed `<think>...</think>` at the beginning of a reply is no part of it, as `play` sees it.

        So it is in the profile `strict`; the published codes took such a block for a part of the reply.
        """
        return getattr(self, "profile", None) == "strict"

    def not_comparable_because(self) -> str | None:
        """None where scores may be compared with published ones, else the reason why they may not.

        They may only where the published data, prompts, judge, temperatures, lengths and counts are in effect, and no
        profile mends them. A prompt in our own words is not the published one: see `proctor.published`.
        """
        return None

    def published_sampling(self) -> Mapping[str, JsonValue]:
        """Request fields that agents had for the published scores, such as temperature; {} where that is not known."""
        return {}

    def trusted_agents_only(self) -> bool:
        """True where the isolation is too thin for a model: only built-in agents may play."""
        return False


def policy_of(environment: Environment, kind: PolicyKind, sample: str, seed: int = 0) -> Policy | None:
    """The environment's policy of a kind."""
    match kind:
        case "reference":
            return environment.reference(sample, seed)
        case "naive":
            return environment.naive(sample, seed)
        case "random":
            return environment.random(sample, seed)


def missing_policies(environment: Environment, wanted: Iterable[PolicyKind | None]) -> tuple[PolicyKind, ...]:
    """The wanted policies that the environment does not have, as its first sample tells; () without samples.

    None, which stands for no policy, is passed over.
    """
    kinds = set(wanted)
    asked = [kind for kind in POLICY_KINDS if kind in kinds]
    return tuple(kind for sample in environment.samples()[:1] for kind in asked if _missing(environment, kind, sample))


def _missing(environment: Environment, kind: PolicyKind, sample: str) -> bool:
    try:
        return policy_of(environment, kind, sample) is None
    except Exception:
        return False  # there is one, and it fails for this sample: whoever plays by it says why


class Transcript:
    """Holds the histories of a session's conversations, on the agent's side."""

    def __init__(self) -> None:
        self._histories: dict[str, list[Message]] = {}

    def observe(self, observation: Observation) -> Sequence[Message]:
        """The conversation's whole history, with what is new in it."""
        if observation.fresh:
            self._histories.pop(observation.conversation, None)
        history = self._histories.setdefault(observation.conversation, [])
        history.extend(observation.messages)
        return history

    def answer(self, observation: Observation, action: Action) -> None:
        """Record the action that answered the observation."""
        self._histories[observation.conversation].append(action.message())


class PolicyAgent(Agent):
    """A policy with a transcript: what plays in one process, for tests and checks."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._transcript = Transcript()

    async def act(self, observation: Observation) -> Action:
        action = self._policy(observation.conversation, tuple(self._transcript.observe(observation)))
        self._transcript.answer(observation, action)
        return action


class _Thinking(Agent):
    """Counts the replies that begin with a thought, and takes it away where it is to be dropped."""

    def __init__(self, agent: Agent, *, drops: bool) -> None:
        self._agent, self._drops = agent, drops
        self.thoughts = 0

    async def act(self, observation: Observation) -> Action:
        action = await self._agent.act(observation)
        said = without_thought(action.content)
        if said == action.content:
            return action
        self.thoughts += 1
        return action.model_copy(update={"content": said}) if self._drops else action

    def noted(self, finish: Finish) -> Finish:
        """The finish, with how many replies began with a thought."""
        if not self.thoughts:
            return finish
        return finish.model_copy(update={"detail": {**finish.detail, "thoughts": self.thoughts}})


async def play_to_finish(environment: Environment, sample: str, agent: Agent, seed: int = 0) -> Finish:
    """One session whose every failure is a finish: the one place where failures of `play` are classified.

    `detail["thoughts"]` says how many replies began with a `<think>` block, where any did.
    """
    thinking = _Thinking(agent, drops=environment.drops_thoughts)
    try:
        finish = await environment.play(sample, thinking, seed)
    except AgentStopped as stopped:
        finish = Finish(reason=stopped.reason, score=0.0)
    except AgentUnavailable as unavailable:
        finish = Finish.fault(FinishReason.AGENT_ERROR, str(unavailable))
    except Exception as error:
        finish = Finish.fault(FinishReason.TASK_ERROR, f"{type(error).__name__}: {error}")
    return thinking.noted(finish)
