"""Whole runs by function calls, with endpoints that demand what real ones demand: the acceptance of interop, 1.9."""

import dataclasses
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.proctor import exits, proctor, rows, server
from tests.e2e.scripted import listening
from tests.e2e.tools_endpoint import (
    CANARY,
    TAKES_NO_TOOLS,
    THINKS,
    ToolsEndpoint,
    importable,
    killed_again_and_again,
    paid_twice,
)
from tests.faults.parts.proxy import Link, proxies
from tests.support import free_port

SAMPLES, TURNS = 2, 4
TASKS = f"""\
tasks:
  - {{name: doors, environment: doors, capacity: 32, parameters: {{turns: {TURNS}, count: {SAMPLES}}}}}
  - name: plain-doors
    environment: doors
    capacity: 32
    parameters: {{turns: {TURNS}, count: {SAMPLES}, protocol: text}}
"""
PLAN = """\
name: tools
controller: {worker}
endpoints:
  - {{name: scripted, base_url: "{endpoint}", api_key_env: SCRIPTED_KEY, max_tries: 2, concurrency: 64}}
agents: {agents}
tasks: [{{name: doors}}, {{name: plain-doors}}]
assignments: {assignments}
"""
AGENTS: dict[str, dict[str, object]] = {
    "thinks-auto": {"model": "thinks"},
    "thinks-always": {"model": "thinks", "reasoning": "always"},
    "thinks-never": {"model": "thinks", "reasoning": "never"},
    "signs": {},
    "talks-first": {},
    "no-ids": {},
    "must-call": {"model": "both", "sampling": {"tool_choice": "required", "max_tokens": 9},
                  "max_tokens_field": "max_completion_tokens"},
    "as-user": {"system_role": "user"},
    "as-developer": {"system_role": "developer"},
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Site:
    """A worker behind a proxy, an endpoint, and a folder to run in."""

    folder: Path
    endpoint: ToolsEndpoint
    link: Link

    def plan(self, agents: dict[str, dict[str, object]], *tasks: str) -> None:
        """Write the plan: these agents play these tasks."""
        entries = [{"name": name, "endpoint": "scripted", **fields} for name, fields in agents.items()]
        assignments = [{"agents": list(agents), "tasks": list(tasks)}]
        fields = {"worker": self.link.url, "endpoint": self.endpoint.url}
        text = PLAN.format(agents=json.dumps(entries), assignments=json.dumps(assignments), **fields)
        (self.folder / "plan.yaml").write_text(text)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder, scripted = tmp_path_factory.mktemp("tools"), ToolsEndpoint()
    (folder / "tasks.yaml").write_text(TASKS)
    with proxies(0) as ways, listening(scripted):
        link = ways.link("worker", free_port())
        options = ("--tasks=tasks.yaml", f"--port={link.upstream}", f"--advertise={link.url}")
        with server("worker", *options, cwd=folder, **importable(folder)):
            yield Site(folder, scripted, link)


@dataclasses.dataclass(frozen=True)
class Played:
    """A run of all agents, over."""

    site: Site
    ended: "subprocess.CompletedProcess[str]"
    rows: list[dict[str, object]]

    def of(self, agent: str, task: str = "doors") -> list[dict[str, object]]:
        """An agent's trials of a task."""
        return [row for row in self.rows if (row["agent"], row["task"]) == (agent, task)]


@pytest.fixture(scope="module")
def played(site: Site) -> Played:
    site.plan(AGENTS, "doors", "plain-doors")
    ended = proctor("run", "plan.yaml", "--name", "all", "-q", cwd=site.folder)
    return Played(site, ended, rows("all", site.folder))


def test_every_history_is_one_that_strict_servers_take(played: Played) -> None:
    assert played.site.endpoint.wrong == []
    assert played.ended.returncode == 1, played.ended.stderr  # thinks-never is a fault
    assert {row["agent"] for row in played.rows if row["score"] is None} == {"thinks-never"}


@pytest.mark.parametrize("agent", ["thinks-auto", "thinks-always"])
def test_an_endpoint_that_demands_its_reasoning_back_gets_it(played: Played, agent: str) -> None:
    assert [row["score"] for row in played.of(agent)] == [1.0] * SAMPLES


def test_reasoning_that_never_goes_back_to_an_endpoint_that_demands_it_is_a_fault_and_no_score(played: Played) -> None:
    for row in played.of("thinks-never"):
        assert (row["score"], row["reason"]) == (None, "agent_error")
        assert THINKS in str(row["cause"])


def test_an_endpoint_that_demands_its_signature_back_gets_it_verbatim(played: Played) -> None:
    assert [row["score"] for row in played.of("signs")] == [1.0] * SAMPLES
    requests = [request for request in played.site.endpoint.of("signs") if "tools" in request]
    assert len(requests) == SAMPLES * TURNS
    assert paid_twice(requests, played.site.endpoint.said) == 0


def test_an_endpoint_that_takes_no_reasoning_without_calls_gets_none(played: Played) -> None:
    assert [row["score"] for row in played.of("talks-first")] == [(TURNS - 1) / TURNS] * SAMPLES


def test_calls_without_ids_get_ones_by_their_place_in_the_conversation(played: Played) -> None:
    requests = [request for request in played.site.endpoint.of("no-ids") if "tools" in request]
    last = requests[-1]["messages"]
    assert isinstance(last, list)
    sent = [call["id"] for message in last for call in message.get("tool_calls", [])]
    assert sent == [f"call{number:05}" for number in range(1, TURNS)]
    assert [message["tool_call_id"] for message in last if message["role"] == "tool"] == sent


def test_what_goes_back_to_an_endpoint_reaches_no_worker(played: Played) -> None:
    arrived = [call.request for call in played.site.link.calls if "/sessions" in call.target]
    assert any(b'"open_door"' in body for body in arrived)
    for body in arrived:
        for hidden in (b"echo", b"reasoning", b"thought_signature"):
            assert hidden not in body
        assert body.count(CANARY.encode()) == body.count(b"id-" + CANARY.encode()), "thoughts are part of ids alone"


def test_a_forced_choice_of_tools_is_sent_with_tools_alone(played: Played) -> None:
    asked = played.site.endpoint.of("both")
    assert {("tools" in request, request.get("tool_choice")) for request in asked} == {
        (True, "required"),
        (False, None),
    }
    assert [row["score"] for row in played.of("must-call", "plain-doors")] == [1.0] * SAMPLES


def test_the_journal_is_exported_with_the_tools_of_every_turn(played: Played) -> None:
    exits(0, "export", "all", "--what", "turns", "--to", "turns.jsonl", cwd=played.site.folder)
    turns = [json.loads(line) for line in (played.site.folder / "turns.jsonl").read_text().splitlines()]
    offered = {(turn["task"], len(turn["observation"]["tools"])) for turn in turns}
    assert offered == {("doors", 2), ("plain-doors", 0)}
    assert {len(request["tools"]) for request in played.site.endpoint.requests if "tools" in request} == {2}


def test_the_tools_of_a_conversation_are_sent_once_to_the_client(played: Played) -> None:
    steps = [
        call.reply for call in played.site.link.calls if "/sessions" in call.target and b'"observation"' in call.reply
    ]
    first = [b'"turn":1' in reply for reply in steps if b'"Opens the door' in reply]
    assert len(first) >= SAMPLES
    assert all(first)


def test_the_limit_of_tokens_is_sent_under_its_field(played: Played) -> None:
    asked = played.site.endpoint.of("both")
    assert {(request.get("max_completion_tokens"), request.get("max_tokens")) for request in asked} == {(9, None)}


def test_the_instruction_is_sent_in_the_role_that_the_plan_says(played: Played) -> None:
    def first(model: str) -> dict[str, str]:
        messages = played.site.endpoint.of(model)[0]["messages"]
        assert isinstance(messages, list)
        return dict(messages[0])

    assert first("signs") == {"role": "system", "content": "You walk from door to door."}
    assert first("as-developer") == {"role": "developer", "content": "You walk from door to door."}
    assert first("as-user")["role"] == "user"
    assert first("as-user")["content"].startswith("You walk from door to door.\n\nSample s")


def test_an_endpoint_without_tools_ends_its_pair_after_one_request_and_no_other(site: Site) -> None:
    site.plan({"no-tools": {"concurrency": 1}}, "doors", "plain-doors")
    ended = exits(2, "run", "plan.yaml", "--name", "none", "-q", cwd=site.folder)
    assert "agent no-tools stopped, its trials of doors stay pending: model no-tools at " in ended.stderr
    for text in (TAKES_NO_TOOLS[:20], "start the server with its tool parser", "`parameters: {protocol: text}`"):
        assert text in " ".join(ended.stderr.replace('\\"', '"').split())
    assert len([request for request in site.endpoint.of("no-tools") if "tools" in request]) == 1
    kept = rows("none", site.folder)
    assert [row["score"] for row in kept if row["task"] == "plain-doors"] == [1.0] * SAMPLES
    assert [row for row in kept if row["task"] == "doors" and row.get("reason")] == []


def test_a_refused_name_of_max_tokens_is_told_and_the_run_resumes_with_the_line_written(site: Site) -> None:
    site.plan({"renames": {"concurrency": 1, "sampling": {"max_tokens": 9}}}, "doors")
    refused = exits(2, "run", "plan.yaml", "--name", "renamed", "-q", cwd=site.folder)
    assert "write `max_tokens_field: max_completion_tokens`" in " ".join(refused.stderr.split())
    assert len(site.endpoint.of("renames")) == 1
    line = "agents.0.max_tokens_field=max_completion_tokens"
    exits(0, "resume", "renamed", "-q", "--set", line, cwd=site.folder)
    assert [row["score"] for row in rows("renamed", site.folder)] == [1.0] * SAMPLES


def test_a_run_with_tools_killed_at_random_places_equals_a_whole_one(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, kills=4, samples=3, turns=5)
