"""Tasks in Harbor's format in whole: the contract of environments, and runs of real processes."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from proctor.conformance.check import check
from proctor_bridges.worlds.harbor.environment import Harbor
from tests.e2e.proctor import exits

TASKS = Path(__file__).with_name("tasks")
CODER = """\
import json, sys, urllib.request
url = json.load(open(sys.argv[1]))["mcpServers"]["proctor"]["url"]
for name, arguments in (
    ("bash_action", {"script": "printf 'ann,12\\\\nbob,30\\\\ncid,5\\\\n' >totals.csv"}),
    ("finish_action", {"thought": "It is done."}),
):
    params = {"name": name, "arguments": arguments}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    urllib.request.urlopen(url, json.dumps(call).encode()).read()
"""
PLAN = """\
controller: local
agents:
  - {{name: coder, kind: command, command: {command}}}
  - {{name: nothing, builtin: naive}}
tasks: [{{name: own, environment: harbor, capacity: 2, parameters: {{data: tasks}}}}]
"""

pytestmark = [pytest.mark.docker, pytest.mark.thorough]


async def test_it_meets_every_requirement_in_both_protocols() -> None:
    results = [result async for result in check(Harbor(data=TASKS / "files"), 1)]
    lacking = "left out: the environment has no random policy"
    assert {f"{result.state}: {result.detail}" for result in results if result.state != "ok"} <= {lacking}
    assert len([result for result in results if result.name.startswith("tools: ")]) > 10


def test_a_command_plays_it_by_mcp_and_the_run_and_the_doctor_tell_what_is_left_out(tmp_path: Path) -> None:
    for name in ("files", "program"):
        shutil.copytree(TASKS / name, tmp_path / "tasks" / name)
    (tmp_path / "tasks" / "program" / "environment" / "docker-compose.yaml").touch()
    (tmp_path / "coder.py").write_text(CODER)
    command = json.dumps([sys.executable, str(tmp_path / "coder.py"), "{mcp_config}"])
    (tmp_path / "plan.yaml").write_text(PLAN.format(command=command))
    left_out = "1 of 2 tasks are left out: program: it needs several containers"
    assert left_out in exits(0, "doctor", "plan.yaml", cwd=tmp_path).stdout
    ran = exits(0, "run", "plan.yaml", "--name", "own", cwd=tmp_path)
    assert left_out in ran.stdout
    exits(0, "export", "own", "--to", "trials.jsonl", cwd=tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "trials.jsonl").read_text().splitlines()]
    assert {(row["agent"], row["sample"], row["score"]) for row in rows} == {
        ("coder", "files", 1.0),
        ("nothing", "files", 0.0),
    }
