"""The facts that hold at a moment, indexed so that patterns are matched without a search."""

from collections import defaultdict
from collections.abc import Collection, Iterable

from environments.alfworld.problem import Fact

Arguments = tuple[str, ...]


class Facts:
    """A changing set of facts. What was deleted is kept as a fact of its own, of the predicate `not_...`."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        # dicts serve as sets that keep an order, so that equal sessions find equal things first
        self._all: defaultdict[str, dict[Arguments, None]] = defaultdict(dict)
        self._with: defaultdict[tuple[str, int, str], dict[Arguments, None]] = defaultdict(dict)
        for predicate, *arguments in facts:
            self._put(predicate, tuple(arguments))

    def copy(self) -> "Facts":
        """The same facts, to be changed apart from these."""
        other = Facts(())
        other._all.update((key, found.copy()) for key, found in self._all.items())
        other._with.update((key, found.copy()) for key, found in self._with.items())
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
        return self._with.get((predicate, position, value), ())

    def _put(self, predicate: str, arguments: Arguments) -> None:
        self._all[predicate][arguments] = None
        for position, value in enumerate(arguments):
            self._with[predicate, position, value][arguments] = None

    def _drop(self, predicate: str, arguments: Arguments) -> None:
        if arguments in self._all.get(predicate, ()):
            del self._all[predicate][arguments]
            for position, value in enumerate(arguments):
                del self._with[predicate, position, value][arguments]
