"""An environment of one's own: the agent guesses a number, and is told "higher" or "lower"."""

import random
import re
from collections.abc import Sequence

from proctor import Action, Agent, Environment, Finish, FinishReason, Message, Observation, Policy

RULES = "I think of a number from 1 to {}. Answer with your guess alone, as digits. You have {} guesses."


class Guessing(Environment):
    """Find a number by bisection. The fields are what a task file may set under `parameters`."""

    highest: int = 100
    guesses: int = 7
    games: int = 20

    def samples(self) -> Sequence[str]:
        return [f"game-{number}" for number in range(self.games)]

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        secret, told = self._secret(sample, seed), RULES.format(self.highest, self.guesses)
        for _ in range(self.guesses):
            action = await agent.act(Observation(messages=(Message(role="user", content=told),)))
            if not re.fullmatch(r"[0-9]{1,9}", action.content.strip()):
                return Finish(reason=FinishReason.INVALID_FORMAT, score=0.0)
            if int(action.content) == secret:
                return Finish(reason=FinishReason.COMPLETED, score=1.0)
            told = "higher" if int(action.content) < secret else "lower"
        return Finish(reason=FinishReason.TURN_LIMIT, score=0.0)

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return lambda conversation, transcript: Action(content=str(self._secret(sample, seed)))

    def _secret(self, sample: str, seed: int) -> int:
        return random.Random(f"{sample} {seed}").randint(1, self.highest)
