"""Official files, their index, and what is refused in them."""

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from environments.mind2web import dataset
from environments.mind2web.data import files
from environments.mind2web.data.index import index
from environments.mind2web.environment import Mind2Web

PAGE = '<html backend_node_id="1"><a backend_node_id="2"/><a backend_node_id="3"/></html>'
Record = dict[str, Any]


def action(uid: str, value: str = "", **more: object) -> Record:
    return {
        "action_uid": uid,
        "raw_html": '<html lang="en">{[\\ "é',
        "cleaned_html": PAGE,
        "operation": {"op": "TYPE", "original_op": "ENTER", "value": value},
        "pos_candidates": [{"backend_node_id": "2", "attributes": '{"a": 1}'}, {"backend_node_id": "2"}],
        "neg_candidates": [{"backend_node_id": "3"}, {"backend_node_id": "2"}],
        **more,
    }


def task(name: str, *actions: Record, **more: object) -> Record:
    said = [f"[a]  {number} -> TYPE" for number in range(len(actions))]
    return {
        "confirmed_task": f"Dö {name}",
        "actions": list(actions),
        "annotation_id": name,
        "action_reprs": said,
    } | more


def write(path: Path, *tasks: Record, **options: Any) -> Path:
    path.write_text(json.dumps(tasks, **options), encoding="utf-8")
    return path


def loaded(path: Path, cache: Path, split: str | None = None) -> Mind2Web:
    return Mind2Web(data=path, split=split, cache=cache)


