"""What `proctor doctor` says about one thing."""

from enum import StrEnum

from eval_client.doctor.kinds import KINDS
from proctor.observability.redaction import redacted
from proctor.types import Value

LONGEST_CHARS = 600


class Status(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    """A run would do, but not as well or as safely as it could."""
    FAIL = "fail"
    """A run would fail, or leave trials unscored."""
    SKIP = "skip"
    """Not looked at, or of no matter."""


class Finding(Value):
    """One line of the doctor's report; no secret stands in it."""

    id: str
    """A key of `kinds.KINDS`."""
    status: Status
    what: str
    why: str = ""
    """Why it matters, where something is amiss."""
    fix: str = ""
    """What to do, as a command where there is one."""

    @property
    def amiss(self) -> bool:
        """Whether something should be done."""
        return self.status in (Status.WARN, Status.FAIL)


def ok(kind: str, what: str) -> Finding:
    """All is well."""
    return Finding(id=_known(kind), status=Status.OK, what=_line(what))


def skip(kind: str, what: str) -> Finding:
    """Not looked at, or of no matter, and why."""
    return Finding(id=_known(kind), status=Status.SKIP, what=_line(what))


def warn(kind: str, what: str, fix: str = "") -> Finding:
    """Something is amiss that a run may bear. `fix` stands in for the kind's own."""
    return _amiss(Status.WARN, kind, what, fix)


def fail(kind: str, what: str, fix: str = "") -> Finding:
    """Something is amiss that a run doesn't bear. `fix` stands in for the kind's own."""
    return _amiss(Status.FAIL, kind, what, fix)


def _amiss(status: Status, kind: str, what: str, fix: str) -> Finding:
    known = KINDS[kind]
    return Finding(id=kind, status=status, what=_line(what), why=known.why, fix=redacted(fix or known.fix))


def _line(text: str) -> str:
    """The text in one line without secrets, cut where it is very long."""
    line = " ".join(redacted(text).split())
    return line if len(line) <= LONGEST_CHARS else f"{line[:LONGEST_CHARS]}..."


def _known(kind: str) -> str:
    assert kind in KINDS, kind
    return kind
