"""The replies of an environment's models (judges, hosts, simulated users) in a session, for the trial's next session.

A worker's cache is local to its machine. These replies are sent with the session's steps to the run's journal, and from
there to the worker that plays the trial's next session: nothing is bought twice, and the replay does not differ.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from operator import not_

from pydantic import Field

from proctor.types import Value

MOST_TOKENS, MOST_TRIES = 2**60, 10_000

_TOLD = Field(default=0, ge=0, le=MOST_TOKENS, exclude_if=not_)
"""A count that older workers don't know, and that is left out where it is 0."""


class ModelReply(Value):
    """A reply and its cost: the tokens of the `tries` requests that it took."""

    text: str
    model: str
    """The model's name, as the endpoint reports it."""
    prompt_tokens: int = Field(default=0, ge=0, le=MOST_TOKENS)
    completion_tokens: int = Field(default=0, ge=0, le=MOST_TOKENS)
    tries: int = Field(default=1, ge=0, le=MOST_TRIES)
    cached_tokens: int = _TOLD
    cache_write_tokens: int = _TOLD
    estimated_tokens: int = _TOLD
    billed_tokens: int = _TOLD
    billed_money: float = Field(default=0.0, ge=0, allow_inf_nan=False, exclude_if=not_)

    @property
    def reasoning_tokens(self) -> int:
        """Not kept: they are among the completion tokens."""
        return 0


class KeptReply(Value):
    """A reply that a session has used."""

    key: str = Field(pattern=r"^[0-9a-f]{40}$")
    """The hash of the question: `key_of`."""
    reply: ModelReply
    bought: bool
    """Whether its cost counts. False where another session had bought it and it came from the worker's cache, or where
    each of its tries is recorded before it, with its cost."""
    usable: bool = True
    """False for a single unreadable try: it was paid for, and is never used again."""


class SessionReplies:
    """The replies of one session, in the order of their first use, after those of the trial's earlier sessions.

    `added` is called for each new one, from any thread. Unless the session `may_buy`, no model is asked.
    """

    def __init__(self, known: Iterable[KeptReply], added: Callable[[], object], *, may_buy: bool = True) -> None:
        self._kept = list(known)
        self._by_key = {kept.key: kept.reply for kept in self._kept if kept.usable}
        self._added = added
        self.may_buy = may_buy
        self.unbought = Counter[str]()
        """model -> questions that it was not asked, since the session may not buy replies"""

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: str) -> ModelReply | None:
        """The reply to a question, or None."""
        return self._by_key.get(key)

    def add(self, key: str, reply: ModelReply, *, bought: bool) -> None:
        """Record that the session uses a reply, in place of any other; a repeated use is not recorded."""
        if self._by_key.get(key) != reply:
            self._by_key[key] = reply
            self._keep(KeptReply(key=key, reply=reply, bought=bought))

    def add_useless(self, key: str, reply: ModelReply) -> None:
        """Record that the session has paid for a reply that is never used again."""
        self._keep(KeptReply(key=key, reply=reply, bought=True, usable=False))

    def _keep(self, kept: KeptReply) -> None:
        self._kept.append(kept)
        self._added()

    def since(self, count: int) -> tuple[KeptReply, ...]:
        """All replies but the first `count`."""
        return tuple(self._kept[count:])


session_replies: ContextVar[SessionReplies | None] = ContextVar("session_replies", default=None)
"""The replies of the session that is being played; None outside a worker."""
