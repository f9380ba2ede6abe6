"""One of the agent's two conversations, in which rejected replies leave no trace."""

from environments.card_game.prompt import CONFIRMATION
from proctor.types import Message, Observation


class Conversation:
    """One conversation with the agent: the rules, then accepted prompts and replies only."""

    def __init__(self, name: str, rules: str) -> None:
        self.name = name
        self._accepted: tuple[Message, ...] = ()
        self._new: tuple[Message, ...] = (
            Message(role="user", content=rules),
            Message(role="assistant", content=CONFIRMATION),
        )
        self._tainted = False
        """Whether the transcript on the agent's side holds a prompt or reply that was not accepted."""

    def ask(self, prompt: str) -> Observation:
        """The observation of one try; after a rejected try it sends the accepted history afresh."""
        asked = Message(role="user", content=prompt)
        before = (*self._accepted, *self._new) if self._tainted else self._new
        observation = Observation(messages=(*before, asked), conversation=self.name, fresh=self._tainted)
        self._tainted = True
        return observation

    def accept(self, prompt: str, reply: str) -> None:
        """Keeps the prompt and the reply of the last try in the history."""
        pair = (Message(role="user", content=prompt), Message(role="assistant", content=reply))
        self._accepted = (*self._accepted, *self._new, *pair)
        self._new, self._tainted = (), False
