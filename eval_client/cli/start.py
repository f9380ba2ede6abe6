"""What a command says and looks for before its modules are imported. Imports the standard library alone."""

import sys
from importlib.util import find_spec
from pathlib import Path

OURS = ("agent_server", "environments", "eval_client", "proctor", "task_server")
STARTED = frozenset({"demo", "run", "resume", "join", "rescore", "doctor", "view", "up"})
"""The commands that say at once that they start; the others only print results."""


def say_start() -> None:
    """Say that the command starts, before its modules are imported."""
    if sys.argv[1:2] and sys.argv[1] in STARTED and not {"-h", "--help"} & set(sys.argv):
        say_step(f"proctor {sys.argv[1]}: starting")


def say_step(text: str) -> None:
    """Print a step on standard error, if that is a terminal and the command is not to be quiet."""
    if sys.stderr.isatty() and not {"-q", "--quiet"} & set(sys.argv):
        print(f"{text} ...", file=sys.stderr, flush=True)


def shadowed() -> str | None:
    """What to tell the user where one of our packages can't be imported for another one of its name; None else."""
    here = Path(__file__).resolve().parents[2]
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
