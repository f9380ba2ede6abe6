"""`proctor stss import`: the layout of the paper's repository becomes a folder that `data` takes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from environments.stss.commands import stss
from environments.stss.dataset import SHIPPED
from environments.stss.environment import Stss
from tests.support import SHARED_DATA

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


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(stss, ["import", *map(str, arguments)])
    return result.exit_code, result.output


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The shipped town as the paper's repository would have it, four of its tasks in the first file."""
    return lay_out(SHIPPED, tmp_path / "repository", first=4)


def test_an_imported_town_is_played_as_the_same_town_in_a_folder_of_its_own(repository: Path, tmp_path: Path) -> None:
    (repository / "LICENSE").write_text("Their licence.")
    code, told = run(repository, tmp_path / "new" / "town")
    assert (code, told) == (
        0,
        f"{tmp_path / 'new' / 'town'}: 6 tasks, 2 templates, 12 characters; name it as `data` of a task\n",
    )
    imported = Stss(data=tmp_path / "new" / "town")
    assert imported.samples() == Stss().samples()
    assert imported.digest() == Stss().digest()
    assert Stss(data=tmp_path / "new" / "town", templates=1).digest() == Stss(templates=1).digest()
    assert (tmp_path / "new" / "town" / "LICENSE").read_text() == "Their licence."
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["town"]


@pytest.mark.shared
def test_the_public_data_comes_out_of_the_repositorys_layout_as_it_is(tmp_path: Path) -> None:
    public = SHARED_DATA / "stss"
    code, told = run(lay_out(public, tmp_path / "repository", first=15), tmp_path / "town")
    assert code == 0
    assert "20 tasks, 5 templates, 25 characters" in told
    assert Stss(data=tmp_path / "town", history=True).digest() == Stss(data=public, history=True).digest()


def without(path: str) -> Callable[[Path], object]:
    return lambda repository: shutil.rmtree(whole) if (whole := repository / path).is_dir() else whole.unlink()


def with_text(path: str, text: str) -> Callable[[Path], object]:
    return lambda repository: (repository / path).write_text(text)


TASK = "environment/data/task_0905/tasks.json"


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (without("environment/data/task_0905"), "environment/data/task_0905/tasks*.json is missing; give a whole"),
        (without("environment/data/characters"), "characters/characteristics.json is missing"),
        (without("environment/data/meta_tasks_240208"), "meta_task_dlc_240208.json is missing"),
        (without("environment/frontend_server/static_dirs"), "matrix/maze_meta_info.json is missing"),
        (without("environment/frontend_server/storage"), "environment/0.json is missing"),
        (with_text(TASK, "{"), "tasks.json: is not JSON"),
        (with_text(TASK, "{}"), "tasks.json: must be a list of tasks"),
        (with_text(TASK, "[{}]"), "repository: tasks.json: 0.goal: "),
        (with_text("environment/data/characters/characteristics.json", "[]"), "repository: characteristics.json: "),
    ],
)
def test_a_repository_that_is_not_whole_is_refused_and_nothing_is_left(
    repository: Path, tmp_path: Path, damage: Callable[[Path], object], told: str
) -> None:
    damage(repository)
    code, output = run(repository, tmp_path / "town")
    assert (code, output.count("Error: ")) == (2, 1)
    assert told in " ".join(output.split())
    assert [path.name for path in tmp_path.iterdir()] == ["repository"]


def test_a_folder_that_is_there_is_left_alone(repository: Path, tmp_path: Path) -> None:
    assert run(repository, tmp_path / "town")[0] == 0
    code, output = run(repository, tmp_path / "town")
    assert (code, "already exists; give a new folder" in output) == (2, True)
    (tmp_path / "empty").mkdir()
    assert run(repository, tmp_path / "empty")[0] == 0
    (tmp_path / "file").touch()
    assert run(repository, tmp_path / "file" / "town")[0] == 2
    assert run(tmp_path / "nowhere", tmp_path / "new")[0] == 2
