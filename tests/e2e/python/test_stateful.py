"""Agents that remember conversations: their trials begin anew, and what is over they are told."""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proctor import evaluate, open_run, play
from tests.e2e.proctor import TOKEN, Server, begin, exits, server
from tests.e2e.python.test_scaffolds import EXAMPLES, WORLD
from tests.faults.parts.proxy import Fault, proxies
from tests.pace import until

AGENT = '''\
import asyncio
import pathlib

HERE = pathlib.Path(__file__).parent

def log(*words):
    with (HERE / "log.txt").open("a") as file:
        print(*words, file=file)

class Remembers:
    """Says yes if it remembers all earlier turns of a conversation, and only those."""

    stateful = True

    def __init__(self, fails=False):
        self.turns = {}
        self.fails = fails

    async def answer(self, messages, tools, conversation, turn):
        log("asked", conversation, turn)
        while turn == 2 and (HERE / "hold").exists():
            await asyncio.sleep(0.02)
        if turn == 2 and self.fails:
            raise ValueError("no more")
        turns = self.turns.setdefault(conversation, [])
        turns.append(turn)
        return "yes" if turns == [*range(1, turn + 1)] else "no"

    async def end(self, conversation):
        self.turns.pop(conversation, None)
        log("ended", conversation)
'''
TASKS = "tasks: [{name: twice, environment: ./twice.py}]\n"


def write(folder: Path, served_at: str | None, fields: str = "", port: str = "0") -> None:
    (folder / "twice.py").write_text(WORLD)
    (folder / "agent.py").write_text(AGENT)
    function = f"kind: function, function: './agent.py:Remembers'{fields}"
    (folder / "agents.yaml").write_text(f"port: {port}\nagents: [{{name: a, {function}}}]\n")
    played = function.partition(", ")[2] if served_at is None else f"endpoint: '{served_at}', metadata: true"
    (folder / "plan.yaml").write_text(f"{TASKS}agents: [{{name: a, {played}, concurrency: 1}}]\n")


@contextmanager
def agents(folder: Path) -> Iterator[Server]:
    with server("agents", "--config", "agents.yaml", cwd=folder) as running:
        yield running


@contextmanager
def seat(folder: Path, place: str, fields: str = "") -> Iterator[None]:
    """The agent in the client's process, or on an agent server."""
    write(folder, None, fields)
    if place == "here":
        yield
        return
    with agents(folder) as running:
        write(folder, running.url, fields)
        yield


def port_of(running: Server) -> str:
    return running.url.removesuffix("/v1").rpartition(":")[2]


def said(folder: Path) -> list[tuple[str, ...]]:
    """What the agent was asked and told, each conversation as a letter in the order of their first turns."""
    lines = [line.split() for line in (folder / "log.txt").read_text().splitlines()]
    letters = {name: "abcdef"[i] for i, name in enumerate(dict.fromkeys(line[1] for line in lines))}
    return [(what, letters[name], *rest) for what, name, *rest in lines]


def trial(folder: Path, run: str = "r") -> tuple[float | None, int]:
    (only,) = open_run(str(folder / "runs" / run)).trials()
    return only.score, only.attempts


ONE = ("-q", "--limit", "1")
WHOLE = [("asked", "a", "1"), ("asked", "a", "2"), ("ended", "a")]


@pytest.mark.parametrize("place", ["here", "served"])
def test_each_conversation_is_ended_once_after_a_score_and_after_a_fault(place: str, tmp_path: Path) -> None:
    for fields, code in (("", 0), (", parameters: {fails: true}", 2)):
        (tmp_path / "log.txt").unlink(missing_ok=True)
        with seat(tmp_path, place, fields):
            exits(code, "run", "plan.yaml", "--name", f"r{code}", *ONE, cwd=tmp_path, OPENAI_API_KEY=TOKEN)
        assert said(tmp_path) == WHOLE
    assert trial(tmp_path, "r0") == (1.0, 1)


