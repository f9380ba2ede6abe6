"""Lays a town out as the repository of the paper of STSS does (commit 103e72d)."""

import json
import shutil
from pathlib import Path

DATA = Path("environment/data")
FRONTEND = Path("environment/frontend_server")
BASE = FRONTEND / "storage" / "clipped_the_ville_n25"
ASSETS = FRONTEND / "static_dirs" / "assets" / "the_ville"


def lay_out(town: Path, repository: Path, first: int) -> Path:
    """A repository of a folder in the format of `data`; `first` tasks are in tasks.json, others in tasks_dlc.json."""
    tasks = json.loads(next(town.glob("tasks*.json")).read_text())
    _write(repository / DATA / "task_0905" / "tasks.json", json.dumps(tasks[:first], indent=4))
    _write(repository / DATA / "task_0905" / "tasks_dlc.json", json.dumps(tasks[first:], indent=4))
    templates = next(town.glob("templates*.json"))
    _write(repository / DATA / "meta_tasks_240208" / "meta_task_dlc_240208.json", templates.read_text())
    _write(repository / DATA / "meta_tasks_240208" / "meta_task_public_activity_240208.json", "[]")
    _write(repository / DATA / "characters" / "characteristics.json", (town / "characteristics.json").read_text())
    _write(repository / BASE / "environment" / "0.json", (town / "initial_positions.json").read_text())
    for person in (town / "personas").iterdir():
        shutil.copytree(person, repository / BASE / "personas" / person.name / "bootstrap_memory")
    shutil.copytree(town / "matrix", repository / ASSETS / "matrix")
    for history in town.glob("agent_history_init*.csv"):
        shutil.copy(history, repository / ASSETS / "agent_history_init_n25.csv")
    return repository


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
