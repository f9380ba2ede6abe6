"""Pure: what may be published of texts that name machines."""

import re

from proctor.observability.redaction import redacted, visible

_ADDRESS = re.compile(
    r"\b[a-z][a-z0-9+.-]*://\S+|\b(?=[\w.-]*[a-z.])[\w.-]*\w:\d{2,5}\b|\b\d{1,3}(?:\.\d{1,3}){3}\b"
    r"|(?!pass@[\dk]+\b)\b\S+@\S+",
    re.IGNORECASE,
)
"""Also names of machines with a port, and names of users; not times of day, and not pass@k."""
_PATH = re.compile(r"(?<![\w.])(?:~|\.{1,2}|[A-Za-z]:)?[/\\][^\s,;:'\")]+")


def publishable(text: str) -> str:
    """A text of Proctor or an environment without secrets, addresses and file paths."""
    return visible(_PATH.sub("[path]", _ADDRESS.sub("[address]", redacted(text))))


def model_name(name: str) -> str:
    """A model's name at its endpoint; of one that is a file path, the last part."""
    local = name.startswith(("/", "~", ".")) or "\\" in name or "://" in name
    return publishable(re.split(r"[/\\]", name.rstrip("/\\"))[-1]) if local else visible(redacted(name))
