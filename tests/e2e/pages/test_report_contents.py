"""What the HTML report of a demo run holds of the ten environments' prompts, answers and solutions."""

import json
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from eval_client.store.connection import connect, sqlite_url
from eval_client.store.store import Store
from eval_client.store.trials.trajectory import conversation, read_trajectory
from proctor.observability.redaction import visible
from tests.e2e.proctor import exits

TELLING = 30
"""Characters from which on a line is a prompt's, an answer's or a solution's, and not a word that reports have too."""


@pytest.mark.parametrize("whole", [False, True], ids=["by default", "with all trials"])
def test_only_trials_that_are_asked_for_show_what_was_said(demo: Path, tmp_path: Path, whole: bool) -> None:
    (run,) = (folder.name for folder in demo.iterdir())
    store = Store(connect(sqlite_url(demo / run)), run)
    said = set(lines(store))
    samples = {str(row["sample"]) for row in store.trial_rows()}
    trials = ",".join(str(row["id"]) for row in store.trial_rows())
    store.engine.dispose()
    assert len({task for task, _ in said}) == 10
    exits(0, "report", run, "--html", "a.html", *(["--trials", trials] if whole else []), "-o", str(demo), cwd=tmp_path)
    told = unescape((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert {task for task, line in said if line in told} == ({task for task, _ in said} if whole else set())
    assert {sample for sample in samples if sample in told} == (samples if whole else set())
    assert str(demo) not in told


def lines(store: Store) -> Iterator[tuple[str, str]]:
    """(task, line) of what environments sent, agents answered and scores rest on."""
    for row in store.trial_rows():
        trial = read_trajectory(store, int(str(row["id"])))
        parts = [json.dumps(trial.finish.detail, ensure_ascii=False, indent=2) if trial.finish else ""]
        for told in conversation(trial.turns):
            parts += [message.content for message in told.messages]
            parts += [told.action.content] if told.action else []
        found = (line.strip() for part in parts for line in part.split("\n"))
        yield from ((trial.task, visible(line)) for line in found if len(line) > TELLING)


def test_the_demo_starts_one_server(demo: Path) -> None:
    """Its one worker needs no controller, and the client has loaded the policies that its built-in agents are."""
    (run,) = demo.iterdir()
    assert {log.name for log in (run / "logs").glob("*.log")} == {"worker-1.log"}