@pytest.mark.parametrize("place", ["here", "served"])
def test_a_trial_in_whose_middle_the_client_is_killed_begins_anew(place: str, tmp_path: Path) -> None:
    with seat(tmp_path, place):
        (tmp_path / "hold").touch()
        client = begin("run", "plan.yaml", "--name", "r", *ONE, cwd=tmp_path, OPENAI_API_KEY=TOKEN)
        until(lambda: (tmp_path / "log.txt").exists() and len(said(tmp_path)) == 2)
        client.kill()
        client.communicate()
        (tmp_path / "hold").unlink()
        exits(0, "resume", "runs/r", "-q", cwd=tmp_path, OPENAI_API_KEY=TOKEN)
        told = said(tmp_path)
    assert [each for each in told if each[1] == "a"] == WHOLE
    assert [each for each in told if each[1] == "b"] == [(what, "b", *turn) for what, _, *turn in WHOLE]
    assert trial(tmp_path) == (1.0, 2)
    assert "attempt 1: interrupted" in exits(0, "show", "r:0", cwd=tmp_path).stdout


def test_a_trial_whose_agent_server_is_killed_begins_anew(tmp_path: Path) -> None:
    write(tmp_path, None)
    (tmp_path / "hold").touch()
    with agents(tmp_path) as first:
        write(tmp_path, first.url, port=port_of(first))
        client = begin("run", "plan.yaml", "--name", "r", *ONE, cwd=tmp_path, OPENAI_API_KEY=TOKEN)
        until(lambda: (tmp_path / "log.txt").exists() and len(said(tmp_path)) == 2)
        first.kill()
        (tmp_path / "hold").unlink()
        with agents(tmp_path):
            output = client.communicate()
            assert client.returncode == 0, output
    assert said(tmp_path) == [*WHOLE[:2], *[(what, "b", *turn) for what, _, *turn in WHOLE]]
    assert trial(tmp_path) == (1.0, 2)
    assert "does not know" in exits(0, "show", "r:0", cwd=tmp_path).stdout


def test_a_turn_whose_reply_is_lost_is_not_asked_again(tmp_path: Path) -> None:
    write(tmp_path, None)
    with agents(tmp_path) as running, proxies(0) as ways:
        link = ways.link("agents", int(port_of(running)))
        link.faults[:] = [Fault("drop_reply", "POST ", spared=1, left=1)]
        write(tmp_path, f"{link.url}/v1")
        exits(0, "run", "plan.yaml", "--name", "r", *ONE, cwd=tmp_path, OPENAI_API_KEY=TOKEN)
        posts = [call.outcome for call in link.calls if call.target.startswith("POST ")]
    assert posts == ["ok", "unknown", "ok"]
    assert said(tmp_path) == WHOLE
    assert trial(tmp_path) == (1.0, 1)


def test_conversations_of_a_trial_that_is_cut_are_ended(tmp_path: Path) -> None:
    write(tmp_path, None)
    (tmp_path / "hold").touch()
    with agents(tmp_path) as running:
        write(tmp_path, running.url)
        client = begin("run", "plan.yaml", "--name", "r", *ONE, cwd=tmp_path, OPENAI_API_KEY=TOKEN)
        until(lambda: (tmp_path / "log.txt").exists() and len(said(tmp_path)) == 2)
        exits(0, "stop", "runs/r", "--now", cwd=tmp_path)
        client.communicate()
        assert said(tmp_path) == WHOLE


def test_a_resume_refuses_an_agent_server_whose_file_differs(tmp_path: Path) -> None:
    write(tmp_path, None)
    with agents(tmp_path) as running:
        write(tmp_path, running.url, port=port_of(running))
        exits(0, "run", "plan.yaml", "--name", "r", *ONE, cwd=tmp_path, OPENAI_API_KEY=TOKEN)
        before = listed(running)
    again = ("resume", "runs/r", "--retry", "0", "-q")
    for text, same in ((AGENT + "# a comment\n", True), (AGENT.replace('"no"', '"nay"'), False)):
        (tmp_path / "agent.py").write_text(text)
        with agents(tmp_path) as running:
            now = listed(running)
            told = exits(0 if same else 2, *again, cwd=tmp_path, OPENAI_API_KEY=TOKEN).stderr
        assert (now == before) is same
    assert f"agent a, since the run began: digest: {before!r}, {now!r}" in told


