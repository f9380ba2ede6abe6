"""What was said in a trial, conversation by conversation, each message once."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from eval_client.store.trials.trajectory import ConversationTurn
from proctor.types import Message, Tool


@dataclass(frozen=True)
class Said:
    """A message, and the turn in which the agent gave it; None where it is the environment's."""

    message: Message
    turn: ConversationTurn | None = None


@dataclass
class Spoken:
    """One conversation. A history that the environment shortens or words anew is given as it was first sent."""

    name: str
    said: list[Said] = field(default_factory=list)
    tools: tuple[Tool, ...] = ()
    opening: tuple[Message, ...] = ()
    """The worked examples' answers: the assistant messages of the first history."""

    def answers(self) -> list[ConversationTurn]:
        """The turns in which the agent answered."""
        return [said.turn for said in self.said if said.turn is not None]

    def messages(self) -> list[Message]:
        """All messages, in order."""
        return [said.message for said in self.said]


def spoken(turns: Iterable[ConversationTurn]) -> list[Spoken]:
    """The conversations of a trial, in the order in which they began.

    A history that is discarded with every answer of the agent begins another conversation, named `main-2` and so on.
    """
    begun: list[Spoken] = []
    current: dict[str, Spoken] = {}
    counts = Counter[str]()
    for turn in turns:
        history = (*turn.earlier, *turn.messages)
        one = current.get(turn.conversation)
        if one is None or (turn.fresh and _assistants(history) == one.opening):
            counts[turn.conversation] += 1
            number = counts[turn.conversation]
            one = Spoken(turn.conversation if number == 1 else f"{turn.conversation}-{number}")
            one.opening = _assistants(history)
            begun.append(one)
            current[turn.conversation] = one
            new: Sequence[Message] = history
        else:
            new = _after_last_answer(history) if turn.fresh else turn.messages
        one.said += [Said(message) for message in new]
        one.tools = turn.tools or one.tools
        if turn.action is not None:
            one.said.append(Said(turn.action.message(), turn))
    return begun


def _assistants(history: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(message for message in history if message.role == "assistant")


def _after_last_answer(history: Sequence[Message]) -> Sequence[Message]:
    last = max((at for at, message in enumerate(history) if message.role == "assistant"), default=-1)
    return history[last + 1 :]
