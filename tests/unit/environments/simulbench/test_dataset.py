"""Scripts and their types from files, and what is said of files that are broken."""

import json
from pathlib import Path

import pytest

from environments.simulbench import dataset, shipped
from environments.simulbench.records import PUBLISHED_LICENCE, Dialogue, Script, Task
from tests.support import SHARED_DATA


def script(number: int, file: str, turn: int) -> Script:
    return shipped.cut(shipped.dialogues()[0], turn, "x")[0].model_copy(
        update={"id": str(number), "source_file_name": file}
    )


def test_the_smallest_turn_of_a_dialogue_is_its_first_challenging_one() -> None:
    scripts = [script(0, "a", 3), script(1, "a", 2), script(2, "b", 3), script(3, "c", 0), script(4, "b", 4)]
    places = dataset.places(scripts)
    assert list(places.values()) == ["subseqchan", "firstchan", "firstchan", "lastonly", "subseqchan"]


def test_a_file_of_types_stands_above_the_rule_and_may_name_some_scripts_only(tmp_path: Path) -> None:
    types = tmp_path / "types.json"
    types.write_text(json.dumps({"0": "subseqchan", "9": "lastonly"}))
    scripts = [script(0, "a", 3), script(1, "a", 4), script(2, "b", 4)]
    assert dataset.places(scripts, types) == {"0": "subseqchan", "1": "subseqchan", "2": "firstchan"}


def test_a_task_config_goes_by_names_and_changes_only_what_it_says(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"061#Vending_Machine": {"strategy_type": "hard"}, "9#Lift": {"request_type": "up"}}))
    tasks = shipped.tasks()
    made = {task.id: task.request_type for task in dataset.configured(tasks, file)}
    kinds = {task.id: task.request_type for task in tasks}
    assert made == kinds | {"000#Vending_Machine": f"{kinds['000#Vending_Machine']}: hard", "001#Lift": "up"}


@pytest.mark.shared
def test_numbers_of_an_earlier_list_of_tasks_dont_count(tmp_path: Path) -> None:
    """As in the published file, which has 13 entries and calls the public task `008#Chess_Player` by number 113."""
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"113#Chess_Player": {"request_type": "a move"}, "152#Gomoku_player": {}}))
    tasks = dataset.load(SHARED_DATA / "simulbench" / "simulbench_tasks_dev.jsonl", Task)
    changed = [task.id for task, old in zip(dataset.configured(tasks, file), tasks, strict=True) if task != old]
    assert changed == ["008#Chess_Player"]


def test_the_one_published_script_that_lost_its_sibling_is_a_later_turn(tmp_path: Path) -> None:
    alone = [script(154, "a", 4).model_copy(update={"licence": PUBLISHED_LICENCE}), script(155, "b", 4)]
    assert dataset.places(alone) == {"154": "subseqchan", "155": "firstchan"}
    assert dataset.places([script(154, "a", 4)]) == {"154": "firstchan"}, "a script of our own with this number"
    last = [alone[0].model_copy(update={"turn_num": 0})]
    assert dataset.places(last) == {"154": "lastonly"}
    types = tmp_path / "types.json"
    types.write_text(json.dumps({"154": "firstchan"}))
    assert dataset.places(alone, types)["154"] == "firstchan"


def test_a_first_message_may_differ_from_the_task_as_in_four_published_scripts(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(json.dumps({**script(0, "a", 2).model_dump(mode="json"), "task_description": "Be a bus."}))
    (loaded,) = dataset.load(file, Script)
    assert loaded.task_description == "Be a bus."
    assert loaded.dialogue_history[0].content != "Be a bus."


def test_a_dialogue_must_be_whole() -> None:
    whole = shipped.dialogues()[0].model_dump(mode="json")
    with pytest.raises(ValueError, match="messages must be 4 exchanges"):
        Dialogue.model_validate({**whole, "messages": whole["messages"][:-1]})


def test_ids_may_be_numbers_or_texts(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    first, second = (script(0, "a", turn).model_dump(mode="json") for turn in (2, 3))
    file.write_text(json.dumps({**first, "id": 7}) + "\n" + json.dumps({**second, "id": "007"}))
    assert [script.id for script in dataset.load(file, Script)] == ["7", "007"]
