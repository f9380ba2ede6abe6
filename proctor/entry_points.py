"""The entry points by which packages add environments, commands, kinds of agents and forms of exports."""

import functools
import importlib.metadata
import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoints

COMMANDS = "proctor.commands"
FOREIGN_ENVIRONMENTS = "proctor.foreign_environments"
AGENT_KINDS = "proctor.agent_kinds"
EXPORTS = "proctor.exports"
FORMS = "proctor.forms"
SEPARATE: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "bridges": {
        AGENT_KINDS: ("command",),
        COMMANDS: ("serve",),
        EXPORTS: ("atif", "sft"),
        FOREIGN_ENVIRONMENTS: ("agentbench_v02", "agentrl", "openenv"),
    },
    "ray": {COMMANDS: ("up", "down")},
}
"""What our packages of their own offer: the extra that installs one -> group of entry points -> names."""


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


@functools.lru_cache
def _by_group(_path: tuple[str, ...]) -> Mapping[str, EntryPoints]:
    """The entry points of our groups that this import path leads to."""
    found = importlib.metadata.entry_points()
    return {group: found.select(group=group) for group in found.groups if group.startswith("proctor.")}
