"""An agent that says what a test gives it."""

from proctor.environment import Agent
from proctor.types import Action, Observation


class Scripted(Agent):
    """Gives its replies one after the other, the last one for ever, and raises those that are errors."""

    def __init__(self, *replies: str | Action | Exception) -> None:
        self._replies = list(replies)
        self.seen: list[Observation] = []

    async def act(self, observation: Observation) -> Action:
        self.seen.append(observation)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, Action) else Action(content=reply)

    @property
    def told(self) -> list[str]:
        """The last message of each turn."""
        return [observation.messages[-1].content for observation in self.seen]

    @property
    def digests(self) -> list[str]:
        """Of what each turn showed."""
        return [observation.digest() for observation in self.seen]
