"""An environment of one's own: the agent guesses a number, and is told "higher" or "lower"."""

import hashlib
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from environments.base import Agent, AgentStopped, Environment, Policy
from environments.types import Action, Finish, FinishReason, Message, Observation, Summary

RULES = "I think of a number from 1 to {highest}. Answer with your guess alone, as digits. You have {guesses} guesses."


class Guessing(Environment):
    """Find a number by bisection. The fields are what a task file may set under `parameters`."""

    capacity: ClassVar[int] = 100
    highest: int = 100
    guesses: int = 7
    games: int = 20

    def samples(self) -> Sequence[str]:
        return [f"game-{number}" for number in range(self.games)]

    def digest(self) -> str:
        everything = Path(__file__).read_bytes() + self.model_dump_json().encode()
        return hashlib.sha256(everything).hexdigest()[:16]

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        secret, told = self._secret(sample, seed), RULES.format(highest=self.highest, guesses=self.guesses)
        for turn in range(1, self.guesses + 1):
            try:
                action = await agent.act(Observation(messages=(Message(role="user", content=told),)))
            except AgentStopped as stopped:
                return Finish(reason=stopped.reason, score=0.0, metrics={"guesses": turn - 1})
            if not re.fullmatch(r"[0-9]{1,9}", action.content.strip()):
                return Finish(reason=FinishReason.INVALID_FORMAT, score=0.0, detail={"got": action.content[:80]})
            guess = int(action.content)
            if guess == secret:
                return Finish(reason=FinishReason.COMPLETED, score=1.0, metrics={"guesses": turn})
            told = "higher" if secret > guess else "lower"
        return Finish(reason=FinishReason.TURN_LIMIT, score=0.0, metrics={"guesses": self.guesses})

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return lambda conversation, transcript: Action(content=str(self._secret(sample, seed)))

    def naive(self, sample: str, seed: int = 0) -> Policy:
        """Counts up from 1."""
        return lambda conversation, transcript: Action(content=str(_answered(transcript) + 1))

    def random(self, sample: str, seed: int = 0) -> Policy:
        def guess(conversation: str, transcript: Sequence[Message]) -> Action:
            chance = random.Random(f"{sample} {seed} {_answered(transcript)}")
            return Action(content=str(chance.randint(1, self.highest)))

        return guess

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        scores = [finish.score for finish in finishes if finish.score is not None]
        return Summary(primary="found", metrics={"found": sum(scores) / len(scores)} if scores else {})

    def _secret(self, sample: str, seed: int) -> int:
        return random.Random(f"{sample} {seed}").randint(1, self.highest)


def _answered(transcript: Sequence[Message]) -> int:
    return sum(message.role == "assistant" for message in transcript)
