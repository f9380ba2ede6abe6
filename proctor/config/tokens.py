"""Tokens of access: the one of a variable, or the lines of a file that may change while it is used."""

import re
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import NamedTuple

from proctor.config.secrets import FILE, Renewed, file_text, say_if_shown, secret_text, text_or_file
from proctor.config.wording import NAME, WORDS
from proctor.observability.redaction import remember

_OPTION = re.compile(r"(weight|cap)=(.*)")
_WEIGHT, _CAP = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?"), re.compile(r"0*[1-9][0-9]{0,8}")


class Token(NamedTuple):
    """A token. `weight` and `cap`, the most sessions of a task, are those of the user whom `name` names."""

    text: str
    name: str = ""
    weight: float = 1.0
    cap: int | None = None


class AccessTokens:
    """The tokens of one source. A server accepts all; a client sends the first, and the next one where that is refused.

    Those of a file change with it. Where it can't be used any more the earlier ones stay, so that tokens never become
    none. Raises ValueError where it can't be used at first.
    """

    def __init__(self, *texts: str, source: str = "", file: Path | None = None) -> None:
        self.source = source
        """The variable that they come from."""
        self._fixed = tuple(map(Token, texts))
        self._at = 0
        """Which of them is sent."""
        self._file = None if file is None else Renewed("tokens", [file], partial(_tokens_of, source, file))

    @classmethod
    def of(cls, variable: str) -> "AccessTokens":
        """The token that a variable holds, those of the file that NAME_FILE names, or none. Raises ValueError."""
        if (file := text_or_file(variable)[1]) is not None:
            return cls(source=variable + FILE, file=file)
        if not (text := secret_text(variable)):
            return cls(source=variable)
        say_if_shown(variable, text)
        if not (text.isascii() and text.isprintable() and " " not in text):
            raise ValueError(f"{variable}: the key holds characters that no key has; copy it again")
        return cls(text, source=variable)

    @classmethod
    def given(cls, tokens: "AccessTokens | str | None") -> "AccessTokens":
        """The tokens, or the one of this text."""
        return tokens if isinstance(tokens, AccessTokens) else cls(*([tokens] if tokens is not None else []))

    def __bool__(self) -> bool:
        return bool(self._known)

    @property
    def may_change(self) -> bool:
        """Whether they come from a file."""
        return self._file is not None

    @property
    def all(self) -> tuple[Token, ...]:
        """Those that count now; equal until they change."""
        self.look(at_once=False)
        return self._known

    @property
    def _known(self) -> tuple[Token, ...]:
        return self._fixed if self._file is None else self._file.value

    @property
    def current(self) -> str | None:
        """The token to send."""
        tokens = self.all
        return tokens[self._at].text if tokens else None

    def other(self, refused: Collection[str]) -> str | None:
        """A token that is not among those refused, to be sent from now on. The file is read again first."""
        self.look()
        tokens = self._known
        places = [*range(self._at, len(tokens)), *range(self._at)]
        found = next((place for place in places if tokens[place].text not in refused), None)
        self._at = found or 0
        return None if found is None else tokens[found].text

    def look(self, *, at_once: bool = True) -> None:
        """Read the file again, as when a token was refused."""
        if self._file is not None and self._file.changed(at_once=at_once):
            self._at = 0


def _tokens_of(source: str, file: Path) -> tuple[Token, ...]:
    where = f"{source}: {file}"
    return tokens_in(file_text(where, file), where)


def tokens_in(text: str, where: str) -> tuple[Token, ...]:
    """The tokens in a file's lines, each `[NAME [weight=W] [cap=N] ]TOKEN`. Raises ValueError, which shows none."""
    lines: dict[int, Token] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not (words := line.split()):
            continue
        remember(words[-1])
        try:
            found = _token(words)
            for earlier, other in lines.items():
                if other.text == found.text:
                    raise ValueError(f"its token is that of line {earlier}; give each line its own")
                if found.name and other.name == found.name and other[2:] != found[2:]:
                    raise ValueError(f"the name has another weight or cap in line {earlier}; write the same in both")
        except ValueError as error:
            raise ValueError(f"{where}, line {number}: {error}") from None
        say_if_shown(where, found.text)
        lines[number] = found
    if not lines:
        raise ValueError(f"{where} is empty; write a token into it")
    return tuple(lines.values())


def _token(words: list[str]) -> Token:
    """The token of a line. Raises ValueError."""
    *before, text = words
    if _OPTION.fullmatch(text):
        raise ValueError("the token is missing; write it at the end of the line")
    if not re.fullmatch(r"[!-~]+", text):
        raise ValueError("the token holds characters that no token has; copy it again")
    if not before:
        return Token(text)
    name, *options = before
    if not re.fullmatch(NAME, name):
        raise ValueError(f"the name before the token {WORDS[NAME]}")
    given: dict[str, str] = {}
    for option in options:
        if (found := _OPTION.fullmatch(option)) is None or found[1] in given:
            raise ValueError("between name and token may stand weight=W and cap=N, each once, and nothing else")
        given[found[1]] = found[2]
    weight, cap = given.get("weight", "1"), given.get("cap")
    if not _WEIGHT.fullmatch(weight) or not float(weight):
        raise ValueError("weight must be a number over 0, such as 2 or 0.5")
    if cap is not None and not _CAP.fullmatch(cap):
        raise ValueError("cap must be a whole number of 1 or more")
    return Token(text, name, float(weight), None if cap is None else int(cap))
