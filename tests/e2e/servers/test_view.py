"""`proctor view` as a process: its address, its pages while a run is there, its end, its refusals."""

import json
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.e2e.proctor import begin, ended, exits, proctor
from tests.pace import slowly

PLAN = """\
name: seen
agents:
  - {name: naive, builtin: naive}
tasks:
  - {name: riddles, environment: ltp}
"""
VIEW_TOKEN = "a-long-random-token-of-the-viewer"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with one run, called `seen`."""
    folder = tmp_path_factory.mktemp("view")
    (folder / "plan.yaml").write_text(PLAN, encoding="utf-8")
    exits(0, "run", "plan.yaml", "--name", "seen", "--limit", "2", "-q", cwd=folder)
    return folder


def get(address: str, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(address, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=slowly(30)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


@pytest.mark.parametrize("arguments", [[], ["seen"], ["latest"], ["runs/seen"]])
def test_it_prints_its_address_shows_the_run_and_ends_without_an_error(played: Path, arguments: list[str]) -> None:
    before = (played / "runs" / "seen" / "run.sqlite").read_bytes()
    with ended():
        viewer = begin("view", *arguments, "--port", "0", cwd=played)
        assert viewer.stdout is not None
        address = viewer.stdout.readline().strip()
        assert 'href="/runs/seen"' in get(address + "/")[1]
        assert get(address + "/runs/seen")[0] == 200
        told = json.loads(get(address + "/api/v1/runs/seen")[1])
        viewer.send_signal(signal.SIGINT)
        output, errors = viewer.communicate(timeout=slowly(30))
    assert (viewer.returncode, output, errors) == (0, "", "")
    reported = json.loads(proctor("report", "seen", "--json", cwd=played).stdout)
    pairs = [{name: pair[name] for name in reported["pairs"][0]} for pair in told["pairs"]]
    assert (pairs, told["state"]) == (reported["pairs"], "finished")
    assert (played / "runs" / "seen" / "run.sqlite").read_bytes() == before


@pytest.mark.smoke
def test_a_run_can_be_resumed_while_it_is_looked_at(played: Path) -> None:
    with ended():
        viewer = begin("view", "--port", "0", cwd=played)
        assert viewer.stdout is not None
        address = viewer.stdout.readline().strip()
        assert get(address + "/runs/seen")[0] == 200
        exits(0, "resume", "seen", "-q", cwd=played)
        assert get(address + "/runs/seen/trials/0")[0] == 200


def test_others_need_a_token_and_get_nothing_without_it(played: Path) -> None:
    refused = exits(2, "view", "--host", "0.0.0.0", "--port", "0", cwd=played, PROCTOR_TOKEN="")
    assert "set PROCTOR_VIEW_TOKEN to a long random text" in refused.stderr
    with ended():
        viewer = begin("view", "--host", "0.0.0.0", "--port", "0", cwd=played, PROCTOR_VIEW_TOKEN=VIEW_TOKEN)
        assert viewer.stdout is not None
        address = viewer.stdout.readline().strip().replace("0.0.0.0", "127.0.0.1")
        assert get(address + "/runs/seen")[0] == 401
        assert get(address + "/runs/seen", Authorization=f"Bearer {VIEW_TOKEN}")[0] == 200
        viewer.send_signal(signal.SIGINT)
        _, errors = viewer.communicate(timeout=slowly(30))
    assert "travel in the clear" in errors
    assert VIEW_TOKEN not in errors


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nothing"], "no run 'nothing'"),
        (["--tls-cert", "missing.pem"], "a certificate and its key go together"),
        (["--tls-cert", "missing.pem", "--tls-key", "missing.pem"], "can't be used"),
    ],
)
def test_a_mistake_is_one_message(played: Path, arguments: list[str], told: str) -> None:
    refused = exits(2, "view", *arguments, "--port", "0", cwd=played)
    assert told in refused.stderr
    assert "Traceback" not in refused.stderr
