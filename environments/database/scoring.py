"""What a session scores: its table's hash, or its answer compared with the label, as published and strictly."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from pydantic import JsonValue

from environments.database import literal
from environments.database.dataset import TableEntry
from environments.database.table_hash import TableHash
from proctor.tools import MAX_TEXT_BYTES

_MAX_NUMBER_LENGTH = 400
_MAX_EXPONENT = 1_000
_EMPHASIS = re.compile(r"(\*{1,3}|_{1,3}|`{1,3})(.+)\1", re.DOTALL)
_STOPPED = ("].", ").", "}.", '".', "'.")
_QUOTES = "\"'“”‘’"
Key = tuple[str, str | Decimal]
_FC_TOLERANCE = 0.01
_FC_ZEROS = frozenset(("none", "null", "undefined", "nan", "inf", "infinity", "-inf", "-infinity", ""))
"""Answers that FC takes for 0, in lower case."""


@dataclass(frozen=True)
class PublishedJudgement:
    """How a published version of the code judges a session."""

    equal: Callable[[str, Sequence[str]], bool]
    """Whether it accepts an answer text for a label."""
    change_needs_answer: bool
    """Whether a change counts only in a session that ended with an answer."""


def marks(
    entry: TableEntry, completed: bool, answer: str, changed: TableHash, published: PublishedJudgement
) -> dict[str, float]:
    """1 or 0 by each way to judge a session; `completed` is whether it ended with an answer.

    A change is judged by the hash of the table; in `strict` the session must be completed too.
    """
    if entry.table_hash:
        same = changed.sql == entry.table_hash
        by_published = same and (completed or not published.change_needs_answer)
        return {"compat": float(by_published), "strict": float(same and completed)}
    ways = {"compat": published.equal, "strict": strict, "strict_multiset": strict_multiset}
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


def fc(answer: JsonValue, label: JsonValue) -> bool:
    """Whether AgentBench FC accepts the answer for the label. What only `eval` could read equals nothing."""
    given, wanted = _fc_items(answer), _fc_items(label)
    if given is None or wanted is None:
        return False
    if all(map(_is_number, (*given, *wanted))):
        return len(given) == len(wanted) and _fc_pairs(given, wanted)
    return set(given) == set(wanted)


V02 = PublishedJudgement(equal=compat, change_needs_answer=False)
"""AgentBench v0.2; the answer is the text of a reply."""
FC = PublishedJudgement(equal=lambda answer, label: fc(json.loads(answer), list(label)), change_needs_answer=True)
"""AgentBench FC; the answer is a call's argument as JSON."""


def strict(answer: str, label: Sequence[str]) -> bool:
    """Whether the answer text holds the label's elements, as a set; numbers compare by value.

    A single element that is the label's text as it was written is right too.
    """
    same = set(map(_key, strict_items(answer))) == set(map(_key, label))
    return same or _same_single(answer, label)


def strict_multiset(answer: str, label: Sequence[str]) -> bool:
    """As `strict`, but with each element as often as in the label."""
    same = Counter(map(_key, strict_items(answer))) == Counter(map(_key, label))
    return same or _same_single(answer, label)


def strict_items(answer: str) -> list[str]:
    """The elements of an answer text, each as text without surrounding blanks.

    The list may be one of Python or of JSON, lack the quotes in it, have rows of one value, or stand in a text, between
    emphasis or before a full stop.
    """
    text = _bare(answer)
    value = _parsed(text)
    if isinstance(value, str):
        text, value = value, _parsed(_bare(value)) if _is_bracketed(_bare(value)) else value
    try:
        match value:
            case list() | tuple() | set() | dict():
                return [_as_text(_cell(item)) for item in value]
            case str():
                return [_as_text(value)]
    except ValueError:
        return [text]
    short = len(text) <= MAX_TEXT_BYTES and _is_bracketed(_bare(text))
    return [part.strip() for part in _fc_split(_bare(text)[1:-1])] if short else [text]


def _bare(text: str) -> str:
    """A text without blanks and emphasis around it, and without a full stop behind a list or a quoted text."""
    text = text.strip()
    while emphasised := _EMPHASIS.fullmatch(text):
        text = emphasised[2].strip()
    return text[:-1] if text.endswith(_STOPPED) else text


