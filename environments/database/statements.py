"""Splits SQL into statements, and says which of them take effect."""

import re
from collections.abc import Sequence
from functools import lru_cache

from environments.database.table_hash import quoted

_TEXT = r"""'(?:[^'\\]|\\.|'')*+(?:'|\Z)|"(?:[^"\\]|\\.|"")*+(?:"|\Z)"""
_REMARK = r"(?:\#|--(?=\s|\Z))[^\n]*+|/\*(?!!).*?(?:\*/|\Z)"
_TOKEN = re.compile(rf"{_TEXT}|`(?:[^`]|``)*+(?:`|\Z)|(?P<remark>{_REMARK})|(?P<end>;)", re.DOTALL)
_BEGINNING = re.compile(rf"(?:\s|{_REMARK})*+", re.DOTALL)
_WHOLE = re.compile(r"(?:begin\s+not\s+atomic|create\s[^;(]*?\b(?:procedure|function|trigger|event))\b", re.IGNORECASE)
"""Statements that hold statements."""
_BEGINS = re.compile(r"start\s+transaction\b", re.IGNORECASE)
_COMMITS_EACH = re.compile(r"set\s+(?:session\s+|@@)?autocommit\s*=\s*(?:1|on|true)\b", re.IGNORECASE)
_BLANKS = " \t\r\n\f\v"
_WORD = re.compile(r"\w+")
_COMMITS = frozenset(
    ("commit", "begin", "create", "drop", "alter", "truncate", "rename", "lock", "grant", "revoke", "analyze")
)


def split(sql: str) -> list[str]:
    """The statements of a text, at semicolons outside of texts, names and remarks; one where they can't be told."""
    if _WHOLE.match(begun(sql)):
        return [sql]
    ends = [found.start() for found in _TOKEN.finditer(sql) if found["end"]]
    starts = [0, *(end + 1 for end in ends)]
    parts = [sql[start:end].strip(_BLANKS) for start, end in zip(starts, [*ends, len(sql)], strict=True)]
    while parts and not parts[-1]:
        parts.pop()
    return parts or [sql]


def kept(parts: Sequence[str], *, to_the_end: bool) -> list[bool]:
    """Whether each of several statements is in effect at last; `to_the_end`: also what none of them commits."""
    stays, since, marks = [True] * len(parts), 0, dict[str, int]()
    for place, part in enumerate(parts):
        said = words(part)
        if said[0] == "savepoint":
            marks[said[-1]] = place
        elif said[0] == "rollback":
            first = max(since, marks.get(said[-1], place)) if "to" in said else since
            stays[first:place] = [False] * max(0, place - first)
        elif ends_transaction(part) or (
            said[0] == "unlock" and any(words(each)[0] == "lock" for each in parts[:place])
        ):
            since = len(parts) if _COMMITS_EACH.match(begun(part)) else max(since, place + 1)
    if not to_the_end:
        stays[since:] = [False] * (len(parts) - since)
    return stays


def ends_transaction(part: str) -> bool:
    """Whether a statement ends a transaction and keeps what it did."""
    return words(part)[0] in _COMMITS or begins(part) or _COMMITS_EACH.match(begun(part)) is not None


def begins(part: str) -> bool:
    """Whether a statement begins a transaction in more than a word."""
    return _BEGINS.match(begun(part)) is not None


def one_line(sql: str) -> str:
    """SQL with blanks in place of its line breaks, but for those that end a remark."""
    end, pieces = 0, list[str]()
    for found in _TOKEN.finditer(sql):
        if found["remark"]:
            pieces += [sql[end : found.start()].replace("\n", " "), sql[found.start() : found.end() + 1]]
            end = found.end() + 1
    return "".join([*pieces, sql[end:].replace("\n", " ")])


def unqualified(sql: str, table: str) -> str:
    """SQL without the name of the database, which is the table's, before the name of the table."""
    return _qualified(table).sub(lambda found: found["kept"] or ("DO 0" if found["use"] else ""), sql)


@lru_cache(maxsize=512)
def _qualified(table: str) -> re.Pattern[str]:
    """What names the database of a table in SQL; the group `kept` is what stays of it."""
    bare = rf"|(?<![\w$`]){re.escape(table)}(?![\w$`])" if re.fullmatch(r"\w+", table) else ""
    name = f"(?:{re.escape(quoted(table))}{bare})"
    before = "from|join|into|update|table|tables|ignore|describe|desc|explain|exists|insert|replace"
    of = rf"(?:{_TEXT}|{_REMARK}|(?i:\b(?:{before})\s+)(?={name}\s*\.\s*{name})"
    shown = rf"(?i:\bshow\s+(?:full\s+)?tables\b)(?=\s+(?i:from|in)\s+{name})"
    columns = rf"(?i:\b(?:from|in)\s+){name}(?=\s+(?i:from|in)\s+{name})"
    return re.compile(
        rf"(?P<kept>{of}|{shown}|{columns}))"
        rf"(?(kept)(?:(?<=\s){name}\s*\.\s*(?={name})|\s+(?i:from|in)\s+{name})?)"
        rf"|(?P<use>\A\s*(?i:use)\s+{name}(?=\s*(?:;|\Z)))|{name}\s*\.\s*(?={name}\s*\.)",
        re.DOTALL,
    )


def begun(part: str) -> str:
    """A statement without the blanks and remarks before it."""
    return part[_BEGINNING.match(part).end() :]  # type: ignore[union-attr]


def words(part: str) -> list[str]:
    """The first words of a statement, in lower case; at least one, which may be empty."""
    return [word.lower() for word in _WORD.findall(begun(part)[:200])[:4]] or [""]
