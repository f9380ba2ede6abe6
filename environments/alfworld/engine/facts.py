"""The facts that hold now, indexed so that patterns are matched without a scan of all facts."""

from collections import defaultdict
from collections.abc import Collection, Iterable

from environments.alfworld.engine.problem import Fact

Arguments = tuple[str, ...]
Index = defaultdict[str, dict[Arguments, None]]
"""Arguments by the value at one position. Dicts serve as ordered sets: equal sessions find facts in equal order."""


class Facts:
    """A changing set of facts. A fact that was deleted is kept as a fact of the predicate `not_...`."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._all: defaultdict[str, dict[Arguments, None]] = defaultdict(dict)
        self._indexes: defaultdict[str, dict[int, Index]] = defaultdict(dict)
        """The indexes of each predicate, by position of the argument; built when they are first needed."""
        for fact in facts:
            self._all[fact[0]][fact[1:]] = None

    def copy(self) -> "Facts":
        """A copy that changes independently."""
        other = Facts()
        other._all.update((predicate, found.copy()) for predicate, found in self._all.items())
        return other

    def add(self, predicate: str, arguments: Arguments) -> None:
        """Makes the fact hold, and its negation no longer."""
        self._drop(f"not_{predicate}", arguments)
        self._put(predicate, arguments)

    def delete(self, predicate: str, arguments: Arguments) -> None:
        """Makes the fact hold no longer, and its negation hold."""
        self._drop(predicate, arguments)
        self._put(f"not_{predicate}", arguments)

    def holds(self, predicate: str, arguments: Arguments) -> bool:
        """Whether a fact holds now."""
        return arguments in self._all.get(predicate, ())

    def of(self, predicate: str) -> Collection[Arguments]:
        """The arguments of all facts of a predicate."""
        return self._all.get(predicate, ())

    def having(self, predicate: str, position: int, value: str) -> Collection[Arguments]:
        """The arguments of all facts of a predicate with this value at this position."""
        index = self._indexes[predicate].get(position)
        if index is None:
            index = self._indexes[predicate][position] = defaultdict(dict)
            for arguments in self._all.get(predicate, ()):
                index[arguments[position]][arguments] = None
        return index.get(value, ())

    def _put(self, predicate: str, arguments: Arguments) -> None:
        self._all[predicate][arguments] = None
        for position, index in self._indexes[predicate].items():
            index[arguments[position]][arguments] = None

    def _drop(self, predicate: str, arguments: Arguments) -> None:
        if self.holds(predicate, arguments):
            del self._all[predicate][arguments]
            for position, index in self._indexes[predicate].items():
                del index[arguments[position]][arguments]
