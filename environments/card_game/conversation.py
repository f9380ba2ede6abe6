"""The agent's two conversations: what history each one sends, and how its replies are read."""

from abc import ABC, abstractmethod

from environments.card_game import prompt
from environments.card_game.functions import toolset
from environments.card_game.reply import IllegalReply
from environments.card_game.sample_game import Setup
from proctor.json_objects import is_object
from proctor.tools import CallReader, ParsedReply, Protocol, ReplyReader, TextReader, UnreadableCall
from proctor.types import Action, FinishReason, Message, Observation


class Conversation(ABC):
    """One conversation with the agent."""

    def __init__(self, name: str, reader: ReplyReader[str], *, corrects: bool) -> None:
        self.name = name
        self.reader = reader
        self.corrects = corrects
        """Whether a prompt that is asked again says what was wrong with the last reply."""
        self.parsed: ParsedReply[str] | None = None
        """The last reply; None before the first."""

    @abstractmethod
    def ask(self, prompt: str) -> Observation:
        """The observation of one try."""

    def read(self, reply: Action) -> str | IllegalReply:
        """The text that a reply's move is read from."""
        self.parsed = self.reader.read(reply)
        (text,) = self.parsed.actions
        if isinstance(text, UnreadableCall):
            return IllegalReply(any(is_object(call.arguments) for call in reply.tool_calls[:1]), text.why.rstrip("."))
        return text

    @abstractmethod
    def accept(self, prompt: str, reply: str) -> None:
        """Called with the prompt and the reply of the last try if the reply held a legal move."""


class RewrittenConversation(Conversation):
    """Protocol `text`: the rules, then accepted prompts and replies only; rejected replies leave no trace."""

    def __init__(self, name: str, rules: str, *, corrects: bool) -> None:
        super().__init__(name, TextReader(str), corrects=corrects)
        self._accepted: tuple[Message, ...] = ()
        self._new: tuple[Message, ...] = (
            Message(role="user", content=rules),
            Message(role="assistant", content=prompt.CONFIRMATION),
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


class AppendedConversation(Conversation):
    """Protocol `tools`: the rules, then every prompt and reply; a prompt is the result of the call before it."""

    def __init__(self, name: str, rules: str, reader: ReplyReader[str]) -> None:
        super().__init__(name, reader, corrects=True)
        self._rules = Message(role="system", content=rules)

    def ask(self, prompt: str) -> Observation:
        first = (self._rules, Message(role="user", content=prompt))
        messages = first if self.parsed is None else self.parsed.answered([prompt])
        return Observation(messages=messages, tools=self.reader.tools, conversation=self.name)

    def accept(self, prompt: str, reply: str) -> None:
        """Does nothing: the history holds prompt and reply already."""


def opened(setup: Setup, explained: bool = False, protocol: Protocol = "text") -> tuple[Conversation, Conversation]:
    """The conversations of a game, to guess and to act; `explained`: the rules say where the code differs from them."""
    return _opened("guess", setup, explained, protocol), _opened("act", setup, explained, protocol)


def _opened(name: str, setup: Setup, explained: bool, protocol: Protocol) -> Conversation:
    rules = prompt.rules(name, setup, explained, protocol)
    if protocol == "text":
        return RewrittenConversation(name, rules, corrects=setup.profile == "strict")
    functions = toolset(name, setup.grammar.targetless_aoe)
    return AppendedConversation(name, rules, CallReader(functions, strict=setup.profile != "compat"))


def limit_reason(*conversations: Conversation) -> FinishReason:
    """Why a session that reached its limit ended: the limit, unless no conversation had a reply that could be read."""
    reasons = [each.reader.limit_reason() for each in conversations if each.parsed is not None]
    return FinishReason.TURN_LIMIT if FinishReason.TURN_LIMIT in reasons else reasons[-1]


def metrics(one: Conversation, other: Conversation) -> dict[str, float]:
    """The metrics about the replies of both conversations."""
    counts = other.reader.metrics()
    return {name: count + counts[name] for name, count in one.reader.metrics().items()}
