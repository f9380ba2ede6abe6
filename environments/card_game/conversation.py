"""An agent's history of one kind of request, in which failed tries leave no trace."""

from environments.card_game.prompt import CONFIRMATION
from proctor.types import Message, Observation


class Conversation:
    """The agent's history of one kind of request: the rules, then accepted prompts and replies only."""

    def __init__(self, name: str, rules: str) -> None:
        self.name = name
        self._accepted: tuple[Message, ...] = ()
        self._new: tuple[Message, ...] = (
            Message(role="user", content=rules),
            Message(role="assistant", content=CONFIRMATION),
        )
        self._stained = False
        """Whether the agent's side holds a reply that was not accepted."""

    def ask(self, prompt: str) -> Observation:
        """The observation of one try; it begins the history anew where a failed try is to be forgotten."""
        asked = Message(role="user", content=prompt)
        before = (*self._accepted, *self._new) if self._stained else self._new
        observation = Observation(messages=(*before, asked), conversation=self.name, fresh=self._stained)
        self._stained = True
        return observation

    def accept(self, prompt: str, reply: str) -> None:
        """Keep the try just made: prompt and reply stay in the history."""
        pair = (Message(role="user", content=prompt), Message(role="assistant", content=reply))
        self._accepted = (*self._accepted, *self._new, *pair)
        self._new, self._stained = (), False
