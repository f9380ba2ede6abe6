"""Settings by name: from the environment, else from the `.env` file of the working directory."""

import os
import re
from pathlib import Path

from pydantic import SecretStr

_LINE = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_]\w*)[ \t]*=[ \t]*
        (?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>[^']*)'|(?P<bare>.*?))[ \t]*(?:(?<![^\s"'=])\#.*)?$""",
    re.MULTILINE | re.VERBOSE,
)


def setting(name: str, folder: Path | None = None) -> str | None:
    """The value of a variable, without surrounding blanks, or None; the real environment wins over `.env`."""
    value = os.environ.get(name)
    if value is None:
        value = _dotenv(folder or Path()).get(name)
    return value.strip() if value is not None else None


def secret(name: str) -> SecretStr | None:
    """A key or token, or None where the variable is unset or empty. Raises ValueError where it can't be one."""
    text = setting(name)
    if not text:
        return None
    if not (text.isascii() and text.isprintable() and " " not in text):
        raise ValueError(f"{name}: the key holds characters that no key has; copy it again")
    return SecretStr(text)


def parse_dotenv(text: str) -> dict[str, str]:
    """The variables of a `.env` text: NAME=value lines, `export` allowed, quotes removed, # comments skipped.

    In double quotes a backslash takes the next character as it is, and \\n is a line break. Nothing is expanded.
    """
    return {match["name"]: _value(match) for match in _LINE.finditer(text)}


def _value(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return re.sub(r"\\(.)", lambda escaped: "\n" if escaped[1] == "n" else escaped[1], match["double"])
    return match["single"] if match["single"] is not None else match["bare"]


def _dotenv(folder: Path) -> dict[str, str]:
    path = folder / ".env"
    return parse_dotenv(path.read_text(encoding="utf-8")) if path.is_file() else {}
