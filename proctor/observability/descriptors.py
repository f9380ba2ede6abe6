"""How many files and connections this process may have open, and what to do where there are no more."""

import errno
import os
import random
import resource
import sys
import time
from asyncio import sleep
from collections import Counter
from collections.abc import Iterator

MOST_DESCRIPTORS = 65_536
"""No process of ours asks for more files and connections at once."""
FEW_DESCRIPTORS, DESCRIPTORS_BESIDE, DESCRIPTORS_EACH = 512, 128, 3
"""Those that a run may need anyhow, beside its trials, and for each trial (model, task server, sandbox)."""
_LACKS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS})
_MAY_LACK = ("unable to open database file", "lookup address", "Temporary failure in name resolution")
"""What SQLite and name look-ups say of a lack, and of other things too."""
_KINDS = {"socket:": "sockets", "pipe:": "pipes", "/": "files"}
_WAITS_S = 0.1, 2.0
_given: list[tuple[int, int]] = []
"""The limits that this process was given, once it has changed them."""


class OutOfDescriptors(Exception):
    """This process could open no file and no connection for too long."""


def allow_descriptors(needed: int = MOST_DESCRIPTORS) -> int:
    """Let this process have so many files and connections open at once, as far as its hard limit goes; how many it may.

    Its soft limit is raised only if it has to be: 1,024 is a common one.
    """
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (sys.maxsize if each == resource.RLIM_INFINITY else each for each in limits)
    wanted = min(needed, hard, MOST_DESCRIPTORS)
    if soft < wanted:
        _given[:] = _given or [limits]
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, limits[1]))
    return max(soft, wanted)


def give_back(process: int) -> None:
    """Give a child of this process, a program that is not ours, the limit that this process was given."""
    if _given and sys.platform == "linux":
        resource.prlimit(process, resource.RLIMIT_NOFILE, _given[0])


def descriptors_for(trials: int) -> int:
    """The files and connections that so many trials at once may need."""
    return max(FEW_DESCRIPTORS, DESCRIPTORS_BESIDE + DESCRIPTORS_EACH * trials)


def trials_for(descriptors: int) -> int:
    """How many trials at once so many files and connections are enough for; at least one."""
    return max(1, (descriptors - min(DESCRIPTORS_BESIDE, descriptors // 4)) // DESCRIPTORS_EACH)


def lacks_descriptors(error: BaseException) -> bool:
    """Whether something failed because this process, or its machine, can open no more files and connections."""
    return any(
        (isinstance(each, OSError) and each.errno in _LACKS)
        or (any(words in str(each) for words in _MAY_LACK) and not _can_open())
        for each in _causes(error)
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = getattr(error, "orig", None) or error.__cause__ or error.__context__


def _can_open() -> bool:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    return True


class Shortage:
    """The lack of descriptors in this process, which all its requests share."""

    def __init__(self) -> None:
        self.patience_s = 60.0
        """How long it is waited for."""
        self.since: float | None = None
        """When it began, on the monotonic clock; None where there is none."""

    async def wait(self, tries: int) -> None:
        """Wait before another try, after so many that lacked a descriptor. Raises OutOfDescriptors."""
        now = time.monotonic()
        self.since = now if self.since is None else self.since
        if now - self.since > self.patience_s:
            raise OutOfDescriptors(f"no file or connection could be opened for {self.patience_s:g} s: {_told()}")
        await sleep((0.5 + random.random()) * min(_WAITS_S[1], _WAITS_S[0] * 2 ** min(tries, 10)))

    def over(self) -> None:
        """Know that what lacked a descriptor has one."""
        self.since = None


SHORTAGE = Shortage()


def _told() -> str:
    """How many are open, by kind, and the fix."""
    limit, kinds = resource.getrlimit(resource.RLIMIT_NOFILE)[0], Counter[str]()
    for number in range(min(limit, MOST_DESCRIPTORS)):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        kinds[next((kind for start, kind in _KINDS.items() if target.startswith(start)), "others")] += 1
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return f"{kinds.total()} of {limit} are open ({counts}); raise `ulimit -n`, or lower `concurrency`"
