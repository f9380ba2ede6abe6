"""What is played: an environment whose score depends on every answer, an agent that is a function, and what must come.

An answer that is lost, repeated, exchanged or put into the wrong turn changes all that follows, the score included.
"""

import asyncio
import contextvars
import hashlib
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from proctor.environment import Agent, Environment, EnvironmentFault
from proctor.types import Finish, FinishReason, Message, Observation, Summary
from tests.simulation.loop import Process, current

PROMPT_TOKENS, COMPLETION_TOKENS = 10, 7
"""Per message of the transcript, and per answer."""
POISON = "poison"
"""A sample that can't be played: always a fault."""
DRIFT = "drift"
"""A sample that doesn't repeat itself: each of its first plays observes something else."""
SALTS = 3
LONG = "long"
"""A sample whose second observation no model takes."""


def _hash(*parts: object) -> str:
    return hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=6).hexdigest()


def observed(seed: int, sample: str, answers: Sequence[str], salt: int) -> str:
    """What the environment says after these answers."""
    return f"{sample} {_hash(seed, sample, salt, *answers)}"


def answered(agent: str, said: Sequence[str]) -> str:
    """What an agent answers to a transcript."""
    return _hash(agent, *said)


def scored(seed: int, answers: Sequence[str]) -> float:
    """The score of all answers."""
    return int(_hash("score", seed, *answers), 16) % 101 / 100


class Truth(NamedTuple):
    """What a trial must come to, whatever happens."""

    reason: str
    score: float | None
    turns: int
    prompt_tokens: int


def truths(agent: str, sample: str, seed: int, turns: int, limit: int | None) -> list[Truth]:
    """What a trial may come to: one thing, unless its sample drifts."""
    salts = range(1 if sample != DRIFT else SALTS)
    return [truth(agent, sample, seed, turns, limit, salt=salt) for salt in salts]


def truth(agent: str, sample: str, seed: int, turns: int, limit: int | None, *, salt: int) -> Truth:
    """A trial played here, without any of Proctor's code."""
    answers: list[str] = []
    said: list[str] = []
    prompt = 0
    for turn in range(1, turns + 1):
        said.append(observed(seed, sample, answers, salt))
        if limit is not None and turn > limit:
            return Truth("turn_limit", 0.0, turn - 1, prompt)
        if sample == LONG and turn == 2:
            return Truth("context_limit", 0.0, turn - 1, prompt)
        prompt += PROMPT_TOKENS * len(said)
        answers.append(answered(agent, said))
        said.append(answers[-1])
        if sample == POISON:
            return Truth("task_error", None, turn, prompt)
    return Truth("completed", scored(seed, answers), turns, prompt)


class Witness(Protocol):
    """Whoever is told what happens in the environment."""

    def began(self, worker: Process, session: str, task: str) -> None:
        """A play began and takes a slot."""

    def plays(self, session: str) -> int:
        """How often the session's trial was played before, at most SALTS - 1."""

    def observed(self, worker: Process, session: str, text: str) -> None:
        """The environment tells the agent something."""

    def applied(self, worker: Process, session: str, turn: int, answer: str) -> None:
        """An answer reached the environment."""

    def over(self, worker: Process, session: str) -> None:
        """A play takes no more answers and begins to clean up."""

    def ended(self, worker: Process, session: str, task: str) -> None:
        """A play is over and has cleaned up after itself."""

    def work_s(self) -> float:
        """How long the environment takes for its next step."""


WITNESS: contextvars.ContextVar[Witness] = contextvars.ContextVar("witness")


class Chain(Environment):
    """Every observation follows from all answers before."""

    name: str
    turns: int
    listed: tuple[str, ...]

    def samples(self) -> Sequence[str]:
        return self.listed

    def digest(self) -> str:
        return "c0ffee"

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        task = asyncio.current_task()
        assert task is not None
        worker, session = current(), task.get_name().removeprefix("session ")
        witness = WITNESS.get()
        witness.began(worker, session, self.name)
        try:
            answers: list[str] = []
            salt = witness.plays(session) if sample == DRIFT else 0
            for turn in range(1, self.turns + 1):
                await asyncio.sleep(witness.work_s())
                text = observed(seed, sample, answers, salt)
                witness.observed(worker, session, text)
                action = await agent.act(Observation(messages=(Message(role="user", content=text),)))
                witness.applied(worker, session, turn, action.content)
                answers.append(action.content)
                if sample == POISON:
                    raise EnvironmentFault("poisoned")
            return Finish(reason=FinishReason.COMPLETED, score=scored(seed, answers))
        finally:
            witness.over(worker, session)
            try:
                await asyncio.sleep(witness.work_s())
            finally:
                witness.ended(worker, session, self.name)

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        scores = [finish.score for finish in finishes if finish.score is not None]
        return Summary(primary="mean", metrics={"mean": sum(scores) / max(1, len(scores))})