def test_a_part_refuses_an_agent_server_whose_file_differs(tmp_path: Path) -> None:
    write(tmp_path, None)
    with agents(tmp_path) as running:
        write(tmp_path, running.url, port=port_of(running))
        exits(0, "run", "plan.yaml", "--part", "1/2", "--name", "p", "-q", cwd=tmp_path, OPENAI_API_KEY=TOKEN)
    (tmp_path / "agent.py").write_text(AGENT.replace('"no"', '"nay"'))
    with agents(tmp_path):
        part = ("run", "plan.yaml", "--part", "2/2", "-q")
        told = exits(2, *part, "--name", "p", cwd=tmp_path, OPENAI_API_KEY=TOKEN).stderr
        assert "part p.1of2: agent a, since the run began: digest: " in told
        exits(0, *part, "--name", "p", "-o", "other", cwd=tmp_path, OPENAI_API_KEY=TOKEN)
    told = exits(2, "report", "runs/p.1of2", "other/p.2of2", cwd=tmp_path).stderr
    assert "they differ in the function of agent a" in told


def test_two_agent_servers_of_one_endpoint_must_have_the_same_file(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "other")]
    for folder, text in zip(folders, (AGENT, AGENT.replace('"no"', '"nay"')), strict=True):
        folder.mkdir()
        write(folder, None)
        (folder / "agent.py").write_text(text)
    with agents(folders[0]) as one, agents(folders[1]) as other:
        write(tmp_path, one.url)
        plan = (tmp_path / "plan.yaml").read_text()
        both = f"endpoints: [{{name: e, base_url: ['{one.url}', '{other.url}']}}]\n"
        (tmp_path / "plan.yaml").write_text(both + plan.replace(f"'{one.url}'", "e"))
        told = exits(2, "run", "plan.yaml", *ONE, cwd=tmp_path, OPENAI_API_KEY=TOKEN).stderr
        assert f"{other.url} and {one.url} differ: digest: {listed(one)!r}, {listed(other)!r}" in told


def listed(running: Server) -> str:
    """The digest that an agent server publishes of its only agent."""
    asked = urllib.request.Request(f"{running.url}/models", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(asked, timeout=30) as reply:
        (only,) = json.load(reply)["data"]
    assert only["stateful"] is True
    return str(only["digest"])


def test_the_agent_of_the_examples_buys_what_it_is_asked_for(tmp_path: Path) -> None:
    for name in ("shopper.py", "vending_machine.py"):
        (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    agent, task = "{name: a, function: './shopper.py:Shopper'}", "{environment: ./vending_machine.py}"
    (tmp_path / "plan.yaml").write_text(f"agents: [{agent}]\ntasks: [{task}]\n")
    exits(0, "run", "plan.yaml", "--name", "r", "-q", cwd=tmp_path)
    assert [each.score for each in open_run(str(tmp_path / "runs" / "r")).trials()] == [1.0, 1.0, 1.0]


class Counts:
    """A stateful object given in Python."""

    stateful = True

    def __init__(self) -> None:
        self.ended: list[str] = []

    def answer(self, messages: object, tools: object, conversation: str) -> str:
        return "yes"

    def end(self, conversation: str) -> None:
        self.ended.append(conversation)


def test_an_object_given_in_python_is_told_too(tmp_path: Path) -> None:
    write(tmp_path, None)
    agent = Counts()
    evaluate(agents={"a": agent}, tasks={"twice": {"environment": f"{tmp_path}/twice.py"}}, name="r", folder=tmp_path)
    assert len(set(agent.ended)) == len(agent.ended) == 2
    evaluate(agents=[agent], tasks={"twice": {"environment": f"{tmp_path}/twice.py"}}, name="s", folder=tmp_path)
    assert len(agent.ended) == 4
    play(f"{tmp_path}/twice.py", agent)
    assert len(agent.ended) == 5
