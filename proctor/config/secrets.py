"""Settings from environment variables, else from `.env` in the working directory; secrets also from files."""

import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from proctor.observability.redaction import is_secret, remember

log = logging.getLogger(__name__)
Loaded = TypeVar("Loaded")
_told = set[str]()

FILE = "_FILE"
"""Suffix of a variable that holds the path of a secret's file, as orchestrators mount secrets."""
MAX_SECRET_BYTES = 1 << 16
MAX_FILE_BYTES = 4 << 20
LOOK_S = 1.0
"""Files that may change are looked at so often at most."""


class Renewed(Generic[Loaded]):
    """What is loaded from small files, such as tokens and certificates, anew where they have changed.

    Where that fails, the earlier value stays. Raises ValueError where it can't be loaded at first. Without files it is
    loaded when it is asked for.
    """

    def __init__(self, what: str, files: Sequence[Path], load: Callable[[], Loaded]) -> None:
        self._what, self.files, self._load = what, files, load
        self._contents, self._due = tuple(map(_content, files)), time.monotonic() + LOOK_S
        self._value: Loaded | None = load() if files else None

    @property
    def value(self) -> Loaded:
        """What was loaded last."""
        if self._value is None:
            self._value = self._load()
        return self._value

    def changed(self, *, at_once: bool = False) -> bool:
        """Whether there is a new value; `at_once` also within LOOK_S after the last look."""
        if not self.files or ((now := time.monotonic()) < self._due and not at_once):
            return False
        self._due, before = now + LOOK_S, self._contents
        self._contents = tuple(map(_content, self.files))
        if self._contents == before:
            return False
        try:
            self._value = self._load()
        except ValueError as error:
            log.warning("%s; until then the earlier %s stay", error, self._what)
            return False
        log.info("%s have changed and are loaded again: %s", self._what, ", ".join(map(str, self.files)))
        return True


def _content(path: Path) -> bytes | str:
    """What a file holds, or why it can't be read."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES)
    except OSError as error:
        return error.strerror or str(error)


def setting(name: str) -> str | None:
    """The value of a variable, without surrounding blanks, or None. The environment takes precedence over `.env`."""
    value = os.environ.get(name)
    if value is None:
        value = _dotenv().get(name)
    return value.strip() if value is not None else None


def say_if_shown(where: str, text: str) -> None:
    """Log once that what stands in the place of a key is too short for a secret, or a placeholder, and not hidden."""
    if not is_secret(text) and where not in _told:
        _told.add(where)
        log.warning(
            "%s is no secret, and so not hidden: it has fewer than 8 characters or is a usual placeholder", where
        )


def secret_text(name: str) -> str | None:
    """The text of a variable, or of the file that NAME_FILE names, without blanks around it; None where neither is set.

    Registers the text with `proctor.observability.redaction`, which hides it in messages and logs. Raises ValueError
    where both are set, or the file can't be read.
    """
    value, path = text_or_file(name)
    if path is not None:
        value = file_text(f"{name}{FILE}: {path}", path).strip()
    if value is not None:
        remember(value)
    return value


def text_or_file(name: str) -> tuple[str | None, Path | None]:
    """The text of a variable without blanks around it, or the file that NAME_FILE names. Raises ValueError for both."""
    for where in (os.environ, _dotenv()):
        value, path = where.get(name), where.get(name + FILE)
        if value and path:
            raise ValueError(f"{name}: {name}{FILE} is set too; unset one of them")
        if path:
            return None, Path(path.strip())
        if value is not None:
            return value.strip(), None
    return None, None


def file_text(where: str, path: Path) -> str:
    """The text of a secret's file, of which `where` names variable and path. Raises ValueError where it is none."""
    content = _content(path)
    if isinstance(content, str):
        why = f"can't be read: {content}"
    else:
        try:
            if len(content) <= MAX_SECRET_BYTES:
                return content.decode()
            why = f"holds more than {MAX_SECRET_BYTES} bytes"
        except UnicodeDecodeError:
            why = "can't be read: it is not text"
    raise ValueError(f"{where} {why}; give the path of a file that holds the secret")


def _dotenv() -> dict[str, str]:
    """The variables of `.env`, as python-dotenv reads it. Nothing is expanded."""
    path = Path(".env")
    if not path.is_file():
        return {}
    from dotenv import dotenv_values  # few working directories have a `.env`

    found = dotenv_values(path, interpolate=False, encoding="utf-8")
    return {name: value for name, value in found.items() if value is not None}
