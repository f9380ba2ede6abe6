"""What a judge model once said, by the hash of everything it was asked: a file for each reply."""

import os
import tempfile
from pathlib import Path

from environments.base import EnvironmentFault


class ReplyCache:
    """A folder that any number of processes may share; a reply, once kept, never changes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self) -> None:
        """Makes the folder. Raises EnvironmentFault where nothing can be kept in it."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self._folder).close()
        except OSError as error:
            raise EnvironmentFault(f"can't keep the host's replies: {error}; set `cache` to another folder") from error

    def get(self, key: str) -> str | None:
        """The reply kept under a key of hex digits, or None."""
        try:
            return self._path(key).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def keep(self, key: str, reply: str) -> str:
        """The reply that holds for the key from now on: another's, where one was kept first."""
        path = self._path(key)
        path.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part") as file:
            file.write(reply.encode())
            file.flush()
            os.fsync(file.fileno())
            try:
                os.link(file.name, path)
            except FileExistsError:
                return path.read_text(encoding="utf-8")
        return reply

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / key


def default_folder() -> Path:
    """Where replies are kept unless a task says otherwise: the user's folder for caches."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "proctor" / "ltp"
