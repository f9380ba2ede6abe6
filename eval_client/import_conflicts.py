"""Finds other packages that hide ours by having the same name. Imports the standard library alone."""

from importlib.util import find_spec
from pathlib import Path

OURS = ("agent_server", "environments", "eval_client", "proctor", "task_server")


def shadowed() -> str | None:
    """What to tell the user where one of our packages can't be imported for another one of its name; None else."""
    here = Path(__file__).resolve().parent.parent
    for name in OURS:
        spec = find_spec(name)
        places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
        found = next((Path(place) for place in places if place), None)
        if found is None:
            continue
        folder = found.parent if found.name == "__init__.py" else found
        if folder.resolve().parent != here:
            return (
                f"{folder} shadows the package {name!r} of Proctor in {here}, which it needs; rename it, or take the "
                "folder that it is in off PYTHONPATH"
            )
    return None
