"""The requirements of the contract, one function each: it returns if met, else raises ContractViolation or LeftOut."""

import asyncio
import inspect
import itertools
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence, Set
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil

from proctor.conformance.player import GARBAGE, Player, garbage, raising, replying_garbage
from proctor.environment import (
    POLICY_KINDS,
    AgentStopped,
    AgentUnavailable,
    ContextLimitExceeded,
    Environment,
    Policy,
    PolicyKind,
    policy_of,
)
from proctor.own_files.loading import folder_of
from proctor.own_files.opened import watch_folder
from proctor.own_files.source import world_source
from proctor.registry import installed_as
from proctor.session.play import play_to_finish
from proctor.summary import summarize
from proctor.types import Action, Finish, FinishReason, Message, Observation

CANCELLED_ACTS = 3
"""Sessions are cancelled at each of the first acts, up to this one, while they wait for the agent."""
MIN_CANCELLED = 6
"""Minimum number of sessions cancelled before leaks are counted, so that a pool that fills up is no leak."""
SETTLE_S = 10.0
"""Seconds that the release of a session's resources may take."""


class ContractViolation(Exception):
    """A requirement is not met; the message says how."""


class LeftOut(Exception):
    """The environment lacks what the requirement is about; the message names it."""


class HeldResources(NamedTuple):
    """Counts of what a process can leak."""

    tasks: int
    threads: int
    processes: int
    files: int

    def growth(self, before: "HeldResources") -> str:
        """The counts that grew, in words."""
        counts = zip(self._fields, self, before, strict=True)
        return ", ".join(f"{now} {name} ({then} before)" for name, now, then in counts if now > then)


async def held_resources() -> HeldResources:
    """The counts of this process, without the calling task."""
    process = psutil.Process()
    children = len(process.children(recursive=True))
    return HeldResources(len(asyncio.all_tasks()) - 1, threading.active_count(), children, process.num_fds())


class Subject(NamedTuple):
    """An environment, the samples of it to play, and the seed to play them with."""

    environment: Environment
    samples: tuple[str, ...]
    seed: int

    def policies(self, kind: PolicyKind) -> list[tuple[str, Policy]]:
        """Each sample with its policy of a kind. Raises LeftOut if none has one, ContractViolation if some have."""
        found = [(sample, policy_of(self.environment, kind, sample, self.seed)) for sample in self.samples]
        made = [(sample, policy) for sample, policy in found if policy is not None]
        if not made:
            raise LeftOut(f"the environment has no {kind} policy")
        if len(made) < len(found):
            without = next(sample for sample, policy in found if policy is None)
            raise ContractViolation(f"sample {without!r}: no {kind} policy, though other samples have one")
        return made

    def best_policy(self, sample: str) -> Policy:
        """The best policy there is: the reference, else the naive policy, else the random one, else garbage."""
        made = (policy_of(self.environment, kind, sample, self.seed) for kind in POLICY_KINDS)
        return next((policy for policy in made if policy is not None), _garbage_policy)

    def random_policy(self, sample: str) -> Policy:
        """The random policy, else garbage."""
        return self.environment.random(sample, self.seed) or _garbage_policy


def _garbage_policy(_conversation: str, transcript: Sequence[Message]) -> Action:
    return GARBAGE[sum(message.role == "assistant" for message in transcript) % len(GARBAGE)]


# The requirements that need no session.


async def samples_are_stable(environment: Environment) -> None:
    listed = tuple(environment.samples())
    if not listed:
        raise ContractViolation("there are no samples")
    if len(set(listed)) < len(listed):
        raise ContractViolation(f"{next(sample for sample in listed if listed.count(sample) > 1)!r} is listed twice")
    if tuple(environment.samples()) != listed:
        raise ContractViolation("a second call lists other samples")
    if tuple(_fresh(environment).samples()) != listed:
        raise ContractViolation("a new instance of the same configuration lists other samples")


async def digest_is_stable(environment: Environment) -> None:
    digest = environment.digest()
    int(digest, 16)
    if environment.digest() != digest or _fresh(environment).digest() != digest:
        raise ContractViolation("a second call, or a new instance of the same configuration, gives another digest")