def _is_bracketed(text: str) -> bool:
    return text.startswith("[") and text.endswith("]")


def _parsed(text: str) -> object:
    """The value of a literal of Python or JSON; None where it is neither."""
    try:
        return literal.parse(text)
    except literal.NotALiteral:
        pass
    try:
        value: object = json.loads(text) if len(text) <= MAX_TEXT_BYTES else None
    except (ValueError, RecursionError):
        return None
    return value


def _cell(item: object) -> object:
    """The value of a row of one."""
    return item[0] if isinstance(item, tuple) and len(item) == 1 else item


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


def _same_single(answer: str, label: Sequence[str]) -> bool:
    """Whether answer and label are one element each, and the same text, or one a truth value that stands for a number.

    Numbers are not compared as the published code does, which rounds those of more than 15 digits.
    """
    given = _compat_items(answer)
    if len(given) != 1 or len(label) != 1:
        return False
    return _equal_singles(given[0], label[0]) if isinstance(given[0], bool) else given[0] == label[0]


def _key(text: str) -> Key:
    """A key that is the same for two elements exactly when they count as equal; quotes around an element don't."""
    text = text.strip().strip(_QUOTES).strip()
    try:
        number = Decimal(text) if len(text) <= _MAX_NUMBER_LENGTH else None
    except InvalidOperation:
        number = None
    if number is not None and number.is_finite() and abs(number.adjusted()) < _MAX_EXPONENT:
        return "number", number
    return "text", text


def _fc_items(answer: JsonValue) -> list[str] | None:
    """The items of an answer, normalised; None where FC fails to read any."""
    elements: Sequence[object] | None
    match answer:
        case str():
            elements = _fc_elements(answer)
        case list():
            elements = answer
        case _:
            elements = [answer]
    return None if elements is None else [_fc_normalised(str(item).strip().strip("'\"")) for item in elements]


def _fc_elements(answer: str) -> Sequence[object] | None:
    """The elements in a text: of the list it holds, or of a list of rows as MySQL's client prints it; else the text."""
    text = answer.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return [text]
    try:
        value = literal.parse(text)
    except literal.NotALiteral:
        if not literal.fails_in_eval(text):
            return None
        return _fc_row(answer) or _fc_split(text[1:-1])
    if not isinstance(value, list):
        return _fc_row(answer)
    rows = [item for item in value if isinstance(item, tuple)]
    if answer == text and len(rows) == len(value):
        return [row[0] for row in rows if len(row) == 1]
    return _fc_row(answer) or [item[0] if isinstance(item, tuple) and len(item) == 1 else item for item in value]


def _fc_row(answer: str) -> Sequence[str] | None:
    """The value of a text that looks like a list with one row of one value."""
    inner = answer.strip("[]")
    is_row = inner.count("(") == 1 and inner.startswith("(") and inner.endswith(",)")
    return [inner[1:-2]] if is_row and answer.startswith("[") and answer.endswith("]") else None


def _fc_split(text: str) -> Sequence[str]:
    """The parts between commas outside of quotes, without the quotes; parts of no characters are left out."""
    parts = [""]
    quoted = False
    for char in text:
        if char in "\"'":
            quoted = not quoted
        elif char == "," and not quoted:
            parts.append("")
        else:
            parts[-1] += char
    return [part for part in parts if part]


def _fc_normalised(item: str) -> str:
    """An item without a final `%` or else without commas; the words for nothing and infinity are 0."""
    text = item.strip()
    if text.endswith("%"):
        return text[:-1].strip()
    if not text.startswith("[") and not text.endswith("]"):
        text = text.replace(",", "")
    return "0" if text.lower() in _FC_ZEROS else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _fc_pairs(given: Sequence[str], label: Sequence[str]) -> bool:
    """Whether each number given is near a number of the label that no earlier one took."""
    left = list(map(float, label))
    for number in map(float, given):
        near = next((place for place, each in enumerate(left) if abs(number - each) <= _FC_TOLERANCE), None)
        if near is None:
            return False
        del left[near]
    return True
