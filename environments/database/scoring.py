"""What a session scores: its table's hash, or its answer compared with the label, as published and strictly."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal

from environments.database import literal
from environments.database.dataset import TableEntry
from environments.database.table_hash import TableHash

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_MAX_NUMBER_LENGTH = 400
Key = tuple[str, str | Decimal]


def marks(entry: TableEntry, completed: bool, answer: str, changed: TableHash) -> dict[str, float]:
    """1 or 0 by each way to judge a session; `completed` is whether it ended with an answer.

    A change is judged by the hash of the table alone; in `strict` the session must be completed too.
    """
    if entry.table_hash:
        same = changed.sql == entry.table_hash
        return {"compat": float(same), "strict": float(same and completed)}
    ways = {"compat": compat, "strict": strict, "strict_multiset": strict_multiset}
    labels = (entry.label, *entry.accept)
    return {name: float(completed and any(way(answer, label) for label in labels)) for name, way in ways.items()}


def compat(answer: str, label: Sequence[str]) -> bool:
    """Whether the published code accepts the answer text for the label (AgentBench v0.2, dbbench)."""
    given = _compat_items(answer)
    if len(given) == 1 and len(label) == 1:
        return _equal_singles(given[0], label[0])
    try:
        return set(given) == set(label)
    except TypeError:
        return False


def strict(answer: str, label: Sequence[str]) -> bool:
    """Whether the answer text holds the label's elements, as a set; numbers compare by value."""
    return set(map(_key, strict_items(answer))) == set(map(_key, label))


def strict_multiset(answer: str, label: Sequence[str]) -> bool:
    """As `strict`, but with each element as often as in the label."""
    return Counter(map(_key, strict_items(answer))) == Counter(map(_key, label))


def strict_items(answer: str) -> list[str]:
    """The elements of an answer text, each as text without surrounding blanks."""
    text = answer.strip()
    try:
        value = literal.parse(text)
        if isinstance(value, (list, tuple, set)):
            return [_as_text(item) for item in value]
    except ValueError:
        return [text]
    return [_as_text(value) if isinstance(value, str) else text]


def _as_text(item: object) -> str:
    """An element as text; a pair of surrogates, as JSON writes it, is its character.

    Raises ValueError for an integer of thousands of digits.
    """
    return str(item).encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()


def _compat_items(answer: str) -> list[object]:
    """What `list` makes of the literal (the characters of a string, the keys of a mapping), else the raw text."""
    try:
        value = literal.parse(answer)
    except literal.NotALiteral:
        return [answer]
    return list(value) if isinstance(value, Iterable) else [answer]


def _equal_singles(given: object, label: str) -> bool:
    try:
        return float(given) == float(label)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return given == label


def _key(text: str) -> Key:
    """A key that is the same for two elements exactly when they count as equal."""
    text = text.strip()
    if len(text) <= _MAX_NUMBER_LENGTH and _NUMBER.fullmatch(text):
        return "number", Decimal(text)
    return "text", text
