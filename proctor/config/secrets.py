"""Settings from environment variables, else from `.env` in the working directory; secrets also from files."""

import io
import os
from pathlib import Path

from pydantic import SecretStr

from proctor.observability.redaction import remember

FILE = "_FILE"
"""Suffix of a variable that holds the path of a secret's file, as orchestrators mount secrets."""
MAX_SECRET_BYTES = 1 << 16


def setting(name: str, folder: Path | None = None) -> str | None:
    """The value of a variable, without surrounding blanks, or None. The environment takes precedence over `.env`."""
    value = os.environ.get(name)
    if value is None:
        value = _dotenv(folder or Path()).get(name)
    return value.strip() if value is not None else None


def secret(name: str) -> SecretStr | None:
    """A key or token, or None where the variable is unset or empty. Raises ValueError where it can't be one."""
    text = secret_text(name)
    if not text:
        return None
    if not (text.isascii() and text.isprintable() and " " not in text):
        raise ValueError(f"{name}: the key holds characters that no key has; copy it again")
    return SecretStr(text)


def secret_text(name: str) -> str | None:
    """The text of a variable, or of the file that NAME_FILE names, without blanks around it; None where neither is set.

    Registers the text with `proctor.observability.redaction`, which hides it in messages and logs. Raises ValueError
    where both are set, or the file can't be read.
    """
    for where in (os.environ, _dotenv(Path())):
        value, path = where.get(name), where.get(name + FILE)
        if value and path:
            raise ValueError(f"{name}: {name}{FILE} is set too; unset one of them")
        if path:
            value = _of_file(name + FILE, Path(path.strip()))
        if value is not None:
            remember(value.strip())
            return value.strip()
    return None


def _of_file(variable: str, path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(MAX_SECRET_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise ValueError(
            f"{variable}: {path} can't be read: {reason}; give the path of a file that holds the secret"
        ) from None


def parse_dotenv(text: str) -> dict[str, str]:
    """The variables of a `.env` text, as python-dotenv reads it. Nothing is expanded."""
    from dotenv import dotenv_values  # few working directories have a `.env`

    found = dotenv_values(stream=io.StringIO(text), interpolate=False)
    return {name: value for name, value in found.items() if value is not None}


def _dotenv(folder: Path) -> dict[str, str]:
    path = folder / ".env"
    return parse_dotenv(path.read_text(encoding="utf-8")) if path.is_file() else {}


def text_of(token: SecretStr | None) -> str | None:
    """A token's text, or None."""
    return token.get_secret_value() if token is not None else None