def test_steps_are_flattened_in_the_order_of_the_numbers_of_the_files(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "train"
    folder.mkdir(parents=True)
    for number in (10, 2, 0):
        write(folder / f"train_{number}.json", task(f"t{number}", action("a", "one\ntwo"), action("b")))
    write(folder / "test_0.json", task("other", action("a")))
    environment = loaded(tmp_path / "data", tmp_path, "train")
    assert environment.samples() == tuple(f"train-{number:05d}" for number in range(6))
    steps = [environment.contest(sample).step for sample in environment.samples()]
    assert [(step.annotation_id, step.action_uid) for step in steps] == [
        (name, uid) for name in ("t0", "t2", "t10") for uid in "ab"
    ]
    assert [step.previous for step in steps[:2]] == [(), ("[a]  0 -> TYPE",)]
    assert (steps[0].gold_action, steps[1].gold_action, steps[0].task) == ("TYPE one", "TYPE ", "Dö t0")
    assert (steps[0].positives, steps[0].negatives, steps[0].page, steps[0].steps) == (("2",), ("3",), PAGE, 2)


@pytest.mark.parametrize("options", [{}, {"indent": 2}, {"ensure_ascii": False}, {"sort_keys": True}])
def test_any_layout_of_the_json_is_read_alike(tmp_path: Path, options: dict[str, Any]) -> None:
    whole = [task("t", action("a"), action("b")), task("u", action("a"))]
    plain = loaded(write(tmp_path / "plain.json", *whole), tmp_path)
    other = loaded(write(tmp_path / "other.json", *whole, **options), tmp_path)
    for one, two in zip(plain.samples(), other.samples(), strict=True):
        step = other.contest(two).step
        assert plain.contest(one).step == step.model_copy(update={"sample": one})


def test_the_value_of_a_click_is_passed_over(tmp_path: Path) -> None:
    clicked = action("a", operation={"op": "CLICK", "value": "x"})
    environment = loaded(write(tmp_path / "mine.json", task("t", clicked)), tmp_path)
    assert environment.contest("mine-00000").step.gold_action == "CLICK "


def test_a_broken_step_is_told_when_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.json", task("t", action("a", operation={"op": "HOVER"}), action("b")))
    environment = loaded(path, tmp_path)
    with pytest.raises(ValueError, match=r"mine\.json: step mine-00000 .*operation\.op"):
        environment.contest("mine-00000")
    assert environment.contest("mine-00001").step.action_uid == "b"


def test_an_index_is_kept_and_a_changed_file_has_another(tmp_path: Path) -> None:
    path, cache = write(tmp_path / "mine.json", task("t", action("a"))), tmp_path / "cache"
    first = index([path], None, cache)
    (kept,) = cache.iterdir()
    before = kept.stat().st_mtime_ns
    assert index([path], None, cache).head == first.head
    assert kept.stat().st_mtime_ns == before
    write(path, task("t", action("a"), action("b")))
    assert index([path], None, cache).head.steps == 2
    assert len(list(cache.iterdir())) == 2


def test_a_broken_index_is_built_anew_and_an_unwritable_folder_does_no_harm(tmp_path: Path) -> None:
    path, cache = write(tmp_path / "mine.json", task("t", action("a"))), tmp_path / "cache"
    first = index([path], None, cache)
    (kept,) = cache.iterdir()
    for broken in (b"", b"{}\n", kept.read_bytes()[:-8], kept.read_bytes()[:-3]):
        kept.write_bytes(broken)
        again = index([path], None, cache)
        assert (again.head, again[0]) == (first.head, first[0])
    (tmp_path / "file").write_text("")
    assert index([path], None, tmp_path / "file" / "below").head == first.head


def test_candidates_without_a_rank_come_last(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.json", task("t", action("a")))
    scores = tmp_path / "scores.jsonl"
    scores.write_text(json.dumps({"key": "t_a", "scores": {"3": 0.5}, "ranks": {"3": 12}}) + "\n")
    contest = Mind2Web(data=path, scores=scores, cache=tmp_path).contest("mine-00000")
    assert (contest.ranks, contest.best_rank, contest.positives) == ({"3": 12, "2": 13}, 13, ())


def test_a_step_whose_line_has_no_ranks_is_one_without_scores(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.json", task("t", action("a"), action("b")))
    lines = [{"key": "t_a", "scores": {}, "ranks": {}}, {"key": "t_b", "scores": {}, "ranks": {"2": 1, "3": 0}}]
    (tmp_path / "scores.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    environment = Mind2Web(data=path, scores=tmp_path / "scores.jsonl", cache=tmp_path)
    assert [environment.contest(sample).ranker for sample in environment.samples()] == ["bm25", "scores"]
    assert "1 of 2 steps have none" in environment.summarize([]).notes[0]


def test_packed_files_are_read_like_plain_ones(tmp_path: Path) -> None:
    for name in ("plain", "packed"):
        (tmp_path / name).mkdir()
    plain = write(tmp_path / "plain" / "mine_0.json", task("t", action("a"), action("b")))
    packed = tmp_path / "packed"
    (packed / "mine_0.json.xz").write_bytes(lzma.compress(plain.read_bytes()))
    one, two = (loaded(folder, tmp_path, "mine") for folder in (plain.parent, packed))
    assert files.split_of(packed / "mine_0.json.xz") == "mine"
    assert [one.contest(s).step for s in one.samples()[:2]] == [two.contest(s).step for s in two.samples()]


@pytest.mark.parametrize("field", ["data", "scores"])
@pytest.mark.parametrize(("name", "told"), [("cut.json.xz", "can't be unpacked.*xz"), ("folder_0.json", "is a folder")])
def test_what_cannot_be_opened_is_refused_by_name(tmp_path: Path, field: str, name: str, told: str) -> None:
    good = write(tmp_path / "mine.json", task("t", action("a")))
    (tmp_path / "cut.json.xz").write_bytes(lzma.compress(good.read_bytes())[:-20])
    (tmp_path / "folder_0.json").mkdir()
    fields: Record = {"data": good, "cache": tmp_path / "cache", field: tmp_path / name}
    if name == "folder_0.json" and field == "data":
        fields |= {"data": tmp_path, "split": "folder"}
    with pytest.raises(ValueError, match=rf"{name}: {told}"):
        Mind2Web.model_validate(fields).samples()


def test_an_unknown_sample_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.json", task("t", action("a")))
    known = dataset.load("mine", [path], None, tmp_path, allow_unranked=False)
    for sample in ("mine-00001", "mine-0", "other-00000", "mine-٠٠٠٠٠", "mine", ""):
        with pytest.raises(ValueError, match="no sample"):
            known.number(sample)
