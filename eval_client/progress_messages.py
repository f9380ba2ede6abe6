"""Names the slow steps of a command while they begin; imports nothing that is slow itself."""

import sys

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
