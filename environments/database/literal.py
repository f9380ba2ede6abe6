"""Reads the Python literals an agent writes, bounded in length and depth; nothing is ever evaluated."""

import re

Literal = str | int | float | bool | None | list["Literal"] | tuple["Literal", ...]

MAX_LENGTH = 65_536
MAX_DEPTH = 32
_TOKEN = re.compile(
    r"""[ \t]*(?:
    (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
  | (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<name>True|False|None)\b
  | (?P<mark>[\[\](),]))""",
    re.VERBOSE | re.ASCII,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\n": ""}
_NAMES = {"True": True, "False": False, "None": None}
_CLOSING = {"[": "]", "(": ")"}


class NotALiteral(ValueError):
    """The text is no literal of strings, numbers, True, False, None, lists and tuples, or is too large."""


def parse(text: str) -> Literal:
    """The value of a Python literal; `"a", "b"` without brackets is a tuple, as in Python. Raises NotALiteral."""
    if len(text) > MAX_LENGTH:
        raise NotALiteral("too long")
    tokens = _Tokens(text)
    items, commas = _items(tokens, "", 0)
    if not items:
        raise NotALiteral("empty")
    return tuple(items) if commas else items[0]


class _Tokens:
    """The tokens of a text, one after the other: (kind, text); at the end ("end", "")."""

    def __init__(self, text: str) -> None:
        self._text = text.rstrip()
        self._position = 0
        self.next = self._scan()

    def take(self) -> tuple[str, str]:
        token = self.next
        self.next = self._scan()
        return token

    def _scan(self) -> tuple[str, str]:
        if self._position >= len(self._text):
            return "end", ""
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            raise NotALiteral(f"unreadable at character {self._position}")
        self._position = match.end()
        kind = match.lastgroup or ""
        return kind, match[kind]


def _items(tokens: _Tokens, closing: str, depth: int) -> tuple[list[Literal], int]:
    """The items up to the closing mark (or the end, for ""), and how many commas stood between or after them."""
    if depth > MAX_DEPTH:
        raise NotALiteral("nested too deeply")
    items: list[Literal] = []
    commas = 0
    while tokens.next[1] != closing:
        if items and commas < len(items):
            raise NotALiteral("a comma is missing")
        items.append(_value(tokens, depth))
        if tokens.next == ("mark", ","):
            tokens.take()
            commas += 1
    tokens.take()
    return items, commas


def _value(tokens: _Tokens, depth: int) -> Literal:
    kind, text = tokens.take()
    if kind == "string":
        value = _string(text)
        while tokens.next[0] == "string":
            value += _string(tokens.take()[1])
        return value
    if kind == "number":
        return _number(text)
    if kind == "name":
        return _NAMES[text]
    if text in _CLOSING:
        items, commas = _items(tokens, _CLOSING[text], depth + 1)
        if text == "(":
            return tuple(items) if commas or not items else items[0]
        return items
    raise NotALiteral(f"unexpected {text or 'end'}")


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _string(quoted: str) -> str:
    """The text of a quoted string; a JSON surrogate pair becomes its character."""
    text = _ESCAPE.sub(_unescape, quoted[1:-1])
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "uUx" and len(code) > 1:
        return _character(int(code[1:], 16), match[0])
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _SIMPLE.get(code, code if code in "\\'\"" else match[0])


def _character(number: int, written: str) -> str:
    if number > 0x10FFFF:
        raise NotALiteral(f"no such character: {written}")
    return chr(number)
