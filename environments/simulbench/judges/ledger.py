"""What the models of the environment's side have cost so far."""

from pathlib import Path


class Ledger:
    """A file of the tokens that were paid for, a number a line; any number of processes may add."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, tokens: int) -> None:
        """Write down what was paid."""
        with self._path.open("a") as file:
            file.write(f"{tokens}\n")

    def spent(self) -> int:
        """The sum of all that was paid."""
        return sum(map(int, self._path.read_text().split())) if self._path.exists() else 0
