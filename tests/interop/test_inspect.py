"""Inspect's and inspect-scout's own tools over the logs of a demo, and Inspect's viewer in a browser."""

import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.browser import chromium
from tests.e2e.proctor import exits
from tests.interop.counterparts import environment, interpreter, run
from tests.pace import slowly, until
from tests.support import free_port
from tests.unit.eval_client.report.test_exports import rows


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a demo's run, three agents on each task, with its logs in `inspect`."""
    folder = tmp_path_factory.mktemp("inspect")
    exits(0, "demo", "--limit=1", "-o", "runs", cwd=folder)
    made = next((folder / "runs").iterdir())
    for options in (["--as=inspect"], ["--what=trials"], ["--what=turns"]):
        exits(0, "export", str(made), *options, cwd=made)
    return made


def test_frames_scores_and_scans_have_every_log_trial_and_answer(demo: Path, tmp_path: Path) -> None:
    trials, turns = rows(demo / "trials.jsonl"), rows(demo / "turns.jsonl")
    assert len({row["agent"] for row in trials}) == 3
    (told,) = run("inspect", "use_inspect.py", demo / "inspect", tmp_path / "scans")
    assert told["evals"] == len({(row["agent"], row["task"]) for row in trials})
    uuids = {f"{demo.name}-{row['id']}": row for row in trials}
    assert set(told["samples"]) == set(uuids)
    answers = Counter(f"{demo.name}-{turn['trial']}" for turn in turns if turn["action"] is not None)
    assert told["answers"] == answers
    assert told["messages"][0] == told["messages"][1] > sum(answers.values()), "each message has an id of its own"
    assert {uuid: count for uuid, kind, count in told["events"] if kind == "model"} == answers
    assert told["scored"] == [["includes", "proctor"]] * told["evals"]
    assert told["scanned"] == told["samples"]


@pytest.mark.browser
def test_inspects_viewer_lists_every_log_and_shows_a_turn(demo: Path, tmp_path: Path) -> None:
    program, port = Path(interpreter("inspect")).parent / "inspect", free_port()
    command = [str(program), "view", "start", "--log-dir", str(demo / "inspect"), "--port", str(port)]
    address, logs = f"http://127.0.0.1:{port}", sorted((demo / "inspect").iterdir())
    with (
        (tmp_path / "output").open("w") as output,
        subprocess.Popen(command, stdout=output, stderr=output, env=environment({})) as server,
        chromium() as browser,
    ):
        try:
            until(lambda: "http" in (tmp_path / "output").read_text(), within_s=slowly(60))
            page: Any = browser.new_page()
            page.goto(address)
            page.get_by_text(f"{len(logs)} items", exact=True).wait_for()
            log = next(path for path in logs if "_kg_" in path.name)
            (sample,) = {row["sample"] for row in rows(demo / "trials.jsonl") if row["task"] == "kg"}
            page.goto(f"{address}/#/tasks/{log.name.replace('+', '%2B')}/samples/sample/{sample}/1/")
            page.get_by_text("Transcript", exact=True).wait_for()
            page.get_by_text("model call:").first.wait_for()
        finally:
            server.terminate()
