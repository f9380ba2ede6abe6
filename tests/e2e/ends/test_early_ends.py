"""`--fail-on-error` ends a run early; `on_end` of a plan is run when a run ends, and changes nothing."""

import json
import signal
from pathlib import Path

import pytest

from tests.e2e.proctor import Server, begin, ended, exits, proctor, rows
from tests.e2e.scripted import ScriptedEndpoint, reply, write_plan
from tests.pace import slowly, until

FAILED = reply(500, b'{"error": {"message": "oops"}}')
REJECTED = reply(400, b'{"error": {"message": "oops"}}')
NOTIFY = """\
#!/bin/sh
echo "$PROCTOR_RUN $PROCTOR_STATE $PROCTOR_EXIT_CODE $1 $PROCTOR_STOPPED" >> notified.txt
exit ${NOTIFY_CODE:-0}
"""


def plan(folder: Path, worker: Server, endpoint: ScriptedEndpoint, more: str = "") -> None:
    write_plan(folder, worker, endpoint.url, f"limits: {{patience_s: {slowly(60)}}}", more, max_tries=1)
    (folder / "notify").write_text(NOTIFY)
    (folder / "notify").chmod(0o755)


@pytest.mark.parametrize(("limit", "at_least"), [("3", 3), ("25%", 5)])
def test_a_run_ends_once_so_many_trials_are_unscored_and_a_resume_goes_on(
    limit: str, at_least: int, tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.always = REJECTED
    plan(tmp_path, worker, endpoint)
    early = exits(2, "run", "plan.yaml", "--name", "r", "--fail-on-error", limit, cwd=tmp_path)
    assert f"stopped: --fail-on-error {limit}: " in early.stderr
    assert "oops" in early.stderr
    unscored = [row for row in rows("r", tmp_path) if row["reason"] == "agent_error"]
    assert at_least <= len(unscored) <= at_least + 1
    assert json.loads(proctor("status", "r", "--json", cwd=tmp_path).stdout)["state"] == "interrupted"

    again = exits(2, "resume", "r", "--fail-on-error", limit, cwd=tmp_path)
    assert f"stopped: --fail-on-error {limit}: " in again.stderr
    endpoint.always = False
    resumed = exits(0, "resume", "r", "--fail-on-error", limit, cwd=tmp_path)
    assert "stopped: " not in resumed.stderr


def test_fewer_unscored_trials_than_the_limit_end_no_run(
    tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.bad = [REJECTED, REJECTED]
    plan(tmp_path, worker, endpoint)
    whole = exits(1, "run", "plan.yaml", "--name", "r", "--fail-on-error", "3", cwd=tmp_path)
    assert "stopped: " not in whole.stderr
    assert len(endpoint.requests) == 20


@pytest.mark.parametrize("limit", ["0", "0%", "101%", "many", "-1", "0.5"])
def test_a_limit_that_is_none_is_refused_in_one_message(limit: str, tmp_path: Path) -> None:
    refused = exits(2, "run", "plan.yaml", f"--fail-on-error={limit}", cwd=tmp_path)
    assert f"--fail-on-error {limit}: give a number of trials from 1, or a share such as 10%" in refused.stderr


def test_on_end_is_run_after_each_run_and_resume_with_its_state(
    tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.always = FAILED
    plan(tmp_path, worker, endpoint, "on_end: [./notify, 'two words; $(x)']")
    early = proctor("run", "plan.yaml", "--name", "r", "--fail-on-error", "1", cwd=tmp_path)
    endpoint.always = False
    resumed = proctor("resume", "r", cwd=tmp_path, NOTIFY_CODE="7")
    assert (early.returncode, resumed.returncode) == (1, 0), resumed.stderr
    assert "on_end: ./notify: exit code 7" in resumed.stderr
    first, second = (tmp_path / "notified.txt").read_text().splitlines()
    run = tmp_path / "runs" / "r"
    assert first.startswith(f"{run} interrupted 1 two words; $(x) --fail-on-error 1: ")
    assert second == f"{run} finished 0 two words; $(x) "


def test_on_end_that_is_not_there_is_a_warning_and_a_refused_run_runs_none(
    tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    plan(tmp_path, worker, endpoint, "on_end: [./no-such-program]")
    whole = exits(0, "run", "plan.yaml", "--name", "r", "--limit", "1", cwd=tmp_path)
    assert "on_end: ./no-such-program: No such file or directory" in whole.stderr
    exists = exits(2, "run", "plan.yaml", "--name", "r", cwd=tmp_path)
    assert "on_end" not in exists.stderr


def test_on_end_that_is_no_list_of_words_is_told_by_its_line(
    tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    plan(tmp_path, worker, endpoint, "on_end: ./notify me")
    refused = exits(2, "run", "plan.yaml", cwd=tmp_path)
    assert "plan.yaml:6: on_end: must be a list" in refused.stderr


def test_on_end_is_told_of_an_interrupted_run(tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint) -> None:
    endpoint.always = True
    plan(tmp_path, worker, endpoint, "on_end: [./notify, word]")
    with ended():
        client = begin("run", "plan.yaml", "--name", "r", cwd=tmp_path)
        until(lambda: bool(endpoint.requests))
        client.send_signal(signal.SIGINT)
        assert client.stderr is not None
        assert any("draining" in line for line in client.stderr)
        client.send_signal(signal.SIGINT)
        assert client.wait(slowly(60)) == 130
    assert (tmp_path / "notified.txt").read_text() == f"{tmp_path / 'runs' / 'r'} interrupted 130 word interrupted\n"
