"""Pure: rate limits in requests and tokens a minute. Each request gets a time slot and is not sent before it.

The state of a rate is one number: when the next request is due if all admitted requests had come evenly (the generic
cell rate algorithm). A client that sends a request reserves the next slot and moves that number on, so all clients that
share the rate are served in order of arrival.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic import Field

from proctor.types import Value

RATE_SHARE = 0.95
"""The part of a rate that is used: with the burst and the slip below, no 60 s have more than `rpm` requests."""
BURST_S = 2.0
"""An idle endpoint takes the requests of this many seconds at once."""
SLIP_S = 1.0
"""A reserved slot may be used up to this many seconds late."""
AHEAD_S = 1.0
"""All clients together reserve slots this far ahead, so that a client need not ask before every request."""
LONGEST_COST_S = 64.0
"""Most seconds of the rate that one request, or a debt, is charged: about a minute's worth."""

Rate = Literal["rpm", "tpm"]


class Rates(NamedTuple):
    """Requests and tokens a minute; None means no limit."""

    rpm: int | None = None
    tpm: int | None = None

    def plus(self, other: "Rates") -> "Rates":
        """The sum of each rate, of two that have the same ones."""
        return Rates(*(None if one is None else one + (of or 0) for one, of in zip(self, other, strict=True)))

    def both(self, other: "Rates") -> "Rates":
        """The smaller of each rate."""
        return Rates(_least(self.rpm, other.rpm), _least(self.tpm, other.tpm))


class Pace(Value):
    """When the next request is due by each rate, in seconds of the pool's clock."""

    requests_at: float = Field(default=0.0, allow_inf_nan=False)
    tokens_at: float = Field(default=0.0, allow_inf_nan=False)


class Slot(NamedTuple):
    """A time slot: one request may be sent from `due` on."""

    due: float
    tokens: float
    """The tokens reserved for the request."""
    by: Rate
    """The rate that set `due`."""


class RateRequest(NamedTuple):
    """A client's request for slots."""

    waiting: tuple[float, ...] = ()
    """The estimated tokens of each request that waits."""
    ahead: tuple[float, ...] = ()
    """The estimated tokens of each request that is likely to come soon."""
    held: tuple[float, ...] = ()
    """The tokens of the slots that the client has reserved and that are not yet due."""
    debt: float = 0.0
    """Tokens used beyond those reserved; negative if fewer were used."""


def reserve(pace: Pace, rates: Rates, begin: float, ask: RateRequest, clients: int) -> tuple[Pace, list[Slot]]:
    """Reserve the next slots for a client's requests, none before `begin`; the pace after that, and the slots.

    A client holds no more slots than its part of AHEAD_S, but always one.
    """
    each_s, token_s = _seconds(rates.rpm), _seconds(rates.tpm)
    latest = begin + LONGEST_COST_S * (clients + 1)
    requests_at = min(pace.requests_at, latest + LONGEST_COST_S)
    tokens_at = min(pace.tokens_at + min(ask.debt * token_s, LONGEST_COST_S), latest + LONGEST_COST_S)
    slots: list[Slot] = []
    for tokens in _within(ask, AHEAD_S / clients, each_s, token_s):
        by_requests, by_tokens = max(requests_at, begin - BURST_S), max(tokens_at, begin - BURST_S)
        due = max(begin, by_requests if rates.rpm else 0.0, by_tokens if rates.tpm else 0.0)
        if due > latest:  # later than clients can have reserved: the client asks again later
            break
        slots.append(Slot(due, tokens, "tpm" if rates.rpm is None or by_tokens > by_requests else "rpm"))
        requests_at = max(by_requests, due - BURST_S) + each_s
        tokens_at = max(by_tokens, due - BURST_S) + min(tokens * token_s, LONGEST_COST_S)
    return Pace(requests_at=requests_at, tokens_at=tokens_at), slots


def _within(ask: RateRequest, part_s: float, each_s: float, token_s: float) -> Iterator[float]:
    """The tokens of each request for which a slot may be reserved now."""
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
    """Estimates the tokens of a request from the requests before it."""

    tokens_per_char: float = 0.25
    completion: float = 500.0
    answers: int = 0

    def of(self, chars: int) -> float:
        """The estimated tokens of a request with this many characters of messages, its completion included."""
        return chars * self.tokens_per_char + self.completion

    def learn(self, chars: int, prompt_tokens: int, completion_tokens: int) -> None:
        """Learn from an answered request: a running mean, in which a new request weighs at least a twentieth."""
        self.answers += 1
        weight = max(1 / self.answers, 0.05)
        self.tokens_per_char += weight * (prompt_tokens / max(1, chars) - self.tokens_per_char)
        self.completion += weight * (completion_tokens - self.completion)
