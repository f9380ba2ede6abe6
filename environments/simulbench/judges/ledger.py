"""The tokens that judge and user models have used."""

from pathlib import Path


class Ledger:
    """A file of token counts, one per line; several processes may append to it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, tokens: int) -> None:
        """Appends a count."""
        with self._path.open("a") as file:
            file.write(f"{tokens}\n")

    def spent(self) -> int:
        """The sum of all counts."""
        return sum(map(int, self._path.read_text().split())) if self._path.exists() else 0
