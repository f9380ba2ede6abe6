"""Finds and names runs: each in a folder with its SQLite file, or all in one database server."""

import datetime
import re
import secrets
from pathlib import Path

import sqlalchemy as sa

from eval_client.store.connection import StoreError, connect, runs, sqlite_url
from eval_client.store.store import Store
from proctor.config.patterns import NAME
from proctor.config.yaml import FileError


def new_name(plan: str) -> str:
    """A name for a new run: the plan's, the time, and four hex digits."""
    now = datetime.datetime.now(datetime.UTC)
    return f"{plan[:40]}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def checked_name(name: str) -> str:
    """The given name of a run, unchanged. Raises FileError where it is invalid."""
    if not re.fullmatch(NAME, name):
        raise FileError(f"--name {name}: use up to 64 letters, digits, dots, dashes and underscores")
    return name


def open_store(store: str | None, folder: Path) -> Store:
    """The store of the run that is named like its folder; without a URL it is SQLite in that folder, which is made."""
    url = store
    if url is None:
        folder.mkdir(parents=True, exist_ok=True)
        url = sqlite_url(folder)
    return Store(connect(url), folder.name)


def find_run(run: str, store: str | None, output: Path) -> tuple[Store, Path]:
    """An existing run and its folder: by path, by name, or `latest`. Raises StoreError."""
    if store is not None:
        engine = connect(store)
        names = [name for name, _, _ in runs(engine)]
        name = names[-1] if run == "latest" and names else Path(run).name
        return Store(engine, name), output / name
    folder = latest(output) if run == "latest" else next((f for f in (Path(run), output / run) if _is_run(f)), None)
    if folder is None:
        raise StoreError(f"no run {run!r}: neither a run's folder nor a name in {output}; `proctor ls` lists the runs")
    return Store(connect(sqlite_url(folder)), folder.resolve().name), folder


def run_folders(output: Path) -> list[Path]:
    """Run folders, oldest first; unreadable ones lead."""
    if not output.is_dir():
        return []
    return sorted((folder for folder in output.iterdir() if _is_run(folder)), key=_age_key)


def _age_key(folder: Path) -> tuple[str, str]:
    try:
        return Store(connect(sqlite_url(folder)), folder.name).created_at(), folder.name
    except (StoreError, sa.exc.SQLAlchemyError):
        return "", folder.name


def latest(output: Path) -> Path | None:
    """The folder of the newest run; None where there are no runs."""
    folders = run_folders(output)
    return folders[-1] if folders else None


def _is_run(folder: Path) -> bool:
    return (folder / "run.sqlite").is_file()
