"""Whole runs with a real model behind a real server: every world, three dialects, and both sides killed.

`make real-model` plays them. The model reads a hundred tokens a second and is wrong nearly always. What is held is that
nothing it writes is a fault, that its tokens are counted as its server counts them, and that a kill costs no more than
what was in flight.
"""

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.proctor import begin, completed, exits
from tests.pace import slowly, until
from tests.support import free_port

SLOTS, CONTEXT, ANSWER = 2, 4096, 40
"""Requests at once, tokens of context for each, and the most tokens of an answer."""
PLAN = """\
name: smollm2
endpoints:
  - {{name: llama.cpp, base_url: {url}, dialect: {dialect}, concurrency: 2, deadline_s: 600, patience_s: 600}}
agents:
  - {{name: SmolLM2-135M, endpoint: llama.cpp, model: smollm2, sampling: {{temperature: 0, max_tokens: 40}}}}
tasks:
{tasks}
limits: {{attempts: 1, trial: {{turns: {turns}}}}}
"""
"""One attempt: whatever is a fault stays one."""
TEXT = {
    "alfworld": "per_type: 1",
    "card_game": "",
    "db": "engine: sqlite",
    "kg": "",
    "ltp": "",
    "mind2web": "steps: 20",
    "simulbench": "",
    "stss": "level: language",
    "webshop": "goals: [0, 15]",
}
TOOLS = {world: TEXT[world] for world in ("alfworld", "card_game", "db", "kg", "webshop")}
FATES = {"completed", "context_limit", "invalid_action", "invalid_format", "turn_limit"}
"""What a model can bring a trial to; all have a score."""


def tasks(worlds: dict[str, str], protocol: str = "text") -> str:
    """The tasks of a plan, one sample of each world."""
    end = "" if protocol == "text" else "-tools"
    protocols = "" if protocol == "text" else "protocol: tools, "
    return "\n".join(
        f"  - {{name: {world}{end}, environment: {world}, parameters: {{{protocols}{given}}}, samples: {{limit: 1}}}}"
        for world, given in worlds.items()
    )


@dataclass
class Llama:
    """The server, which can be killed and started anew at its port."""

    log: Path
    python: str = field(default_factory=lambda: os.environ["PROCTOR_REAL_MODEL"])
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[str] | None" = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [self.python, str(Path(__file__).with_name("server.py")), *map(str, (self.port, SLOTS, CONTEXT))]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith("http"), self.log.read_text()

    def kill(self) -> None:
        """kill -9"""
        assert self.process is not None
        with self.process:
            self.process.kill()

    def metric(self, name: str) -> int:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=slowly(60)) as reply:
            found = re.search(rf"^llamacpp:{name} (\S+)$", reply.read().decode(), re.MULTILINE)
        assert found is not None
        return int(float(found[1]))

    def tokens(self) -> tuple[int, int]:
        """What it has read (what its cache held is not among it) and written."""
        return self.metric("prompt_tokens_total"), self.metric("tokens_predicted_total")

    def is_idle(self) -> bool:
        return self.metric("requests_processing") + self.metric("requests_deferred") == 0


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llama]:
    if "PROCTOR_REAL_MODEL" not in os.environ:
        pytest.skip("PROCTOR_REAL_MODEL is not set; run: make real-model")
    server = Llama(tmp_path_factory.mktemp("llama") / "log")
    server.start()
    yield server
    server.kill()


Row = dict[str, Any]


def turns(folder: Path, run: str) -> list[Row]:
    """The turns of a run that are in its store by now, also while it plays."""
    columns = "trial, turn, observation, reply, stop, prompt_tokens, cached_tokens, completion_tokens, replica"
    file = folder / "runs" / run / "run.sqlite"
    with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(sqlite3.connect(file)) as store:
        store.row_factory = sqlite3.Row
        return [dict(row) for row in store.execute(f"SELECT {columns} FROM proctor_turn ORDER BY trial, turn")]
    return []


def tokens(played: list[Row]) -> tuple[int, int]:
    """Tokens that a server had to read for these turns, and those that it wrote."""
    read = sum(each["prompt_tokens"] - each["cached_tokens"] for each in played)
    return read, sum(each["completion_tokens"] for each in played)


def trials(folder: Path, run: str) -> list[Row]:
    exits(0, "export", run, "--to", f"{run}.jsonl", cwd=folder)
    return [json.loads(line) for line in (folder / f"{run}.jsonl").read_text().splitlines()]


def assert_all_scored(client: "subprocess.Popen[str]", folder: Path, run: str, planned: int) -> None:
    """A client ends well, and every trial has a score and an end that the model can bring about."""
    completed(client, within_s=900)
    found = trials(folder, run)
    assert len(found) == planned
    assert [each for each in found if each["score"] is None or each["reason"] not in FATES] == []


def play(folder: Path, run: str, planned: int) -> None:
    assert_all_scored(begin("run", "plan.yaml", "--name", run, "-q", cwd=folder), folder, run, planned)


