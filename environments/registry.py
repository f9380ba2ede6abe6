"""From an environment's name to its class, by entry points; only the one asked for is imported."""

from importlib.metadata import EntryPoint, entry_points

from environments.base import Environment

GROUP = "proctor.environments"


class UnknownEnvironment(ValueError):
    """No installed package offers an environment of this name."""


def names() -> list[str]:
    """The names of all installed environments, sorted; imports none of them."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def load(name: str) -> type[Environment]:
    """The environment class of this name. Raises UnknownEnvironment, or ImportError where its extra is missing."""
    found: tuple[EntryPoint, ...] = tuple(entry_points(group=GROUP, name=name))
    if not found:
        raise UnknownEnvironment(f"unknown environment {name!r}; installed are: {', '.join(names()) or 'none'}")
    loaded = found[0].load()
    if not (isinstance(loaded, type) and issubclass(loaded, Environment)):
        raise TypeError(f"entry point {found[0].value!r} of environment {name!r} is not an Environment class")
    return loaded
