"""A whole run whose agent and host are reached through one entry of `endpoints`: key by a command, headers, streams."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.e2e.proctor import exits, proctor, rows
from tests.e2e.scripted import ScriptedEndpoint, listening, reply

FIRST, SECOND, TEAM = "issued-Key-1-xyzzy", "issued-Key-2-xyzzy", "team-Key-7-plugh"
PRINTS = """\
import pathlib
count = pathlib.Path("asked").read_text().count("x") if pathlib.Path("asked").exists() else 0
pathlib.Path("asked").open("a").write("x")
print(pathlib.Path("key").read_text())
"""
PLAN = """\
name: reached
endpoints:
  - name: lab
    base_url: "{url}"
    api_key_command: ["{python}", key.py]
    headers: {{x-team: "${{TEAM_KEY}}", x-route: "{{conversation}}"}}
    query: {{api-version: "2024-10-21"}}
    api_key_header: api-key
    stream: true
agents: [{{name: model, endpoint: lab, sampling: {{seed: 7}}}}]
tasks: [{{name: ltp, environment: ltp, parameters: {{host: {{endpoint: lab, model: host}}}}}}]
epochs: 2
"""


class Streams(ScriptedEndpoint):
    """Streams its answers to those who have the newest key; the key changes in the middle."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.key = folder, FIRST
        self.answered: list[str] = []

    def _answer(self) -> bytes | None:
        head, body = self.headers[-1], self.requests[-1]
        if len(self.answered) == 20 and self.key == FIRST:
            self.key = SECOND
            (self.folder / "key").write_text(SECOND)
        if f"api-key: {self.key}" not in head:
            return reply(401, b'{"error": {"message": "token expired"}}')
        self.answered.append(head)
        text = "Yes." if body["model"] == "host" else "Is it a man?"
        events: list[dict[str, Any]] = [
            {"delta": {"role": "assistant", "content": text}},
            {"delta": {}, "finish_reason": "stop"},
        ]
        lines: list[dict[str, Any]] = [{"choices": [{"index": 0, **event}]} for event in events]
        lines.append({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}})
        return reply(200, "".join(f"data: {json.dumps(line)}\n\n" for line in lines).encode())


def test_agent_and_host_are_reached_as_one_entry_of_endpoints_says(tmp_path: Path) -> None:
    (tmp_path / "key.py").write_text(PRINTS)
    (tmp_path / "key").write_text(FIRST)
    scripted = Streams(tmp_path)
    given: dict[str, Any] = {"TEAM_KEY": TEAM, "XDG_CACHE_HOME": str(tmp_path / "caches")}
    with listening(scripted):
        (tmp_path / "plan.yaml").write_text(PLAN.format(url=scripted.url, python=sys.executable))
        ended = exits(0, "run", "plan.yaml", "--name", "r", "--limit", "4", "-q", cwd=tmp_path, **given)
        assert all(row["score"] is not None for row in rows("r", tmp_path))
        by_model = {"model": list[dict[str, Any]](), "host": list[dict[str, Any]]()}
        for request in scripted.requests:
            by_model[request["model"]].append(request)
        assert all(by_model.values())
        assert all(request["stream"] and "stream_options" in request for request in scripted.requests)
        assert {request.get("seed") for request in by_model["model"]} == {7, 8}
        heads = "\n".join(scripted.answered)
        assert heads.count(f"x-team: {TEAM}") == heads.count("?api-version=2024-10-21 ") == len(scripted.answered)
        routes = {
            head.partition("x-route: ")[2][:32]
            for head, request in zip(scripted.headers, scripted.requests, strict=True)
            if request["model"] == "model"
        }
        assert len(routes) == len(rows("r", tmp_path)), "each trial is a conversation"
        assert (tmp_path / "asked").read_text().count("x") <= 2 * 2, "two processes, two keys"
        told = proctor("report", "r", cwd=tmp_path).stdout
        assert "seed of model's sampling is 7 plus the epoch's number" in " ".join(told.split())
        kept = b"".join(path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file())
        for secret in (FIRST, SECOND, TEAM):
            assert secret.encode() not in kept
            assert secret not in ended.stdout + ended.stderr + told
        (tmp_path / "plan.yaml").rename(tmp_path / "moved.yaml")
        refused = exits(2, "resume", "r", "-q", cwd=tmp_path, **given, XDG_STATE_HOME=str(tmp_path / "of another"))
        assert "api_key_command: [" in refused.stderr
        assert proctor("resume", "r", "-q", "--plan", "moved.yaml", cwd=tmp_path, **given).returncode == 0


def test_a_command_that_fails_leaves_trials_pending_and_names_itself(tmp_path: Path) -> None:
    scripted = ScriptedEndpoint()
    with listening(scripted):
        text = PLAN.format(url=scripted.url, python=sys.executable).replace("key.py", "gone.py")
        (tmp_path / "plan.yaml").write_text(text.replace("stream: true", "patience_s: 7"))
        options = ("--name", "r", "--limit", "2", "-q")
        ended = proctor("run", "plan.yaml", *options, cwd=tmp_path, TEAM_KEY=TEAM, XDG_CACHE_HOME=str(tmp_path))
    assert (ended.returncode, scripted.requests) == (2, [])
    assert "gives no key: exit code 2" in ended.stderr
    assert {row["reason"] for row in rows("r", tmp_path)} <= {None}