def write_plan(folder: Path, *llamas: Llama, lines: str, dialect: str = "chat", most_turns: int = 2) -> None:
    urls = json.dumps([f"{llama.url}/v1" for llama in llamas] if len(llamas) > 1 else f"{llamas[0].url}/v1")
    (folder / "plan.yaml").write_text(PLAN.format(url=urls, dialect=dialect, tasks=lines, turns=most_turns))


def test_every_world_in_text(llama: Llama, tmp_path: Path) -> None:
    write_plan(tmp_path, llama, lines=tasks(TEXT))
    read, written = llama.tokens()
    play(tmp_path, "smollm2", len(TEXT))
    now_read, now_written = llama.tokens()
    assert tokens(turns(tmp_path, "smollm2")) == (now_read - read, now_written - written)


@pytest.mark.docker
def test_os_in_text(llama: Llama, tmp_path: Path) -> None:
    write_plan(tmp_path, llama, lines=tasks({"os": ""}))
    play(tmp_path, "os", 1)


def test_tools_though_client_and_server_are_killed(llama: Llama, tmp_path: Path) -> None:
    write_plan(tmp_path, llama, lines=tasks(TOOLS, "tools"))
    _, before = llama.tokens()
    client = begin("run", "plan.yaml", "--name", "killed", "-q", cwd=tmp_path)
    until(lambda: client.poll() is not None or len(turns(tmp_path, "killed")) > 1, 120)
    client.send_signal(signal.SIGSTOP)  # so that what is in flight is answered, and paid, and lost
    assert client.poll() is None, "the run ended before it was killed"
    until(llama.is_idle)
    kept, paid = turns(tmp_path, "killed"), llama.tokens()[1] - before
    assert 0 <= paid - tokens(kept)[1] <= SLOTS * ANSWER
    client.kill()
    client.communicate()

    client = begin("resume", "killed", "-q", cwd=tmp_path)
    until(lambda: client.poll() is not None or len(turns(tmp_path, "killed")) > len(kept) + 1, 120)
    until(lambda: client.poll() is not None or not llama.is_idle())
    assert client.poll() is None, "the run ended before its server was killed"
    paid = llama.tokens()[1] - before
    llama.kill()
    llama.start()
    assert_all_scored(client, tmp_path, "killed", len(TOOLS))
    played = turns(tmp_path, "killed")
    assert [each for each in kept if each not in played] == []
    again = paid + llama.tokens()[1] - tokens(played)[1]
    assert -SLOTS * ANSWER <= again <= SLOTS * ANSWER, "only what was in flight at the kills is lost"


def test_one_of_two_servers_is_killed_and_its_trials_go_on_at_the_other(llama: Llama, tmp_path: Path) -> None:
    other = Llama(tmp_path / "log")
    other.start()
    lines = "  - {name: alfworld, environment: alfworld, parameters: {per_type: 1}, samples: {limit: 3}}"
    write_plan(tmp_path, llama, other, lines=lines)
    client = begin("run", "plan.yaml", "--name", "pair", "-q", cwd=tmp_path)

    def answered_by(*servers: Llama) -> set[int]:
        urls = [f"{server.url}/v1" for server in servers]
        return {row["trial"] for row in turns(tmp_path, "pair") if row["replica"] in urls}

    until(lambda: client.poll() is not None or len(answered_by(other)) > 0, 300)
    other.kill()
    assert client.poll() is None, "the run ended before a server was killed"
    kept = turns(tmp_path, "pair")
    assert_all_scored(client, tmp_path, "pair", 3)
    played = turns(tmp_path, "pair")
    assert [row for row in kept if row not in played] == []
    assert sum(row["replica"] is not None for row in played) == 3 * 2
    assert answered_by(other) & answered_by(llama), "trials that the killed server had answered go on at the other"


def said(row: Row) -> tuple[Any, ...]:
    """What a turn holds, without the ids of its calls."""
    action = json.loads(row["reply"]).get("action", {})
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in action.get("tool_calls") or ()]
    return row["trial"], row["turn"], action.get("content"), calls, row["completion_tokens"]


def test_the_dialects_give_one_text(llama: Llama, tmp_path: Path) -> None:
    found = {}
    for dialect in ("chat", "responses", "messages"):
        both = tasks({"db": TEXT["db"]}) + "\n" + tasks({"db": TEXT["db"]}, "tools")
        write_plan(tmp_path, llama, lines=both, dialect=dialect)
        read, written = llama.tokens()
        play(tmp_path, dialect, 2)
        played = turns(tmp_path, dialect)
        now_read, now_written = llama.tokens()
        assert tokens(played) == (now_read - read, now_written - written)
        found[dialect] = [said(row) for row in played]
    assert found["responses"] == found["chat"]
    assert found["messages"] == found["chat"]
    assert sum(written for *_, written in found["chat"]) > 0
