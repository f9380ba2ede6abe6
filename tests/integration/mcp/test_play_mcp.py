"""`proctor play --mcp`: the printed lines are enough for a client to play to the end."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.proctor import COMMAND, begin, environment
from tests.integration.mcp.clients import Protocol, walk
from tests.pace import slowly
from tests.tools_environment import NAME, write_distribution


@pytest.fixture
def path(tmp_path: Path) -> str:
    """PYTHONPATH with the environment `doors` installed."""
    write_distribution(tmp_path)
    return f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"


def url_of(process: subprocess.Popen[str]) -> str:
    """The URL that the command prints."""
    assert process.stdout is not None
    printed = next(line for line in process.stdout if line.startswith("Claude Code: "))
    assert printed.startswith("Claude Code: claude mcp add --transport http proctor http://127.0.0.1:")
    return printed.split()[-1]


@pytest.mark.parametrize("protocol", ["text", "tools"])
async def test_a_client_plays_to_the_end_and_the_score_is_printed(
    tmp_path: Path, path: str, protocol: Protocol
) -> None:
    process = begin("play", NAME, "s1", "-T", f"protocol={protocol}", "--mcp", cwd=tmp_path, PYTHONPATH=path)
    url = url_of(process)
    assert "/mcp/doors/" in url
    assert len(await walk(url, "auto", protocol)) == 5
    shown, errors = process.communicate(timeout=slowly(60))
    assert process.returncode == 0, errors
    assert "score 1.000  completed" in shown
    assert '"last": ' in shown  # the evidence
    assert ("call open_door" in shown) == (protocol == "tools")


def test_ctrl_c_while_the_agent_thinks_ends_without_a_score(tmp_path: Path, path: str) -> None:
    process = begin("play", NAME, "--mcp", cwd=tmp_path, PYTHONPATH=path)
    url_of(process)
    process.terminate()
    shown, _ = process.communicate(timeout=slowly(60))
    assert process.returncode == 130
    assert "stopped: the session has no score" in shown


def test_an_agent_plays_where_standard_input_is_closed_and_a_person_does_not(tmp_path: Path, path: str) -> None:
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND, "play", NAME]
    pipe, env = subprocess.PIPE, environment(PYTHONPATH=path)
    with subprocess.Popen([*closed, "--mcp"], cwd=tmp_path, env=env, stdout=pipe, text=True) as process:
        url_of(process)
        process.terminate()
        process.communicate(timeout=slowly(60))
    assert process.returncode == 130
    ended = subprocess.run(closed, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (ended.returncode, "standard input is closed" in ended.stderr) == (2, True)
