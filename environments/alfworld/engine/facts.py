"""The facts that hold at a moment, indexed so that patterns are matched without a search."""

from collections import defaultdict
from collections.abc import Collection, Iterable

from environments.alfworld.engine.problem import Fact

Arguments = tuple[str, ...]
Index = defaultdict[str, dict[Arguments, None]]
"""By the value at one position. Dicts serve as sets that keep an order: equal sessions find equal things first."""


class Facts:
    """A changing set of facts. What was deleted is kept as a fact of its own, of the predicate `not_...`."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._all: defaultdict[str, dict[Arguments, None]] = defaultdict(dict)
        self._indexes: defaultdict[str, dict[int, Index]] = defaultdict(dict)
        """Of each predicate, by the positions that were asked for."""
        for fact in facts:
            self._all[fact[0]][fact[1:]] = None

    def copy(self) -> "Facts":
        """The same facts, to be changed apart from these."""
        other = Facts()
        other._all.update((predicate, found.copy()) for predicate, found in self._all.items())
        return other

    def add(self, predicate: str, arguments: Arguments) -> None:
        """From now on the fact holds."""
        self._drop(f"not_{predicate}", arguments)
        self._put(predicate, arguments)

    def delete(self, predicate: str, arguments: Arguments) -> None:
        """From now on the fact doesn't hold, and that is a fact as well."""
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
