"""Finds and names runs: each in a folder with its SQLite file, or all in one database server."""

import datetime
import getpass
import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path

import sqlalchemy as sa

from eval_client.store.connection import StoreError, connect, file_url, runs
from eval_client.store.store import Store
from eval_client.store.values import is_name
from proctor.config.wording import NAME
from proctor.config.yaml import FileError


def owner_name() -> str | None:
    """Whose runs are begun here: PROCTOR_USER, None where that is empty; else the name of this account, if it has one.

    An account that many share, as that of a container, sets PROCTOR_USER to nothing.
    """
    try:
        given = os.environ.get("PROCTOR_USER")
        return getpass.getuser() if given is None else given or None
    except (OSError, KeyError):
        return None


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
    """The store of the run that is named like its folder; without a URL it is SQLite in that folder, which is made.

    Raises StoreError.
    """
    if store is not None:
        return Store(connect(store, for_room=True), folder.name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"folder: {folder} can't be made: {error.strerror}; name another one") from error
    return Store(connect(file_url(folder)), folder.name)


def find_run(run: str, store: str | None, output: Path) -> tuple[Store, Path]:
    """An existing run and its folder: by path, by name, or `latest`. Raises StoreError."""
    if store is not None:
        engine = connect(store, for_room=True)
        names = [name for name, _, _ in runs(engine)]
        name = Path(run).name
        if run == "latest":
            name = next(filter(is_name, reversed(names)), name)
        elif name not in names:
            _refuse_parts(name, names)
        return Store(engine, name), output / name
    folder = latest(output) if run == "latest" else next((f for f in (Path(run), output / run) if _is_run(f)), None)
    if folder is None:
        _refuse_parts(run, [each.name for each in run_folders(output)])
        raise StoreError(f"no run {run!r}: neither a run's folder nor a name in {output}; `proctor ls` lists the runs")
    return Store(connect(file_url(folder)), folder.resolve().name), folder


def find_parts(name: str, store: str | None, output: Path) -> list[Store]:
    """The parts of a plan whose runs are NAME.KofN, by their numbers; none where there is a run of that name itself."""
    if store is not None:
        engine = connect(store, for_room=True)
        there = [run for run, _, _ in runs(engine)]
        found = [] if name in there else [Store(engine, run) for run in there if _is_part(run, name)]
    elif name == "latest" or _is_run(output / name) or _is_run(Path(name)):
        return []
    else:
        folders = [folder for folder in run_folders(output) if _is_part(folder.name, name)]
        found = [Store(connect(file_url(folder)), folder.name) for folder in folders]
    return sorted(found, key=lambda part: int(re.findall(r"\d+", part.run)[-2]))


def _refuse_parts(name: str, runs: Iterable[str]) -> None:
    """Raises StoreError where a name is that of a plan's parts together."""
    if parts := [run for run in runs if _is_part(run, name)]:
        raise StoreError(f"no run {name!r}, but the parts of a plan: name one of {', '.join(parts)}")


def _is_part(run: str, name: str) -> bool:
    return re.fullmatch(rf"{re.escape(name)}\.\d+of\d+", run) is not None


def run_folders(output: Path) -> list[Path]:
    """Run folders, oldest first; unreadable ones lead. Raises StoreError."""
    if not output.is_dir():
        return []
    try:
        found = [folder for folder in output.iterdir() if _is_run(folder)]
    except OSError as error:
        raise StoreError(f"{output}: can't be read: {error.strerror}; name another folder with -o") from error
    return sorted(found, key=_age_key)


def _age_key(folder: Path) -> tuple[str, str]:
    try:
        return Store(connect(file_url(folder)), folder.name).created_at(), folder.name
    except (StoreError, sa.exc.SQLAlchemyError):
        return "", folder.name


def latest(output: Path) -> Path | None:
    """The folder of the newest run; None where there are no runs."""
    folders = run_folders(output)
    return folders[-1] if folders else None


def _is_run(folder: Path) -> bool:
    return os.path.isfile(folder / "run.sqlite")  # False where it can't be looked at, too
