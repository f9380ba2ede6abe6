"""Imports the paper's repository (arXiv 2404.05337) to a folder for the field `data`."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from environments.stss.dataset import Data
from environments.stss.town.files import parsed

TASKS = "environment/data/task_0905"
BASE = "environment/frontend_server/storage/clipped_the_ville_n25"
"""The simulation from which all tasks start."""
ASSETS = "environment/frontend_server/static_dirs/assets/the_ville"
COPIED = {
    "characteristics.json": "environment/data/characters/characteristics.json",
    "initial_positions.json": f"{BASE}/environment/0.json",
    "templates.json": "environment/data/meta_tasks_240208/meta_task_dlc_240208.json",
    "matrix/maze_meta_info.json": f"{ASSETS}/matrix/maze_meta_info.json",
    "matrix/maze/": f"{ASSETS}/matrix/maze/*.csv",
    "matrix/special_blocks/": f"{ASSETS}/matrix/special_blocks/*.csv",
}
"""A file, or a folder that ends with a slash -> the files of the repository for it."""
IF_THERE = {"LICENSE": "LICENSE", "agent_history_init_n25.csv": f"{ASSETS}/agent_history_init_n25.csv"}


def import_repository(repository: Path, folder: Path) -> tuple[int, int, int]:
    """Copies the data of a checkout of the repository to a new folder, checked, and completely or not at all.

    The files of tasks are merged into one. Returns the numbers of tasks, templates and characters. Raises ValueError
    with file, field and fix, and OSError if the folder can't be written.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ValueError(f"{folder}: already exists; give a new folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as part:
        made = Path(part) / "data"
        for source, name in _copies(repository):
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, made / name)
        tasks = json.dumps(_tasks(repository), ensure_ascii=False, indent=1)
        (made / "tasks.json").write_text(tasks + "\n", encoding="utf-8")
        data = Data(made)
        try:
            counts = len(data.tasks), len(data.templates), len(data.town.personas)
        except ValueError as error:  # with paths of the repository
            raise ValueError(f"{repository}: {str(error).replace(f'{made}/', '')}") from error
        made.rename(folder)
    return counts


def _copies(repository: Path) -> Iterator[tuple[Path, str]]:
    """Yields each file of the repository with its name in the folder. Raises ValueError if one is missing."""
    for name, source in COPIED.items():
        yield from ((path, f"{name}{path.name}" if name.endswith("/") else name) for path in _found(repository, source))
    for memory in _found(repository, f"{BASE}/personas/*/bootstrap_memory/spatial_memory.json"):
        yield memory, f"personas/{memory.parent.parent.name}/{memory.name}"
    for name, source in IF_THERE.items():
        if (repository / source).is_file():
            yield repository / source, name


def _found(repository: Path, pattern: str) -> list[Path]:
    found = sorted(repository.glob(pattern))
    if not found:
        raise ValueError(
            f"{repository}: {pattern} is missing; give a whole checkout of Social-Tasks-in-Sandbox-Simulation"
        )
    return found


def _tasks(repository: Path) -> list[object]:
    """The tasks of all files, in the order of their names. Raises ValueError."""
    tasks: list[object] = []
    for path in _found(repository, f"{TASKS}/tasks*.json"):
        found = parsed(path)
        if not isinstance(found, list):
            raise ValueError(f"{path}: must be a list of tasks; correct it")
        tasks += found
    return tasks
