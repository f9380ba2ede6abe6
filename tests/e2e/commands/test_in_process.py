"""Worlds and agents of the user's own in the client's process: what stops, blocks, prints or raises there."""

import json
import math
import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.commands.terminal import on_a_terminal
from tests.e2e.proctor import exits, proctor, rows
from tests.pace import slowly

WORLD = """\
import time
from proctor import Environment, Finish, FinishReason, Message, Observation

class Sums(Environment):
    def samples(self):
        return ["1", "2"]

    {play} play(self, sample, agent, seed=0):
        {before}
        action = {ask} agent.act(Observation(messages=(Message(role="user", content=sample),)))
        {after}
        return Finish(score=float(action.content == sample), reason=FinishReason.COMPLETED)
"""
PLAN = """\
agents: [{{name: mine, function: ./agent.py:answer}}]
tasks: [{{environment: ./sums.py}}]
limits: {{attempts: 2, trial: {{seconds: {seconds:g}}}}}
"""
ECHO = "def answer(messages, tools):\n    {before}\n    return messages[-1].content\n"
PROMPT = "(Pdb) "
HIDES_CURSOR, SHOWS_CURSOR = "\x1b[?25l", "\x1b[?25h"


def written(
    folder: Path, *, before: str = "", after: str = "", agent: str = "", plain: bool = False, limit_s: float = 600.0
) -> None:
    """A plan, its world and its agent; a line of each is given."""
    play, ask = ("def", "") if plain else ("async def", "await")
    (folder / "sums.py").write_text(WORLD.format(play=play, ask=ask, before=before or "pass", after=after or "pass"))
    (folder / "agent.py").write_text(ECHO.format(before=agent or "pass"))
    (folder / "plan.yaml").write_text(PLAN.format(seconds=limit_s))


def line_of(folder: Path, file: str, text: str) -> str:
    """`FILE:LINE` of the line that has a text."""
    (number,) = (number for number, line in enumerate((folder / file).read_text().splitlines(), 1) if text in line)
    return f"{folder / file}:{number}"


def all_scored(folder: Path, within_s: float = math.inf) -> bool:
    """Whether each trial has its whole score, by its first attempt, after less than so many seconds of play."""
    exits(0, "export", "r", "--to", "rows.jsonl", cwd=folder)
    trials = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    assert all(trial["seconds"] < within_s for trial in trials)
    return [(trial["score"], trial["attempts"]) for trial in trials] == [(1.0, 1), (1.0, 1)]


@pytest.mark.parametrize("plain", [False, True])
def test_a_breakpoint_in_a_world_stops_at_the_terminal_trial_by_trial(tmp_path: Path, plain: bool) -> None:
    limit_s = slowly(2)
    written(tmp_path, before="breakpoint()", plain=plain, limit_s=limit_s)
    arguments = ("run", "plan.yaml", "--in-process", "--name=r")
    with on_a_terminal(*arguments, cwd=tmp_path, COLUMNS="100", TERM="xterm") as (process, terminal):
        seen = ""
        for sample in ("1", "2"):
            seen += terminal.until(PROMPT)
            assert seen.count(HIDES_CURSOR) == seen.count(SHOWS_CURSOR) > 0, "the live screen has gone"
            time.sleep(limit_s + 1)  # which counts in no limit
            terminal.type(b"p 'sample', sample\n")
            assert f"('sample', '{sample}')" in terminal.until(PROMPT)
            terminal.type(b"n\n")  # the agent is asked meanwhile
            assert "play()" in terminal.until(PROMPT)
            terminal.type(b"p action.content\n")
            assert f"'{sample}'" in terminal.until(PROMPT).partition("\n")[2]
            terminal.type(b"c\n")
        terminal.rest()
        assert process.wait() == 0
    assert all_scored(tmp_path, within_s=limit_s)


def test_a_breakpoint_in_an_agent_stops_too_and_q_ends_the_run(tmp_path: Path) -> None:
    limit_s = slowly(2)
    written(tmp_path, agent="breakpoint()", limit_s=limit_s)
    arguments = ("run", "plan.yaml", "--name=r")
    with on_a_terminal(*arguments, cwd=tmp_path, COLUMNS="100", TERM="xterm") as (process, terminal):
        terminal.until(PROMPT)
        time.sleep(limit_s + 1)
        terminal.type(b"p len(messages)\n")
        assert "\n1\r\n" in terminal.until(PROMPT)
        terminal.type(b"c\n")
        terminal.until(PROMPT)
        terminal.type(b"q\n")
        assert "draining" in terminal.rest()
        assert process.wait() == 130
    assert sorted(str(row["score"]) for row in rows("r", tmp_path)) == ["1.0", "None"]


