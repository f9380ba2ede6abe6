"""A town's files: what is refused of them, and what of them is in the digest."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from environments.stss.dataset import SHIPPED
from environments.stss.environment import Stss


def broken(folder: Path, file: str, change: object) -> Stss:
    """Fernmouth with one file changed."""
    shutil.copytree(SHIPPED, folder / "data")
    path = folder / "data" / file
    assert callable(change)
    path.write_text(change(path.read_text() if path.exists() else ""))
    return Stss(data=folder / "data")


def edited(fields: Mapping[str, object]) -> Callable[[str], str]:
    """A change of JSON: fields by their dotted place."""

    def change(text: str) -> str:
        whole = json.loads(text)
        for where, value in fields.items():
            *way, last = (int(step) if step.isdigit() else step for step in where.split("."))
            inner = whole
            for step in way:
                inner = inner[step]
            inner[last] = value
        return json.dumps(whole)

    return change


@pytest.mark.parametrize(
    ("file", "change", "told"),
    [
        ("tasks.json", lambda text: "{", "tasks.json: is not JSON"),
        ("tasks.json", lambda text: text.replace('"Ada Birch"', '"Nobody"', 1), "'Nobody' is not in characteristics"),
        ("tasks.json", lambda text: text.replace('"target_num": 7', '"target_num": 0', 1), "0.task.target_num"),
        ("tasks.json", lambda text: text.replace("fernmouth_sing_along", "fernmouth_birthday"), "appears twice"),
        ("characteristics.json", lambda text: text.replace("Ada's house:", "Moon:"), "living_area"),
        ("initial_positions.json", lambda text: json.dumps({}), "Ada Birch: x: is missing"),
        ("initial_positions.json", lambda text: text.replace('"x": ', '"x": 1'), "give a tile of the home"),
        ("matrix/maze/sector_maze.csv", lambda text: text[:-20], "codes, the map has 2400 tiles"),
        ("matrix/maze/sector_maze.csv", lambda text: text.replace("101", "999"), "'999' is not in sector_blocks.csv"),
        ("matrix/maze_meta_info.json", lambda text: "{}", "maze_width"),
        ("matrix/maze_meta_info.json", lambda text: text.replace("60", "0"), "maze_meta_info.json: maze_width, "),
        ("matrix/maze/collision_maze.csv", lambda text: ",".join(["32125"] * 2_400), "csv: every tile is a wall"),
        ("characteristics.json", lambda text: "[]", "characteristics.json: the file: "),
        ("characteristics.json", edited({"Ada Birch.age": "old"}), "characteristics.json: Ada Birch: age: "),
        (
            "characteristics.json",
            edited({"Ada Birch.name": "Ada"}),
            "Ada Birch: name: is 'Ada'; give it the same name as its key",
        ),
        (
            "characteristics.json",
            edited({"Ada Birch.routine": [["25:00", "26:00", "x", "home"]]}),
            "routine.0: '25:00'",
        ),
        ("characteristics.json", edited({"Ada Birch.routine": [["9:00", "8:00", "x", "home"]]}), "end after it starts"),
        ("characteristics.json", edited({"Ada Birch.routine": [["8:00", "9:00", "x", "Moon"]]}), "routine.0.3: 'Moon'"),
        ("initial_positions.json", edited({"Ada Birch.x": 66, "Ada Birch.y": 25}), "give a tile of the home"),
        ("tasks.json", lambda text: "[]", "tasks.json: the file: "),
        ("tasks.json", lambda text: "[" * 100_000, "tasks.json: is not JSON"),
        ("tasks.json", edited({"0.task.goal.0.start_time": "tomorrow"}), "tasks.json: 0.task.goal.0.start_time: "),
        ("tasks.json", edited({"0.task.goal.0.start_time": "2023-02-15 19:00"}), "no time of 2023-02-13 or 2023-02-14"),
        ("tasks.json", edited({"0.task.goal.0.keyword": ""}), "tasks.json: 0.task.goal.0.keyword: "),
        ("tasks.json", edited({"0.task.goal.0.alter_kwd": [" "]}), "tasks.json: 0.task.goal.0.alter_kwd.0: "),
        ("tasks.json", edited({"0.task.goal.0.required_character": ["Nobody"]}), "goal.0.required_character: 'Nobody'"),
        ("templates.json", edited({"0.performer": "Nobody"}), "templates.json: 0: performer: 'Nobody'"),
        ("templates.json", edited({"0.task.target": ["Nobody"]}), "templates.json: 0: task.target: 'Nobody'"),
        ("templates.json", lambda text: "[]", "templates.json: the file: "),
        ("agent_history_init.csv", lambda text: "Who,What", "agent_history_init.csv: line 1: must be Name,Whisper"),
    ],
)
def test_broken_data_is_refused_with_file_and_fix(tmp_path: Path, file: str, change: object, told: str) -> None:
    environment = broken(tmp_path, file, change).model_copy(update={"templates": int(file == "templates.json")})
    with pytest.raises(ValueError, match=told.replace("'", ".")):
        environment.samples()


@pytest.mark.parametrize("content", [None, b"\xff\xfe"], ids=["missing", "not UTF-8"])
@pytest.mark.parametrize(
    "file",
    [
        "matrix/maze_meta_info.json",
        "matrix/maze/sector_maze.csv",
        "matrix/special_blocks/arena_blocks.csv",
        "characteristics.json",
        "initial_positions.json",
        "personas/Ada Birch/spatial_memory.json",
        "tasks.json",
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, file: str, content: bytes | None) -> None:
    shutil.copytree(SHIPPED, tmp_path / "data")
    path = tmp_path / "data" / file
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{tmp_path}.*{path.suffix}: ") as caught:
        Stss(data=tmp_path / "data").samples()
    assert type(caught.value) is ValueError


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("matrix/maze/arena_maze.csv", lambda text: text.replace("302,302", "302,0", 1)),
        ("personas/Ada Birch/spatial_memory.json", lambda text: json.dumps({"Fernmouth": {}})),
        (
            "initial_positions.json",
            lambda text: (
                text.replace('"Ada Birch"', '"_"').replace('"Ben Osei"', '"Ada Birch"').replace('"_"', '"Ben Osei"')
            ),
        ),
    ],
)
def test_all_that_shapes_a_day_is_in_the_digest(tmp_path: Path, file: str, change: object) -> None:
    assert broken(tmp_path, file, change).digest() != Stss().digest()


def test_what_people_know_of_each_other_is_in_the_digest_where_it_is_told(tmp_path: Path) -> None:
    digests = set()
    for told in ("", "Ada Birch,knows Ben Osei"):
        folder = tmp_path / str(len(told))
        shutil.copytree(SHIPPED, folder)
        (folder / "agent_history_init_n12.csv").write_text(f"Name,Whisper\n{told}\n")
        digests |= {(history, Stss(data=folder, history=history).digest()) for history in (False, True)}
    assert sorted(history for history, _ in digests) == [False, True, True]


def test_a_place_of_a_goal_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    environment = broken(
        tmp_path, "tasks.json", lambda text: text.replace('"location": "Anchor Inn"', '"location": "Moon"')
    )
    with pytest.raises(ValueError, match="'Moon' is not on the map"):
        environment.samples()
