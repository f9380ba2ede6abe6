"""How a command that plays a run ends."""

from collections.abc import Coroutine
from pathlib import Path

import pytest

from eval_client.cli import play as playing
from eval_client.core.progress import RunResult
from eval_client.plan.plan import Plan
from eval_client.run.request import RunRequest
from eval_client.store.connection import connect
from eval_client.store.store import Store
from proctor import event_loop


def test_ctrl_c_while_the_report_waits_for_the_store_is_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(main: Coroutine[None, None, RunResult]) -> RunResult:
        main.close()
        return RunResult(None, {})

    def show_result(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(event_loop, "run", run)
    monkeypatch.setattr(playing, "show_result", show_result)
    plan = Plan.model_validate({"agents": [{"name": "reference"}], "tasks": [{"name": "t", "environment": "db"}]})
    order = RunRequest(plan, "plan.yaml", Store(connect("sqlite://"), "r"), tmp_path / "r", resume=False)
    with pytest.raises(SystemExit) as left:
        playing.play(order, quiet=True)
    assert left.value.code == 130
    assert "resume" in capsys.readouterr().err
