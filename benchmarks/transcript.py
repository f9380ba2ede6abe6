"""Prints one trial's transcript: `python -m benchmarks.transcript RUN_FOLDER TRIAL`."""

import sys
from pathlib import Path

from eval_client.store.connection import connect, sqlite_url
from eval_client.store.store import Store


def transcript(folder: Path, trial: int) -> None:
    """Every turn of a trial's newest journal."""
    _, turns, _ = Store(connect(sqlite_url(folder)), folder.name).journal(trial)
    if not turns:
        raise SystemExit(f"no turns of trial {trial} in {folder}")
    for turn in turns:
        print(turn.model_dump_json())


if __name__ == "__main__":
    transcript(Path(sys.argv[1]), int(sys.argv[2]))
