"""What docs/how-to/coding-agents.md shows works as shown, with a client of our own in the place of a coding agent."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from eval_client.plan.entries import COMMAND_S
from eval_client.plan.plan import Plan
from proctor_bridges.mcp.episode import OVER
from proctor_bridges.mcp.frames import HANDSHAKE, MODERN
from tests.e2e.proctor import COMMAND, begin, environment
from tests.integration.mcp.clients import Protocol, walk
from tests.pace import slowly
from tests.support import ROOT, finished
from tests.tools_environment import NAME, write_distribution

GUIDE = (ROOT / "docs" / "how-to" / "coding-agents.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """The only block of a language."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)
    return str(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the script of the page, and with the programs `proctor` and `python` on the path."""
    (tmp_path / "player.py").write_text(block("python"))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, words in {"proctor": "-m eval_client.cli.main", "python": ""}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        (programs / name).chmod(0o755)
    return tmp_path


def test_the_commands_run_as_shown(folder: Path) -> None:
    ended = finished(
        ["/bin/sh", "-e", "-c", block("sh")],
        cwd=folder,
        env=environment(PATH=f"{folder / 'bin'}:{os.environ['PATH']}"),
        timeout=slowly(120),
    )
    assert ended.returncode == 0, ended.stderr
    assert "SELECT 1" in ended.stdout
    assert "commit_final_answer" in ended.stdout
    logs = sorted((folder / "runs" / "player" / "logs" / "commands").iterdir())
    assert [log.name for log in logs] == ["trial-0-attempt-1.log", "trial-1-attempt-1.log"]
    assert logs[0].read_text() == f"tools: execute_sql, commit_final_answer\n{OVER.text}\n"


def test_one_episode_is_played_as_shown(folder: Path) -> None:
    shown = block("console")
    command = re.search(r"^\$ proctor (.*)$", shown, re.MULTILINE)
    assert command is not None
    process = begin(*command[1].split(), "-T", "engine=sqlite", cwd=folder)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(5)]
    for line, expected in zip(lines, shown.splitlines()[1:], strict=True):
        assert line[:12] == expected[:12]
    url = lines[1].split()[-1]
    played = subprocess.run([sys.executable, "player.py", url], cwd=folder, capture_output=True, text=True, check=False)
    assert played.stdout.endswith(f"{OVER.text}\n"), played.stderr
    told, errors = process.communicate(timeout=slowly(60))
    assert process.returncode == 0, errors
    assert "score " in told


def test_the_plan_shown_is_a_plan() -> None:
    plan = Plan.model_validate(yaml.safe_load(block("yaml")))
    assert [(agent.name, agent.harness) for agent in plan.agents] == [("claude-code", "claude"), ("codex", "codex")]
    assert plan.trial_limits("codex").seconds == 900


def test_the_page_names_what_is_served_and_the_limit_of_time() -> None:
    for revision in (MODERN, *HANDSHAKE):
        assert revision in GUIDE
    assert f"{COMMAND_S:,.0f} where you set none" in GUIDE


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
