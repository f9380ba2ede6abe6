"""The viewer's page of a controller's workers, and of the runs that share them."""

import urllib.error
import urllib.request
from pathlib import Path

from tests.e2e.proctor import server
from tests.e2e.view.conftest import viewer
from tests.pace import slowly, until


def page(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"{address}/workers", timeout=slowly(30)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def test_the_workers_of_the_controller_that_was_named_are_shown_while_it_answers(tmp_path: Path) -> None:
    (tmp_path / "tasks.yaml").write_text("tasks: [{name: puzzles, environment: ltp, capacity: 3}]")
    (tmp_path / "runs").mkdir()
    with server("controller", cwd=tmp_path) as controller:
        options = ("--tasks=tasks.yaml", f"--controller={controller.url}", "--name=w1")
        with (
            server("worker", *options, cwd=tmp_path) as worker,
            viewer(tmp_path, "--controller", controller.url) as address,
        ):
            until(lambda: "ready" in page(address)[1])  # a task that its worker still prepares is shown as that
            status, shown = page(address)
            assert status == 200
            assert f"Workers of {controller.url}" in shown
            assert all(text in shown for text in ("w1", worker.url, "puzzles", "ready"))
            with urllib.request.urlopen(address, timeout=slowly(30)) as answer:
                assert 'href="/workers"' in answer.read().decode()
            controller.kill()
            until(lambda: page(address)[0] == 503)
            assert "refused" in page(address)[1]


def test_without_a_controller_there_is_no_such_page(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    with viewer(tmp_path) as address:
        assert page(address)[0] == 404
