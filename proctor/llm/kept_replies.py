"""What models on the environment's side (judges, hosts, users) said in a session, so that the next one hears the same.

A worker's cache is its machine's. These replies travel with the session's steps into the run's journal, and back to
whichever worker plays the trial's next session: nothing is bought twice, and the replay does not differ.
"""

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING

from pydantic import Field

from proctor.types import Value

MOST_TOKENS, MOST_TRIES = 2**60, 10_000

if TYPE_CHECKING:
    from proctor.llm.model import Completion


class ModelReply(Value):
    """A reply and what it cost when it was bought, with the tries before it."""

    text: str
    model: str
    """As the endpoint names it."""
    prompt_tokens: int = Field(default=0, ge=0, le=MOST_TOKENS)
    completion_tokens: int = Field(default=0, ge=0, le=MOST_TOKENS)
    tries: int = Field(default=1, ge=0, le=MOST_TRIES)

    def after(self, completion: "Completion") -> "ModelReply":
        """The reply of a further try: its text, and the cost of all."""
        return ModelReply(
            text=completion.action.content,
            model=completion.model,
            prompt_tokens=self.prompt_tokens + completion.usage.prompt_tokens,
            completion_tokens=self.completion_tokens + completion.usage.completion_tokens,
            tries=self.tries + 1,
        )


class KeptReply(Value):
    """A reply that a session has used."""

    key: str = Field(pattern=r"^[0-9a-f]{40}$")
    """The hash of all that was asked: `key_of`."""
    reply: ModelReply
    bought: bool
    """Whether its cost counts. Not where it came from the worker's cache, and another session had bought it; nor where
    each of its tries stands before it, with what that cost."""
    usable: bool = True
    """False for one try alone: it was paid for, and is not heard again."""


class SessionReplies:
    """Those of one session, in the order of their first use; those of the trial's earlier sessions come first.

    `added` is called at each new one, from any thread.
    """

    def __init__(self, known: Iterable[KeptReply], added: Callable[[], None]) -> None:
        self._kept = list(known)
        self._by_key = {kept.key: kept.reply for kept in self._kept if kept.usable}
        self._added = added

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: str) -> ModelReply | None:
        """The reply to what was asked, where there is one."""
        return self._by_key.get(key)

    def add(self, key: str, reply: ModelReply, *, bought: bool) -> None:
        """The session uses a reply, in the place of any other; from the second time on nothing is to be kept."""
        if self._by_key.get(key) != reply:
            self._by_key[key] = reply
            self._keep(KeptReply(key=key, reply=reply, bought=bought))

    def add_useless(self, key: str, reply: ModelReply) -> None:
        """The session has paid for a reply that is not heard again."""
        self._keep(KeptReply(key=key, reply=reply, bought=True, usable=False))

    def _keep(self, kept: KeptReply) -> None:
        self._kept.append(kept)
        self._added()

    def since(self, count: int) -> tuple[KeptReply, ...]:
        """All but the first `count`."""
        return tuple(self._kept[count:])


session_replies: ContextVar[SessionReplies | None] = ContextVar("session_replies", default=None)
"""Of the session that is played; None outside of a worker."""
