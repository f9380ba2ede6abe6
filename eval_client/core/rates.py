"""Pure: requests and tokens a minute, kept by giving each request a moment before which it is not sent.

Of each rate one number is kept: when the next request would be due if all that were admitted had come evenly. Whoever
sends a request reserves its moment and moves that number on, so all that share it are served in the order they come.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from proctor.types import Value

RATE_SHARE = 0.95
"""Of a rate so much is used: with the burst and the slip below, no 60 s see more requests than `rpm`."""
BURST_S = 2.0
"""What an idle endpoint takes at once: the requests of so many seconds."""
SLIP_S = 1.0
"""A moment that was reserved may be used for so long."""
AHEAD_S = 1.0
"""Moments are reserved for so long ahead over all clients, so that none has to ask before every request."""
LONGEST_COST_S = 64.0
"""No request is charged more, nor any debt: about a minute's worth."""

Rate = Literal["rpm", "tpm"]
RequestsAMinute = Annotated[int, Field(ge=1, le=10_000_000)]
TokensAMinute = Annotated[int, Field(ge=1, le=10_000_000_000)]


class Rates(NamedTuple):
    """Requests and tokens a minute; None is no limit."""

    rpm: int | None = None
    tpm: int | None = None

    def both(self, other: "Rates") -> "Rates":
        """The rates that keep within these and others."""
        return Rates(_least(self.rpm, other.rpm), _least(self.tpm, other.tpm))


class Pace(Value):
    """When the next request is due by each rate, in seconds of one clock."""

    requests_at: float = Field(default=0.0, allow_inf_nan=False)
    tokens_at: float = Field(default=0.0, allow_inf_nan=False)


class Slot(NamedTuple):
    """A moment that one request may be sent at."""

    due: float
    tokens: float
    by: Rate
    """Which rate made it wait."""


class RateRequest(NamedTuple):
    """What a client wants of the rates."""

    waiting: tuple[float, ...] = ()
    """The tokens that each request which waits will take, as far as can be told."""
    ahead: tuple[float, ...] = ()
    """The same of requests that are likely to come soon."""
    held: tuple[float, ...] = ()
    """The tokens of the moments that were reserved and lie ahead."""
    debt: float = 0.0
    """Tokens that were used beyond what was reserved; negative where fewer were."""


def reserve(pace: Pace, rates: Rates, begin: float, ask: RateRequest, clients: int) -> tuple[Pace, list[Slot]]:
    """The next moments for a client's requests, none before `begin`, and the pace after them.

    A client holds no more moments than its part of AHEAD_S, but one always.
    """
    each_s, token_s = _seconds(rates.rpm), _seconds(rates.tpm)
    latest = begin + LONGEST_COST_S * (clients + 1)
    requests_at = min(pace.requests_at, latest + LONGEST_COST_S)
    tokens_at = min(pace.tokens_at + min(ask.debt * token_s, LONGEST_COST_S), latest + LONGEST_COST_S)
    slots: list[Slot] = []
    for tokens in _within(ask, AHEAD_S / clients, each_s, token_s):
        by_requests, by_tokens = max(requests_at, begin - BURST_S), max(tokens_at, begin - BURST_S)
        due = max(begin, by_requests if rates.rpm else 0.0, by_tokens if rates.tpm else 0.0)
        if due > latest:  # later than all that clients can have reserved: whoever waits asks again
            break
        slots.append(Slot(due, tokens, "tpm" if rates.rpm is None or by_tokens > by_requests else "rpm"))
        requests_at = max(by_requests, due - BURST_S) + each_s
        tokens_at = max(by_tokens, due - BURST_S) + min(tokens * token_s, LONGEST_COST_S)
    return Pace(requests_at=requests_at, tokens_at=tokens_at), slots


def _within(ask: RateRequest, part_s: float, each_s: float, token_s: float) -> Iterator[float]:
    """The requests for which moments may be reserved, by the tokens of each."""
    count, total = len(ask.held), sum(ask.held)
    for tokens in (*ask.waiting, *ask.ahead):
        count, total = count + 1, total + tokens
        if count > 1 and max(count * each_s, total * token_s) > part_s:
            return
        yield tokens


def _seconds(rate: int | None) -> float:
    return 0.0 if rate is None else 60.0 / (RATE_SHARE * rate)


def _least(one: int | None, other: int | None) -> int | None:
    return min((rate for rate in (one, other) if rate is not None), default=None)


@dataclass
class Estimate:
    """How many tokens a request will take, by what those before it took."""

    tokens_per_char: float = 0.25
    completion: float = 500.0
    answers: int = 0

    def of(self, chars: int) -> float:
        """For a request with so many characters of messages."""
        return chars * self.tokens_per_char + self.completion

    def learn(self, chars: int, prompt_tokens: int, completion_tokens: int) -> None:
        """What a request took; later ones weigh more than early ones, but none more than a twentieth."""
        self.answers += 1
        weight = max(1 / self.answers, 0.05)
        self.tokens_per_char += weight * (prompt_tokens / max(1, chars) - self.tokens_per_char)
        self.completion += weight * (completion_tokens - self.completion)
