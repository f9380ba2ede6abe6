"""The Prometheus text format."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

Labels = tuple[tuple[str, str], ...]


class Counts:
    """Counters by name and labels, which only grow."""

    def __init__(self) -> None:
        self._values: dict[str, Counter[Labels]] = {}

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Count something."""
        self._values.setdefault(name, Counter())[tuple(labels.items())] += amount  # type: ignore[assignment]

    def text(self, meanings: Mapping[str, str]) -> str:
        """The counters that `meanings` explains, in its order."""
        return "".join(
            family(name, "counter", meaning, self._values.get(name, Counter()).items())
            for name, meaning in meanings.items()
        )


def family(name: str, kind: Literal["counter", "gauge"], meaning: str, values: Iterable[tuple[Labels, float]]) -> str:
    """One metric with all its labelled values."""
    lines = [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
    lines += [f"{name}{_labels(labels)} {value:g}" for labels, value in values]
    return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
