"""The screen of a run with a slow agent: live on a terminal, in lines elsewhere."""

import re
import time
from pathlib import Path

from tests.e2e.commands.terminal import on_a_terminal
from tests.e2e.proctor import exits

PLAN = """\
agents: [{name: slow, function: ./agent.py:answer, concurrency: 1}]
tasks: [{name: ltp, environment: ltp}, {name: db, environment: db}]
limits: {trial: {turns: %d}}
"""
AGENT = """\
import asyncio

async def answer(messages, tools):
    await asyncio.sleep(0.5)
    return "Answer: none"
"""


def written(folder: Path, turns: int) -> None:
    (folder / "plan.yaml").write_text(PLAN % turns)
    (folder / "agent.py").write_text(AGENT)


def test_keys_leave_nothing_on_the_live_screen(tmp_path: Path) -> None:
    written(tmp_path, 4)
    with on_a_terminal("run", "plan.yaml", "--name=r", "--limit=1", cwd=tmp_path, TERM="xterm") as (process, terminal):
        terminal.until("mean score")
        for _ in range(2):
            terminal.type(b"typed\n")
            assert "typed" not in terminal.until("mean score")
        assert "typed" not in terminal.rest()
        assert process.wait() == 0


def test_lines_come_when_trials_end_and_say_once_what_is_waited_for(tmp_path: Path) -> None:
    written(tmp_path, 24)  # for 12 s
    begun = time.monotonic()
    lines = exits(0, "run", "plan.yaml", "--name=r", "--limit=1", cwd=tmp_path).stderr.splitlines()
    before = [line for line in lines if "| scored 0 |" in line]
    causes = [cause for line in before for cause in re.findall(r"\| left \? \| waits for (\w+): db", line)]
    assert causes in (["agent"], ["task", "agent"])  # a slow machine is seen before it has begun a trial
    assert len(before) <= len(causes) + (time.monotonic() - begun) // 60
    assert sum("waits for" in line for line in lines) == len(causes)
    assert "r: 2/2 trials" in "".join(lines)
