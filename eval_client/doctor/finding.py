"""A finding of `proctor doctor`: the result of one check."""

from enum import StrEnum

from eval_client.doctor.kinds import PROBLEMS
from proctor.observability.redaction import redacted
from proctor.types import Value

LONGEST_CHARS = 600


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
    """What was looked at, or a key of `kinds.PROBLEMS`."""
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


def ok(kind: str, what: str) -> Finding:
    """A passed check."""
    return Finding(id=kind, status=Status.OK, what=_line(what))


def skip(kind: str, what: str) -> Finding:
    """A check that was not done or is not relevant; `what` names the reason."""
    return Finding(id=kind, status=Status.SKIP, what=_line(what))


def warn(kind: str, what: str, fix: str = "") -> Finding:
    """A warning: the run can proceed. `fix` replaces the kind's own."""
    return _problem(Status.WARN, kind, what, fix)


def fail(kind: str, what: str, fix: str = "") -> Finding:
    """A failure: the run would fail, or leave trials unscored. `fix` replaces the kind's own."""
    return _problem(Status.FAIL, kind, what, fix)


def _problem(status: Status, kind: str, what: str, fix: str) -> Finding:
    known = PROBLEMS[kind]
    return Finding(id=kind, status=status, what=_line(what), why=known.why, fix=redacted(fix or known.fix))


def _line(text: str) -> str:
    """The text in one line without secrets, cut after LONGEST_CHARS characters."""
    line = " ".join(redacted(text).split())
    return line if len(line) <= LONGEST_CHARS else f"{line[:LONGEST_CHARS]}..."
