"""The entry points by which packages add environments, commands, kinds of agents and forms of exports.

Only what is asked for by its name is imported.
"""

import functools
import importlib
import importlib.metadata
import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint, EntryPoints
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click

    from proctor.environment import Environment

ENVIRONMENTS = "proctor.environments"
FOREIGN_ENVIRONMENTS = "proctor.foreign_environments"
"""Environments for other programs' servers and formats. They have no samples of their own, so nothing plays them unless
a plan names them with an address or a folder."""
COMMANDS = "proctor.commands"
AGENT_KINDS = "proctor.agent_kinds"
EXPORTS = "proctor.exports"
FORMS = "proctor.forms"
SEPARATE: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "bridges": {
        AGENT_KINDS: ("command",),
        COMMANDS: ("harbor", "serve"),
        EXPORTS: ("atif", "sft", "every-eval-ever"),
        FOREIGN_ENVIRONMENTS: ("agentbench_v02", "agentrl", "harbor", "openenv"),
    },
    "ray": {COMMANDS: ("up", "down")},
    "slurm": {COMMANDS: ("slurm",)},
}
"""What our packages of their own offer: the extra that installs one -> group of entry points -> names."""


class UnknownEnvironment(ValueError):
    """No installed package offers an environment of this name."""


def entry_points(group: str, name: str | None = None) -> EntryPoints:
    """The entry points of a group; those of one name, if given. A process reads the packages' metadata once."""
    found = _by_group(tuple(sys.path)).get(group, EntryPoints())
    return found if name is None else found.select(name=name)


def missing(group: str, name: str) -> str | None:
    """How to install what an entry point of one of our own packages needs; None where it is there, or is not ours."""
    if entry_points(group, name):
        return None
    extras = (extra for extra, offered in SEPARATE.items() if name in offered.get(group, ()))
    extra = next(extras, None)
    return extra and f"it is in a package of its own: pip install 'proctor[{extra}]'"


def names(group: str = ENVIRONMENTS) -> list[str]:
    """The names of a group, sorted, by default those of all environments that bring their samples; imports none."""
    return sorted({entry.name for entry in entry_points(group)})


def command(name: str) -> "click.Command | None":
    """The command `proctor NAME` of a package, or None. Raises ImportError as `load` does."""
    if (fix := missing(COMMANDS, name)) is not None:
        raise ImportError(f"`proctor {name}` is not installed; {fix}")
    found: click.Command | None = next(map(_loaded, entry_points(COMMANDS, name)), None)
    return found


def load(name: str) -> "type[Environment]":
    """The environment class of this name, or the one in a file or module of the user's own.

    Raises UnknownEnvironment; ImportError, with the fix, where its extra is missing, its package is broken or a second
    package has an environment of this name; OwnFileError, which is one.
    """
    if not is_own(name):
        return _import(_entry(name))
    from proctor.own_files.loading import world_class  # 35 ms that installed environments do without

    return world_class(name)


def is_own(name: str) -> bool:
    """Whether a name is that of a file, or of an object in a module, and not of something that is installed."""
    return name.endswith(".py") or ":" in name


def installed_as(kind: "type[Environment]") -> str | None:
    """The name under which a class is installed; None where it is not."""
    offered = (entry for group in (ENVIRONMENTS, FOREIGN_ENVIRONMENTS) for entry in entry_points(group))
    near = (entry for entry in offered if f"{kind.__module__}.".startswith(f"{entry.module}."))
    return next((entry.name for entry in near if _loaded(entry) is kind), None)


def scales(name: str) -> Mapping[str, tuple[float, float]]:
    """The scales of this environment's metrics: by `SCALES` of its top package where there is one, else by its class.

    Raises as `load` does.
    """
    if is_own(name):
        return {}  # a run holds those of a world from a file
    entry = _entry(name)
    declared = getattr(importlib.import_module(entry.module.partition(".")[0]), "SCALES", None)
    found: Mapping[str, tuple[float, float]] = _import(entry).scales if declared is None else declared.get(name, {})
    return found


def _entry(name: str) -> EntryPoint:
    found = {
        entry.value: entry for group in (ENVIRONMENTS, FOREIGN_ENVIRONMENTS) for entry in entry_points(group, name)
    }
    if not found:
        if (fix := missing(FOREIGN_ENVIRONMENTS, name)) is not None:
            raise ImportError(f"environment {name!r} is not installed; {fix}")
        known = ", ".join([*names(), *names(FOREIGN_ENVIRONMENTS)]) or "none"
        raise UnknownEnvironment(f"unknown environment {name!r}; installed are: {known}")
    if len(found) > 1:
        offers = " and ".join(sorted(f"{entry.value} of {_package(entry)}" for entry in found.values()))
        raise ImportError(f"environment {name!r} is offered twice, by {offers}; uninstall one of them")
    return next(iter(found.values()))


def _import(entry: EntryPoint) -> "type[Environment]":
    from proctor.environment import Environment  # 0.1 s that lists of names do without

    loaded = _loaded(entry)
    if not (isinstance(loaded, type) and issubclass(loaded, Environment)):
        raise ImportError(f"entry point {entry.value!r} of {_package(entry)} is not an Environment class")
    return loaded


def _loaded(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except ModuleNotFoundError as error:
        if (found := _found_without(entry, error)) is not None:
            what = f"{found} has no module {error.name!r} (of {_package(entry)})"
            raise ImportError(f"{what}; rename it if it is another package of this name") from error
        raise ImportError(f"{error}; install what it needs: pip install '{_package_with_extra(entry)}'") from error
    except AttributeError as error:
        raise ImportError(f"entry point {entry.value!r} of {_package(entry)} can't be found: {error}") from error


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
    """The package to install for an entry point; with the extra of its name where there is one."""
    extras = (entry.dist.metadata.get_all("Provides-Extra") if entry.dist is not None else None) or []
    return f"{_package(entry)}[{entry.name}]" if entry.name in extras else _package(entry)


@functools.lru_cache
def _by_group(_path: tuple[str, ...]) -> Mapping[str, EntryPoints]:
    """The entry points of our groups that this import path leads to."""
    found = importlib.metadata.entry_points()
    return {group: found.select(group=group) for group in found.groups if group.startswith("proctor.")}