async def digests_differ(environment: Environment, other: Environment) -> None:
    if environment.digest() == other.digest():
        raise ContractViolation("both protocols have the same digest; hash the field `protocol` where it is tools")


def watched(environment: Environment) -> Set[Path] | None:
    """What is opened beside the file of a world that is not installed, from now on; None for other worlds."""
    file = getattr(sys.modules.get(type(environment).__module__), "__file__", None)
    if file is None or installed_as(type(environment)) is not None:
        return None
    return watch_folder(Path(file).resolve().parent)


async def digest_has(environment: Environment, opened: Set[Path]) -> None:
    known, folder = world_source(environment).files, folder_of(Path(inspect.getfile(type(environment))).resolve())
    names = {str(path.relative_to(folder)) for path in opened if path.suffix not in (".py", ".pyc")} - known.keys()
    fields = [value for value in fields_of(environment).values() if isinstance(value, Path)]
    missed = [name for name in sorted(names) if not any((folder / name).is_relative_to(each) for each in fields)]
    if missed:
        fix = "open it in `samples` too, or name it in a field of type Path"
        raise LeftOut(f"only `play` opens {', '.join(missed)}, so a run goes on after a change of it; {fix}")


def fields_of(environment: Environment) -> dict[str, object]:
    """The values of an environment's fields, without what it has cached in properties."""
    return {name: getattr(environment, name) for name in type(environment).model_fields}


def _fresh(environment: Environment) -> Environment:
    return type(environment)(**fields_of(environment))


# The requirements of play.


async def _play(subject: Subject, sample: str, player: Player) -> Finish:
    finish = await play_to_finish(subject.environment, sample, player, subject.seed)
    if player.unanswered is not None:
        raise ContractViolation(f"sample {sample!r}: {player.unanswered}")
    return finish


async def _scored(subject: Subject, sample: str, player: Player) -> Finish:
    finish = await _play(subject, sample, player)
    if finish.score is None:
        raise ContractViolation(
            f"sample {sample!r}: {finish.reason.value}: {finish.detail.get('cause', 'no cause given')}"
        )
    return finish


async def _reference(subject: Subject) -> None:
    for sample, policy in subject.policies("reference"):
        finish = await _scored(subject, sample, Player(policy))
        if finish.score != 1.0:
            raise ContractViolation(
                f"sample {sample!r}: the reference ends {finish.reason.value} with score {finish.score}, not 1"
            )


async def _all_scored(kind: PolicyKind, subject: Subject) -> None:
    for sample, policy in subject.policies(kind):
        await _scored(subject, sample, Player(policy))


async def _garbage(subject: Subject) -> None:
    """Each kind of garbage alone from the start, then all in turn after one act of the best policy."""
    sample = subject.samples[0]
    policy = subject.best_policy(sample)
    number, kinds = 0, len(GARBAGE)
    while number < kinds:
        player = Player(policy, 0, replying_garbage([number]))
        await _scored(subject, sample, player)
        kinds = max(kinds, len(garbage(player.offered)))
        number += 1
    await _scored(subject, sample, Player(policy, 1, replying_garbage(range(kinds))))


async def _stopped(subject: Subject) -> None:
    sample = subject.samples[0]
    policy = subject.best_policy(sample)
    for acts in range(2):
        for error in (ContextLimitExceeded(), AgentStopped(FinishReason.TURN_LIMIT)):
            await _scored(subject, sample, Player(policy, acts, raising(error)))


async def _agent_fault(subject: Subject) -> None:
    sample = subject.samples[0]
    policy = subject.best_policy(sample)
    for acts in range(2):
        player = Player(policy, acts, raising(AgentUnavailable("the endpoint is down")))
        finish = await _play(subject, sample, player)
        if len(player.seen) > acts and finish.reason is not FinishReason.AGENT_ERROR:
            raise ContractViolation(f"sample {sample!r}: a failing agent ends {finish.reason.value}, not agent_error")


