"""A finding of `proctor doctor`: the result of one check; checks run concurrently, each with a deadline."""

import asyncio
from collections.abc import AsyncIterator, Collection, Coroutine, Mapping, Sequence
from enum import StrEnum

from proctor.observability.redaction import redacted
from proctor.types import Value

LONGEST_CHARS = 600
LONGER = "run the doctor again with --patience 60"
CLOSING_S = 60.0
"""How long an environment that was started may take to shut down."""


class Status(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    """A run can proceed, but slower or less safely."""
    FAIL = "fail"
    """A run would fail, or leave trials unscored."""
    SKIP = "skip"
    """Not checked, or not relevant."""


class Finding(Value):
    """One line of the doctor's report; it contains no secret."""

    id: str
    """What was looked at, or the kind of problem."""
    status: Status
    what: str
    """The result in one line."""
    why: str = ""
    """Why the problem matters; empty unless the status is WARN or FAIL."""
    fix: str = ""
    """How to fix the problem, as a command if possible; empty unless the status is WARN or FAIL."""

    @property
    def is_problem(self) -> bool:
        """Whether the status is WARN or FAIL."""
        return self.status in (Status.WARN, Status.FAIL)


Check = Coroutine[None, None, Sequence[Finding]]


def ok(check: str, what: str) -> Finding:
    """A passed check."""
    return Finding(id=check, status=Status.OK, what=_line(what))


def skip(check: str, what: str) -> Finding:
    """A check that was not done or is not relevant; `what` names the reason."""
    return Finding(id=check, status=Status.SKIP, what=_line(what))


def warn(kind: str, what: str, why: str, fix: str) -> Finding:
    """A warning: the run can proceed."""
    return Finding(id=kind, status=Status.WARN, what=_line(what), why=why, fix=redacted(fix))


def fail(kind: str, what: str, why: str, fix: str) -> Finding:
    """A failure: the run would fail, or leave trials unscored."""
    return warn(kind, what, why, fix).model_copy(update={"status": Status.FAIL})


def _line(text: str) -> str:
    """The text in one line without secrets, cut after LONGEST_CHARS characters."""
    line = " ".join(redacted(text).split())
    return line if len(line) <= LONGEST_CHARS else f"{line[:LONGEST_CHARS]}..."


async def findings(
    checks: Mapping[str, Check], limit_s: float, closing: Collection[str] = ()
) -> AsyncIterator[Finding]:
    """The findings of all checks by name, in their order. A check that takes longer than `limit_s` is ended.

    Those that are `closing` limit themselves and then close what they started, which may take CLOSING_S more.
    """
    limits = {name: limit_s + (CLOSING_S if name in closing else 0) for name in checks}
    looking = [asyncio.create_task(_look(name, check, limits[name])) for name, check in checks.items()]
    for task in looking:
        for finding in await task:
            yield finding


async def _look(name: str, check: Check, limit_s: float) -> Sequence[Finding]:
    unknown = "the result of this check is unknown"
    try:
        async with asyncio.timeout(limit_s):
            return await check
    except TimeoutError:
        return [fail("check-late", f"{name}: no result in time", unknown, LONGER)]
    except Exception as error:
        what = f"{name}: {type(error).__name__}: {error}"
        return [fail("check-failed", what, unknown, "please report this, with the line above")]