STATEFUL = """\
class Agent:
    stateful = True

    def answer(self, messages, tools, conversation):
        return messages[-1].content

    def end(self, conversation):
        breakpoint()
        self.over = conversation
"""


def test_q_in_the_end_of_an_agent_is_asked_once(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "agent.py").write_text(STATEFUL)
    (tmp_path / "plan.yaml").write_text(PLAN.replace("answer", "Agent").format(seconds=600))
    with on_a_terminal("run", "plan.yaml", "--name=r", cwd=tmp_path, COLUMNS="100", TERM="xterm") as (
        process,
        terminal,
    ):
        terminal.until(PROMPT)
        time.sleep(1)  # the other trial ends meanwhile
        terminal.type(b"q\n")
        assert PROMPT not in terminal.rest()
        assert process.wait() == 130


@pytest.mark.parametrize("options", [("--in-process",), ()])
def test_a_breakpoint_without_a_terminal_is_one_line_and_play_goes_on(tmp_path: Path, options: tuple[str, ...]) -> None:
    written(tmp_path, before="breakpoint()")
    said = exits(0, "run", "plan.yaml", "--name=r", "-q", *options, cwd=tmp_path).stderr
    assert all_scored(tmp_path)
    if not options:
        said = (tmp_path / "runs/r/logs/worker-1.log").read_text()
    (line,) = [line for line in said.splitlines() if "breakpoint()" in line]
    assert line_of(tmp_path, "sums.py", "breakpoint()") in line
    assert "since standard input is no terminal" in line


@pytest.mark.parametrize("options", [("--in-process",), ()])
def test_a_world_that_blocks_the_loop_is_said_once_with_its_line(tmp_path: Path, options: tuple[str, ...]) -> None:
    written(tmp_path, after="time.sleep(3)")
    said = exits(0, "run", "plan.yaml", "--name=r", "-q", *options, cwd=tmp_path).stderr
    assert all_scored(tmp_path)
    if not options:
        said = (tmp_path / "runs/r/logs/worker-1.log").read_text()
    assert said.count("has blocked the event loop for over 1 s") == 1
    assert line_of(tmp_path, "sums.py", "time.sleep") in said


def test_what_a_world_prints_and_logs_stands_above_the_live_screen(tmp_path: Path) -> None:
    written(tmp_path, before="print('printed', sample)", after="time.sleep(3)")
    arguments = ("run", "plan.yaml", "--in-process", "--name=r")
    with on_a_terminal(*arguments, cwd=tmp_path, COLUMNS="200", TERM="xterm") as (process, terminal):
        seen = terminal.rest()
        assert process.wait() == 0, seen
    lines = shown(seen)
    for text in ("printed 1", "printed 2"):
        assert text in lines
    assert any("has blocked the event loop" in line for line in lines)
    assert sum("mean score" in line for line in lines) == 1, "the live screen stands once"


def shown(written: str) -> list[str]:
    """The lines that a terminal of no end shows in the end."""
    lines, row, overwrites = [""], 0, False
    for part in re.split(r"(\r|\n|\x1b\[[0-9;?]*[A-Za-z])", written):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part == "\r":
            overwrites = True
        elif part == "\x1b[2K":
            lines[row] = ""
        elif re.fullmatch(r"\x1b\[\d*A", part):
            row = max(0, row - int(part[2:-1] or 1))
        elif part and not part.startswith("\x1b"):
            lines[row] = part if overwrites else lines[row] + part
            overwrites = False
    return [line.rstrip() for line in lines]


@pytest.mark.parametrize("options", [("--in-process",), ()])
def test_what_a_world_raises_is_told_with_the_lines_of_its_own_files(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "near.py").write_text("def judged(said):\n    return {}[said]\n")
    written(tmp_path, after="from near import judged; judged(action.content)")
    told: subprocess.CompletedProcess[str] = proctor("run", "plan.yaml", "--name=r", "-q", *options, cwd=tmp_path)
    said = told.stderr if options else (tmp_path / "runs/r/logs/worker-1.log").read_text()
    places = [line.strip() for line in said.splitlines() if line.startswith("  ")]
    assert places == [
        f"{line_of(tmp_path, 'sums.py', 'judged')} in play: from near import judged; judged(action.content)",
        f"{line_of(tmp_path, 'near.py', '{}')} in judged: return {{}}[said]",
    ]
    assert "KeyError: '1'" in said
