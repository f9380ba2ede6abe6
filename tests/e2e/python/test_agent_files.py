"""Agents from files of the user's own: in plans, by -m, at an agent server; and what a change of them comes to."""

import json
import urllib.request
from pathlib import Path

import pytest

from proctor import open_run
from tests.e2e.proctor import TOKEN, exits, server

AGENT = """\
import helper

def answer(messages, tools, turn, word="look"):
    return f"ACTION: {helper.said(word)}"  # one of many

class Counts:
    def __init__(self, word):
        self.word, self.calls = word, 0

    async def answer(self, messages, tools):
        self.calls += 1
        return f"ACTION: {self.word} {self.calls}"
"""
PLAN = """\
agents:
  - {name: plain, function: ./agent.py:answer, parameters: {word: inventory}}
  - {name: counts, function: "agent:Counts", parameters: {word: look}, concurrency: 1}
tasks: [{name: house, environment: alfworld}]
limits: {trial: {turns: 2}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A plan with two agents in a file, which has a module beside it."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "agent.py").write_text(AGENT)
    (mine / "helper.py").write_text("def said(word):\n    return word\n")
    (mine / "plan.yaml").write_text(PLAN)
    return mine


def said(run: Path, agent: str) -> list[str]:
    """What an agent answered in a run."""
    turns = open_run(str(run)).turns()
    return [turn.action.content for turn in turns if turn.agent == agent and turn.action is not None]


def test_functions_of_a_plans_files_play_and_a_resume_elsewhere_takes_them_as_they_were(
    folder: Path, tmp_path: Path
) -> None:
    exits(0, "run", "mine/plan.yaml", "--name", "r", "--limit", "1", "-q", cwd=tmp_path)
    run = tmp_path / "runs" / "r"
    assert said(run, "plain") == ["ACTION: inventory"] * 2
    assert said(run, "counts") == ["ACTION: look 1", "ACTION: look 2"], "the class was made once, with its parameters"
    resume = ("resume", str(run), "--plan", str(folder / "plan.yaml"), "-q")
    (folder / "agent.py").write_text(AGENT.replace("  # one of many", "").replace("word, 0", "word,  0"))
    exits(0, *resume, cwd=folder)
    (folder / "agent.py").write_text(AGENT.replace("ACTION: {helper", "ACTION:  {helper"))
    assert "agents.plain.function: agent.py, line 4 differs" in exits(2, *resume, cwd=folder).stderr
    (folder / "agent.py").write_text(AGENT)
    (folder / "helper.py").write_text("def said(word):\n    return word.upper()\n")
    assert "agents.counts.function: helper.py, line 2 differs" in exits(2, *resume, cwd=folder).stderr
    (folder / "helper.py").write_text("def said(word):\n    return word\n")
    (folder / "plan.yaml").write_text(PLAN.replace("word: look", "word: go"))
    assert "agents.counts.parameters.word: 'look' -> 'go'" in exits(2, *resume, cwd=folder).stderr


def test_a_function_is_a_model_of_the_command_line_and_of_an_agent_server(folder: Path, tmp_path: Path) -> None:
    exits(0, "run", "-m", "mine/agent.py:answer", "-e", "alfworld", "--limit", "1", "--name", "r", "-q", cwd=tmp_path)
    assert set(said(tmp_path / "runs" / "r", "answer")) == {"ACTION: look"}
    with server("agents", "--agent", "me=mine/agent.py:answer", cwd=tmp_path) as running:
        body = {"model": "me", "messages": [{"role": "user", "content": "?"}], "metadata": {"turn": "1"}}
        asked = urllib.request.Request(
            f"{running.url}/chat/completions",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=30) as reply:
            assert json.load(reply)["choices"][0]["message"]["content"] == "ACTION: look"
    (tmp_path / "agents.yaml").write_text("agents: [{name: me, kind: function, function: './mine/agent.py:Counts'}]")
    refused = exits(2, "agents", "--config", "agents.yaml", cwd=tmp_path).stderr
    assert f"agents.me.function: {folder / 'agent.py'}" in refused
    assert "missing 1 required positional argument: 'word'" in refused
    assert "Traceback" not in refused


WRONG = {
    "def other(messages, tools): ...": "agent.py: there is no answer; it defines: other",
    "def answer(messages, tools)\n": "agent.py:1: expected ':'",
    "import nothing_here\n": "agent.py:1: there is no module 'nothing_here'",
    "answer = 3\n": "agent.py:answer: is neither a function nor a class",
    "\n\ndef answer(messages, tools, heat): ...\n": "agent.py:3: its parameter `heat` is given by nothing",
}
"""The file -> what is said of it."""


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_with_an_agents_file_is_said_with_its_line(text: str, folder: Path) -> None:
    (folder / "agent.py").write_text(text)
    plan = PLAN.replace(", parameters: {word: inventory}", "").splitlines()
    (folder / "plan.yaml").write_text("\n".join(line for line in plan if "Counts" not in line))
    told = exits(2, "run", "plan.yaml", "--limit", "1", "-q", cwd=folder)
    assert WRONG[text] in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("function: ./gone.py:answer", "there is no such file"),
        ("function: agent.py", "write the file and the name in it: ./agent.py:answer"),
        ("function: ./agent.py:answer, builtin: naive", "stands beside `function`"),
        (
            "builtin: function, endpoint: 'http://127.0.0.1:9/v1'",
            "agents.a.model: missing; a function that asks a model",
        ),
        ("builtin: naive, parameters: {word: go}", "is for a `function`"),
    ],
)
def test_a_plan_that_names_a_function_wrongly_is_refused(fields: str, problem: str, folder: Path) -> None:
    text = f"agents: [{{name: a, {fields}}}]\ntasks: [{{name: house, environment: alfworld}}]\n"
    (folder / "plan.yaml").write_text(text)
    assert problem in exits(2, "plan", "check", "plan.yaml", cwd=folder).stderr
