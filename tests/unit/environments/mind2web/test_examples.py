"""The solved examples: our own, those of a file, and files that are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from environments.mind2web import examples, prompt
from environments.mind2web.data.files import opened, task_files
from environments.mind2web.environment import SAMPLES, Mind2Web
from environments.mind2web.examples import Prompt
from environments.mind2web.pages import page
from environments.mind2web.pages.markup import render
from environments.mind2web.pages.pruning import prune
from environments.mind2web.reply import read
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import FinishReason
from tests.support import SHARED_DATA
from tools.datagen.mind2web import generator

EXAMPLE_SEED = 2024
CHOSEN = (
    # task and step of the generator's pack, the candidates shown, whether the right one is among them
    (9, 0, ("291", "347", "414"), True),
    (0, 1, ("220", "360", "1123"), False),
    (3, 3, ("255", "338", "365"), True),
)


def message(role: str, content: object, **more: object) -> dict[str, object]:
    return {"role": role, "content": content} | more


TWO = [message("user", "1 + 1?"), message("agent", "Answer: B."), message("user", "")]


def write(path: Path, told: object) -> Path:
    path.write_text(told if isinstance(told, str) else json.dumps(told), encoding="utf-8")
    return path


def test_our_own_are_steps_of_generated_tasks_solved_rightly() -> None:
    told = examples.own_examples("cot")
    assert len(told) == 2 * len(CHOSEN)
    made = generator.generate(10, EXAMPLE_SEED).tasks
    for (number, step, shown, there), asked, answer in zip(CHOSEN, told[::2], told[1::2], strict=True):
        task: Any = made[number]
        action = task["actions"][step]
        root = page.parse(action["cleaned_html"])
        rendered = render(prune(root, page.nodes_by_id(root, shown)))
        assert asked == prompt.asked(rendered, task["confirmed_task"], task["action_reprs"][:step])
        right = {each["backend_node_id"] for each in action["pos_candidates"]}
        letters = [letter for letter, each in zip("BCD", rendered.choices, strict=True) if each.id in right]
        gold = " ".join((action["operation"]["op"], action["operation"]["value"]))
        assert read(answer.content) == ((letters[0], gold, True) if there else ("A", " ", True))


def test_our_own_show_none_of_them_a_click_and_a_selection_with_thoughts_and_without() -> None:
    with_thoughts, without = examples.own_examples("cot")[1::2], examples.own_examples("plain")[1::2]
    assert {read(each.content).action.partition(" ")[0] for each in without} == {"", "CLICK", "SELECT"}
    assert [each.content.partition("\n")[2] for each in with_thoughts] == [each.content for each in without]
    assert all(each.content.startswith("Thought: ") for each in with_thoughts)


def test_our_own_are_no_steps_of_the_shipped_tasks() -> None:
    records = (record for path in task_files(SAMPLES, "own") for record in json.loads(opened(path).read()))
    tasks = {record["confirmed_task"] for record in records}
    assert len(tasks) == 60
    styles: tuple[Prompt, ...] = ("cot", "plain")
    told = [each.content for style in styles for each in examples.own_examples(style)]
    assert not any(task in content for task in tasks for content in told)


async def test_a_broken_file_is_refused_wherever_it_is_read(tmp_path: Path) -> None:
    environment = Mind2Web(examples=write(tmp_path / "mine.json", "["))
    with pytest.raises(ValueError, match=r"mine\.json: the file.*; give AgentBench v0\.2's llm_prompt_cot\.json"):
        environment.digest()
    finish = await play_to_finish(environment, "own-00000", PolicyAgent(environment.naive("own-00000")))
    assert finish.reason is FinishReason.TASK_ERROR
    assert "mine.json" in str(finish.detail["cause"])


@pytest.mark.parametrize("name", ["large.json", "."])
def test_what_is_no_text_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "large.json").write_text(" " * (1 << 21))
    with pytest.raises(ValueError, match=rf"{tmp_path / name}: .*give AgentBench.* as `examples`"):
        Mind2Web(examples=tmp_path / name).samples()


def test_a_file_of_other_examples_than_the_published_is_told_apart(tmp_path: Path) -> None:
    scored = not_comparable_because(tmp_path, examples=None)
    assert "in Proctor's own words; give AgentBench v0.2's llm_prompt_cot.json" in str(scored)
    assert "other words" in str(not_comparable_because(tmp_path, examples=write(tmp_path / "mine.json", TWO)))


@pytest.mark.shared
@pytest.mark.parametrize("name", ["llm_prompt_cot.json", "llm_prompt.json"])
def test_no_steps_are_known_to_be_the_published_ones(tmp_path: Path, name: str) -> None:
    published = SHARED_DATA / "mind2web" / name
    for steps in (None, 100):
        assert "published 100 steps can't be verified" in str(not_comparable_because(tmp_path, published, steps))
    assert "the first 40 steps" in str(not_comparable_because(tmp_path, examples=published, steps=40))


def not_comparable_because(folder: Path, examples: Path | None, steps: int | None = None) -> str | None:
    """What is said of a task whose data and scores might be published ones."""
    html = '<html backend_node_id="1"><a backend_node_id="2"/></html>'
    action = {"action_uid": "u", "cleaned_html": html, "operation": {"op": "CLICK"}}
    task = {"annotation_id": "t", "confirmed_task": "x", "action_reprs": ["x"], "actions": [action]}
    write(folder / "data.json", [task])
    write(folder / "scores.jsonl", json.dumps({"key": "t_u", "scores": {"2": 1.0}, "ranks": {"2": 0}}) + "\n")
    data, scores = folder / "data.json", folder / "scores.jsonl"
    return Mind2Web(data=data, scores=scores, cache=folder, examples=examples, steps=steps).not_comparable_because()