async def _repeatable(subject: Subject) -> None:
    """One session alone, then two at once: a difference shows unseeded randomness, or state that sessions share."""
    for sample in subject.samples:
        for make in (subject.best_policy, subject.random_policy):
            players = [Player(make(sample)) for _ in range(3)]
            first = await _scored(subject, sample, players[0])
            rest = await asyncio.gather(*(_play(subject, sample, player) for player in players[1:]))
            for player, finish in zip(players[1:], rest, strict=True):
                _agree(sample, players[0].seen, player.seen)
                if (finish.reason, finish.score) != (first.reason, first.score):
                    raise ContractViolation(
                        f"sample {sample!r}: one seed ends once {first.reason}, once {finish.reason}"
                    )


def _agree(sample: str, one: Sequence[str], other: Sequence[str]) -> None:
    for turn, (left, right) in enumerate(itertools.zip_longest(one, other), start=1):
        if left != right:
            raise ContractViolation(f"sample {sample!r}: sessions of one seed differ in the observation of turn {turn}")


async def _summary(subject: Subject) -> None:
    sample = subject.samples[0]
    finish = await _scored(subject, sample, Player(subject.best_policy(sample)))
    faults = [Finish.fault(reason, "check") for reason in FinishReason if reason.is_fault]
    alone, among = (summarize(subject.environment, finishes) for finishes in ([finish], [finish, *faults]))
    if alone.metrics.get(alone.primary) != among.metrics.get(among.primary):
        raise ContractViolation(f"faults beside a finish change {alone.primary!r}; they must not count")
    if finish.score == 0.0:
        raise LeftOut("no policy scores above 0 here, so faults that count as 0 would not show")


# Cancellation, which must leave nothing behind.


async def settles(enough: Callable[[HeldResources], bool], before: HeldResources) -> None:
    """Wait until the resources held are `enough`. Raises ContractViolation, with what grew, after SETTLE_S."""
    deadline = asyncio.get_running_loop().time() + SETTLE_S
    while not enough(now := await held_resources()):
        if asyncio.get_running_loop().time() > deadline:
            raise ContractViolation(f"left behind: {now.growth(before)}")
        await asyncio.sleep(0.05)


async def _cancelled(subject: Subject) -> None:
    sample = subject.samples[0]
    await _cancel_round(subject, sample)
    before, cancelled = await held_resources(), 0
    while cancelled < MIN_CANCELLED:
        cancelled += await _cancel_round(subject, sample)
    await settles(lambda now: all(a - b < cancelled for a, b in zip(now, before, strict=True)), before)
    await _scored(subject, sample, Player(subject.best_policy(sample)))


async def _cancel_round(subject: Subject, sample: str) -> int:
    """Cancel one session at each of the first acts that it has, and return how many were cancelled."""
    for acts in range(CANCELLED_ACTS):
        if not await _cancel_at(subject, sample, acts):
            if acts == 0:
                raise ContractViolation(f"sample {sample!r}: the session ended before the agent's first act")
            return acts
    return CANCELLED_ACTS


async def _cancel_at(subject: Subject, sample: str, acts: int) -> bool:
    """Cancel a session while it waits at an act (from 0). False where the session ended before that act."""
    parked = asyncio.Event()

    async def park(_: Observation) -> Action:
        parked.set()
        await asyncio.Event().wait()
        raise AssertionError("nothing sets this event")

    player = Player(subject.best_policy(sample), acts, park)
    session = asyncio.create_task(_play(subject, sample, player))
    waiting = asyncio.create_task(parked.wait())
    try:
        await asyncio.wait({session, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        session.cancel()
        waiting.cancel()
    await asyncio.wait({session})
    if parked.is_set() and not session.cancelled():
        raise ContractViolation(
            f"sample {sample!r}: a session cancelled at act {acts + 1} ends as if it were not cancelled"
        )
    return parked.is_set()


REQUIREMENTS: tuple[tuple[str, Callable[[Subject], Coroutine[object, object, None]]], ...] = (
    ("the reference scores 1", _reference),
    ("the naive policy ends with a score", partial(_all_scored, "naive")),
    ("the random policy ends with a score", partial(_all_scored, "random")),
    ("garbage ends with a score", _garbage),
    ("an agent that stops ends with a score", _stopped),
    ("an agent that fails ends as agent_error", _agent_fault),
    ("equal seeds give equal sessions", _repeatable),
    ("faults change no summary", _summary),
    ("cancellation frees everything", _cancelled),
)
