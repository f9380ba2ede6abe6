"""Traces and logs of a run's processes: real ones, which send to a collector and write to their logs."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

from tests.e2e.collector import Collector, Recorded, collector
from tests.e2e.proctor import TOKEN, exits, proctor
from tests.e2e.scripted import ScriptedEndpoint, listening, reply
from tests.e2e.tools_endpoint import ToolsEndpoint, importable
from tests.pace import slowly

PLAN = """\
endpoints: [{{name: gone, base_url: "{url}", max_tries: 1, api_key_env: GONE_KEY}}]
agents:
  - {{name: naive, builtin: naive}}
  - {{name: lost, endpoint: gone, model: none}}
tasks: [{{name: puzzles, environment: ltp}}]
local: {{workers: 2}}
route: relayed
"""
KEY = "sk-of-the-tests-0123456789"


@dataclass(frozen=True)
class Run:
    """A run of two agents, recorded and logged."""

    folder: Path
    kept: Collector
    stderr: str

    def within(self, trace: str, name: str) -> list[Recorded]:
        """The spans of a name in one trace."""
        return [span for span in self.kept.named(name) if span.trace == trace]

    def lines(self) -> list[dict[str, str]]:
        """All that the processes logged."""
        logs = [path.read_text() for path in (self.folder / "runs" / "r" / "logs").glob("*.log")]
        said = [line for line in self.stderr.splitlines() if line.startswith("{")]
        return [json.loads(line) for text in (*logs, "\n".join(said)) for line in text.splitlines()]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("run")
    rejecting = ScriptedEndpoint()
    rejecting.always = reply(400, b'{"error": {"message": "refused"}}')
    with collector() as kept, listening(rejecting):
        (folder / "plan.yaml").write_text(PLAN.format(url=rejecting.url))
        settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": kept.url, "PROCTOR_LOG_FORMAT": "json", "PROCTOR_LOG_LEVEL": "info"}
        ended = exits(1, "run", "plan.yaml", "--name=r", "--limit=2", "-q", cwd=folder, GONE_KEY=KEY, **settings)
        yield Run(folder, kept, ended.stderr)


def test_a_trial_is_one_trace_through_client_controller_worker_and_agent_server(run: Run) -> None:
    traces = {trial.trace for trial in run.kept.named("trial")}
    assert len(traces) == 4
    assert {span.trace for span in run.kept.spans} == traces
    attempt = ["proctor-client: trial", "invoke_agent naive"]
    relayed = ["proctor-controller: POST /sessions/{session}/turns", "proctor-worker: POST /sessions/{session}/turns"]
    started = ["proctor-controller: POST /sessions", "proctor-worker: POST /sessions"]
    paths = {tuple(run.kept.path(span)) for span in run.kept.spans}
    assert (*attempt, "turn", "chat naive", "proctor-agent-server: POST /v1/chat/completions") in paths
    assert (*attempt, "turn", *relayed, "environment step") in paths
    assert (*attempt, "session start", *started, "environment step") in paths
    assert {path[0] for path in paths} == {"proctor-client: trial"}


def test_a_trace_has_every_turn_and_every_step(run: Run) -> None:
    played = [trial for trial in run.kept.named("trial") if trial.attributes["agent"] == "naive"]
    for trial in played:
        turns = run.within(trial.trace, "turn")
        assert [turn.attributes["turn"] for turn in turns] == list(range(1, len(turns) + 1))
        assert len(run.within(trial.trace, "chat naive")) == len(turns)
        assert len(run.within(trial.trace, "environment step")) == len(turns) + 1
        for span in run.kept.spans:
            above = run.kept.above(span)
            assert span.seconds >= 0
            if above is not None and above.service == span.service:  # a server's span ends after its reply was sent
                assert span.seconds <= above.seconds + 0.05, (span, above)


def test_spans_hold_no_prompt_no_answer_no_error_and_no_secret(run: Run) -> None:
    exits(0, "export", "r", "--what", "turns", "--to", "turns.jsonl", cwd=run.folder)
    turns = [json.loads(line) for line in (run.folder / "turns.jsonl").read_text().splitlines()]
    texts = {turn["action"]["content"] for turn in turns}
    texts |= {message["content"] for turn in turns for message in turn["observation"]["messages"]}
    long = [text for text in texts if len(text) > 12]
    assert long
    for text in (*long, "refused", KEY, TOKEN):
        assert text[:40].encode() not in run.kept.raw
    lost = next(trial for trial in run.kept.named("trial") if trial.attributes["agent"] == "lost")
    assert [span.attributes["error.type"] for span in run.within(lost.trace, "chat none")] == ["RequestRejected"]
    assert lost.events["gen_ai.evaluation.result"] == {"gen_ai.evaluation.name": "puzzles", "error.type": "agent_error"}


def test_every_line_of_a_log_is_an_object_and_names_trial_session_and_trace(run: Run) -> None:
    lines = run.lines()
    assert {"client", "worker", "controller", "agent-server"} == {line["role"] for line in lines}
    assert all(line.keys() >= {"time", "level", "logger", "message"} for line in lines)
    lost = {trial.trace: trial for trial in run.kept.named("trial") if trial.attributes["agent"] == "lost"}
    faults = [line for line in lines if line["message"].startswith("attempt 1: agent_error: ")]
    assert {line["trace"] for line in faults} == lost.keys()
    for line in faults:
        attempt = run.within(line["trace"], "invoke_agent lost")[0]
        assert (line["run"], line["session"]) == ("r", attempt.attributes["gen_ai.conversation.id"])
        assert int(line["trial"]) == lost[line["trace"]].attributes["trial"]
        assert KEY not in json.dumps(line)


TOOLS_PLAN = """\
endpoints: [{{name: scripted, base_url: "{endpoint}", api_key_env: SCRIPTED_KEY}}]
agents: [{{name: walker, endpoint: scripted, model: signs, sampling: {{max_tokens: 9}}}}]
tasks: [{{name: doors, environment: doors, parameters: {{turns: 2}}}}]
traces: {{content: {content}}}
"""


@pytest.mark.parametrize("content", ["true", "false"])
def test_calls_are_joined_from_client_to_worker_and_contents_are_recorded_only_if_asked_for(
    tmp_path: Path, content: str
) -> None:
    with collector() as kept, listening(scripted := ToolsEndpoint()):
        (tmp_path / "plan.yaml").write_text(TOOLS_PLAN.format(endpoint=scripted.url, content=content))
        settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": kept.url, **importable(tmp_path)}
        ended = proctor("run", "plan.yaml", "--limit=1", "-q", cwd=tmp_path, **settings)
    assert ended.returncode == 0, ended.stderr
    (trial,) = kept.named("trial")
    called = kept.named("execute_tool open_door")
    assert len(called) == 2
    for span in called:
        path = kept.path(span)
        assert path[:3] == ["proctor-client: trial", "invoke_agent walker", "turn"]
        assert "proctor-worker: POST /sessions/{session}/turns" in path
        assert path[-2:] == ["environment step", "execute_tool open_door"]
    assert trial.events["gen_ai.evaluation.result"] == {
        "gen_ai.evaluation.name": "doors",
        "gen_ai.evaluation.score.value": 1.0,
        "gen_ai.evaluation.score.label": "completed",
    }
    names = {name for span in kept.spans for name in span.attributes if name.startswith("gen_ai.")}
    assert names - {value for value in vars(gen_ai_attributes).values() if isinstance(value, str)} == set()
    assert {span.name for span in kept.spans if "gen_ai.output.messages" in span.attributes} == (
        {"chat signs"} if content == "true" else set()
    )
    assert (b"You walk from door to door" in kept.raw) == (content == "true")


@pytest.mark.parametrize("variable", ["PROCTOR_LOG_FORMAT", "PROCTOR_LOG_LEVEL"])
def test_a_setting_of_the_log_that_is_none_is_named(tmp_path: Path, variable: str) -> None:
    ended = exits(2, "ls", cwd=tmp_path, **{variable: "loud"})
    assert f"{variable}: 'loud' is none of" in ended.stderr


RECORDS_AND_ENDS = """\
from proctor.observability import tracing
tracing.set_up("client")
with tracing.root("trial"):
    print(len(tracing.headers()["traceparent"]))
tracing.close()
"""


def test_a_collector_that_never_answers_holds_no_process_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        gone = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "600",
        }
        ended = subprocess.run(
            [sys.executable, "-c", RECORDS_AND_ENDS],
            env={**os.environ, **gone},
            timeout=slowly(60),
            check=False,
            capture_output=True,
        )
    assert (ended.returncode, ended.stdout) == (0, b"55\n"), ended.stderr
