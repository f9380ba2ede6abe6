"""The entry points by which packages add environments and commands."""

import functools
import importlib.metadata
import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoints


def entry_points(group: str, name: str | None = None) -> EntryPoints:
    """The entry points of a group; those of one name, if given. A process reads the packages' metadata once."""
    found = _by_group(tuple(sys.path)).get(group, EntryPoints())
    return found if name is None else found.select(name=name)


@functools.lru_cache
def _by_group(_path: tuple[str, ...]) -> Mapping[str, EntryPoints]:
    """The entry points of our groups that this import path leads to."""
    found = importlib.metadata.entry_points()
    return {group: found.select(group=group) for group in found.groups if group.startswith("proctor.")}
