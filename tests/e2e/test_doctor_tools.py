"""`proctor doctor` and agents that are to play by function calls: endpoints that do, and endpoints that don't."""

import json
from pathlib import Path

from tests.e2e.proctor import proctor
from tests.e2e.scripted import listening
from tests.e2e.tools_endpoint import ToolsEndpoint, importable

PLAN = """\
endpoints: [{{name: scripted, base_url: "{endpoint}", api_key_env: SCRIPTED_KEY}}]
agents: {agents}
tasks:
  - {{name: doors, environment: doors}}
  - {{name: plain-doors, environment: doors, parameters: {{protocol: text}}}}
assignments:
  - {{agents: [plain, no-tools, talks-first, thinks, forgets], tasks: [doors]}}
  - {{agents: [text], tasks: [plain-doors]}}
"""
AGENTS: dict[str, dict[str, str]] = {
    "plain": {},
    "no-tools": {},
    "talks-first": {},
    "thinks": {},
    "forgets": {"model": "thinks", "reasoning": "never"},
    "text": {},
}


def test_endpoints_are_asked_whether_they_take_tools_call_them_and_take_histories(tmp_path: Path) -> None:
    with listening(scripted := ToolsEndpoint()):
        agents = json.dumps([{"name": name, "endpoint": "scripted", **fields} for name, fields in AGENTS.items()])
        (tmp_path / "plan.yaml").write_text(PLAN.format(endpoint=scripted.url, agents=agents))
        looked = proctor("doctor", "plan.yaml", "--json", cwd=tmp_path, **importable(tmp_path))
    assert looked.returncode == 1, looked.stderr
    findings = json.loads(looked.stdout)["findings"]
    told = {
        name: [(each["id"], each["status"]) for each in findings if f"agent {name}:" in each["what"]] for name in AGENTS
    }
    answers = ("agent", "ok")
    assert told == {
        "plain": [answers, ("agent-tools", "ok"), ("agent-tools", "ok")],
        "no-tools": [answers, ("agent-tools-refused", "fail")],
        "talks-first": [answers, ("agent-tools-unused", "warn"), ("agent-tools", "ok")],
        "thinks": [answers, ("agent-tools", "ok"), ("agent-tools", "ok")],
        "forgets": [answers, ("agent-tools", "ok"), ("agent-tools-history", "fail")],
        "text": [answers],
    }
    assert scripted.wrong == []
    assert len(scripted.of("plain")) == 3
    assert len(scripted.of("text")) == 1
