"""Finds environment classes by name among entry points; imports only the requested one."""

import importlib
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from importlib.util import find_spec

from proctor.entry_points import FOREIGN_ENVIRONMENTS, entry_points, missing
from proctor.environment import Environment

GROUP = "proctor.environments"
FOREIGN_GROUP = FOREIGN_ENVIRONMENTS
"""Environments that are clients of other programs' servers. They have no samples of their own, so nothing plays them
unless a plan names them with an address."""


class UnknownEnvironment(ValueError):
    """No installed package offers an environment of this name."""


def names() -> list[str]:
    """The names of all installed environments that bring their samples, sorted; imports none of them."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def foreign_names() -> list[str]:
    """The names of all installed environments that other programs' servers play, sorted; imports none of them."""
    return sorted({entry.name for entry in entry_points(group=FOREIGN_GROUP)})


def load(name: str) -> type[Environment]:
    """The environment class of this name.

    Raises UnknownEnvironment; ImportError, with the fix, where its extra is missing, its package is broken or a second
    package has an environment of this name.
    """
    return _import(_entry(name))


def scales(name: str) -> Mapping[str, tuple[float, float]]:
    """The scales of this environment's metrics: by `SCALES` of its top package where there is one, else by its class.

    Raises as `load` does.
    """
    entry = _entry(name)
    declared = getattr(importlib.import_module(entry.module.partition(".")[0]), "SCALES", None)
    found: Mapping[str, tuple[float, float]] = _import(entry).scales if declared is None else declared.get(name, {})
    return found


def _entry(name: str) -> EntryPoint:
    found = {entry.value: entry for group in (GROUP, FOREIGN_GROUP) for entry in entry_points(group=group, name=name)}
    if not found:
        if (fix := missing(FOREIGN_GROUP, name)) is not None:
            raise ImportError(f"environment {name!r} is not installed; {fix}")
        known = ", ".join([*names(), *foreign_names()]) or "none"
        raise UnknownEnvironment(f"unknown environment {name!r}; installed are: {known}")
    if len(found) > 1:
        offers = " and ".join(sorted(f"{entry.value} of {_package(entry)}" for entry in found.values()))
        raise ImportError(f"environment {name!r} is offered twice, by {offers}; uninstall one of them")
    return next(iter(found.values()))


def _import(entry: EntryPoint) -> type[Environment]:
    try:
        loaded = entry.load()
    except ModuleNotFoundError as error:
        if (found := _found_without(entry, error)) is not None:
            what = f"{found} has no module {error.name!r} (of {_package(entry)})"
            raise ImportError(f"{what}; rename it if it is another package of this name") from error
        raise ImportError(f"{error}; install what it needs: pip install '{_package_with_extra(entry)}'") from error
    except AttributeError as error:
        raise ImportError(f"entry point {entry.value!r} of {_package(entry)} can't be found: {error}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, Environment)):
        raise ImportError(f"entry point {entry.value!r} of {_package(entry)} is not an Environment class")
    return loaded


def _found_without(entry: EntryPoint, error: ModuleNotFoundError) -> str | None:
    """Where the top package of an entry point is found, if a module of that package is what is missing."""
    top = entry.value.partition(":")[0].partition(".")[0]
    if error.name is None or not error.name.startswith(f"{top}."):
        return None
    spec = find_spec(top)
    places = [] if spec is None else [*(spec.submodule_search_locations or ()), spec.origin]
    return next((place for place in places if place), None)


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "an unnamed package"


def _package_with_extra(entry: EntryPoint) -> str:
    """The package to install for an environment; with the extra of the environment's name where there is one."""
    extras = (entry.dist.metadata.get_all("Provides-Extra") if entry.dist is not None else None) or []
    return f"{_package(entry)}[{entry.name}]" if entry.name in extras else _package(entry)
