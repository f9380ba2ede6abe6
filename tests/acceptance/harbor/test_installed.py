"""Agents of `kind: installed`: a program in a task's container that reaches its endpoint's relay and nothing else."""

import json
import re
import shutil
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.proctor import begin, exits
from tests.e2e.scripted import ScriptedEndpoint, listening, reply
from tests.pace import slowly, until

TASKS = Path(__file__).with_name("tasks")
KEY = "sk-key-of-the-endpoint-0123456789"
SOLVE = "RUN:for line in ann,12 bob,30 cid,5; do echo $line; done >totals.csv:END"
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
CODER = r"""
import os, re, socket, subprocess, sys

URL = os.environ.get("OPENAI_BASE_URL") or os.environ["ANTHROPIC_BASE_URL"] + "/v1"
CHAT = "/chat/completions"
TOKEN = os.environ.get("OPENAI_API_KEY") or os.environ["ANTHROPIC_API_KEY"]


def ask(path, body='{"model": "any", "messages": []}', token=TOKEN):
    host, _, port = URL.split("/")[2].partition(":")
    with socket.create_connection((host, int(port))) as to:
        head = f"POST /v1{path} HTTP/1.1\r\nHost: relay\r\nContent-Length: {len(body)}\r\n"
        if "ANTHROPIC_API_KEY" in os.environ:
            head += f"x-api-key: {token}\r\nanthropic-beta: seen-2026\r\n\r\n"
        else:
            head += f"Authorization: Bearer {token}\r\n\r\n"
        to.sendall((head + body).encode())
        came = b""
        while some := to.recv(65536):
            came += some
    return came.decode()


def solve(path, **more):
    came = ask(path, **more)
    print(came)
    for code in re.findall("RUN:(.*?):END", came):
        subprocess.run(["bash", "-c", code], check=True)


print("prompt:", sys.argv[1], "FILLED", sys.argv[3] in URL, sys.argv[4] == TOKEN, sys.argv[5])
exec(sys.argv[2])
"""
INSTALL = f"mkdir -p /opt/coder && cat >/opt/coder/coder.py <<'END'\n{CODER}\nEND"

pytestmark = [pytest.mark.docker, pytest.mark.thorough]


def chat(content: str) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    told = {"id": "1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": USAGE}
    return json.dumps(told).encode()


def events(*told: dict[str, Any], named: bool = False) -> bytes:
    """A stream of these events."""
    lines = [(f"event: {each['type']}\n" if named else "") + f"data: {json.dumps(each)}\n\n" for each in told]
    return "".join(lines).encode()


TEXT = {"type": "output_text", "text": SOLVE, "annotations": []}
ITEM = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [TEXT]}
COUNTED = {"input_tokens": 100, "output_tokens": 10}
RESPONSE = {"id": "r", "object": "response", "model": "m", "status": "completed", "output": [ITEM], "usage": COUNTED}
MESSAGE = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "usage": COUNTED}
DELTA = {"id": "1", "object": "chat.completion.chunk", "model": "m"}
WHOLE = {
    "chat": chat(SOLVE),
    "responses": json.dumps(RESPONSE).encode(),
    "messages": json.dumps({**MESSAGE, "content": [{"type": "text", "text": SOLVE}]}).encode(),
}
STREAMED = {
    "chat": events(
        {**DELTA, "choices": [{"index": 0, "delta": {"role": "assistant", "content": SOLVE}, "finish_reason": None}]},
        {**DELTA, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {**DELTA, "choices": [], "usage": USAGE},
    )
    + b"data: [DONE]\n\n",
    "responses": events(
        {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": SOLVE},
        {"type": "response.completed", "response": RESPONSE},
        named=True,
    ),
    "messages": events(
        {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SOLVE}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": COUNTED},
        {"type": "message_stop"},
        named=True,
    ),
}
PATHS = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    scripted = ScriptedEndpoint()
    scripted.always = reply(200, chat(SOLVE))
    with listening(scripted):
        yield scripted


def plan(folder: Path, url: str, agents: Mapping[str, str], dialect: str = "chat", **more: Any) -> None:
    """A plan of agents that each run some code; `more` are other fields, of an endpoint and of the task too."""
    shutil.copytree(TASKS / "files", folder / "tasks" / "files", dirs_exist_ok=True)
    agent = {"kind": "installed", "endpoint": "lab", "model": "own-model", "install": INSTALL, **more.pop("agent", {})}
    lab = {"name": "lab", "base_url": url, "dialect": dialect, "api_key_env": "LAB_KEY", "max_tries": 2}
    parameters = {"data": "tasks", "network": "relay", "time_factor": slowly(1), **more.pop("parameters", {})}
    command = ["python3", "-u", "/opt/coder/coder.py", "{prompt}"]
    given = {
        "controller": "local",
        "endpoints": [lab],
        "agents": [
            {"name": name, "command": [*command, code, "{url}", "{key}", "{model}"], **agent}
            for name, code in agents.items()
        ],
        "tasks": [{"name": "own", "environment": "harbor", "capacity": 3, "parameters": parameters}],
        **more,
    }
    (folder / "plan.yaml").write_text(json.dumps(given))


def trials(folder: Path) -> dict[str, dict[str, Any]]:
    """agent -> its trial"""
    exits(0, "export", "own", "--to", "rows.jsonl", cwd=folder)
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    return {row["agent"]: row for row in rows}


def ran(folder: Path, *more: str, code: int = 0) -> dict[str, dict[str, Any]]:
    """agent -> its trial in the plan's run, which ends so."""
    exits(code, "run", "plan.yaml", "--name", "own", *more, cwd=folder, LAB_KEY=KEY)
    return trials(folder)


def log_of(folder: Path, trial: dict[str, Any]) -> str:
    """What the program printed, as it is journalled."""
    return exits(0, "show", "own", str(trial["id"]), cwd=folder).stdout


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("dialect", PATHS)
def test_its_run_is_one_turn_in_each_dialect(
    dialect: str, streams: bool, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    body = '{"model": "any", "stream": true, "messages": []}' if streams else '{"model": "any", "messages": []}'
    kind = "Content-Type: text/event-stream\r\n" if streams else ""
    told = (STREAMED if streams else WHOLE)[dialect]
    head = f"HTTP/1.1 200 OK\r\n{kind}Content-Length: {len(told)}\r\n\r\n"
    endpoint.always = head.encode() + told
    plan(
        tmp_path, endpoint.url, {"coder": f"solve({PATHS[dialect]!r}, body={body!r})\nask({PATHS[dialect]!r})"}, dialect
    )
    row = ran(tmp_path)["coder"]
    assert (row["score"], row["turns"], row["prompt_tokens"], row["completion_tokens"]) == (1.0, 1, 200, 20)
    assert (row["estimated_tokens"], row["finish"]["metrics"]["steps"]) == (0, 2.0)
    shown = log_of(tmp_path, row)
    assert "prompt: `/app/orders.csv` has a line" in shown
    assert "FILLED True True own-model" in shown
    assert ("Content-Type: text/event-stream" in shown) == streams
    assert [request["model"] for request in endpoint.requests] == ["own-model"] * 2
    assert all(("seen-2026" in head) == (dialect == "messages") and KEY in head for head in endpoint.headers)


LOOK = """
import glob, struct
def reaches(where):
    try:
        socket.create_connection(where, 2).close()
    except OSError:
        return
    print("REACHED", where)
for where in [*WHERE]:
    reaches(tuple(where))
for line in open("/proc/net/tcp").read().splitlines()[1:]:
    fields = line.split()
    if fields[3] == "0A":
        print("LISTENS", int(fields[1].split(":")[1], 16))
print("INTERFACES", [line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line])
key = "BACKWARDS"[::-1]
held = [path for path in glob.glob("/proc/[0-9]*/environ") if key in open(path, errors="replace").read()]
for folder, folders, files in os.walk("/"):
    folders[:] = [each for each in folders if os.path.join(folder, each) not in ("/proc", "/sys", "/dev")]
    for name in files:
        try:
            with open(os.path.join(folder, name), "rb") as file:
                if key.encode() in file.read():
                    held.append(os.path.join(folder, name))
        except OSError:
            pass
solve(CHAT)
print("HELD", held, "TESTS", os.path.exists("/tests"), "PROCESSES", len(glob.glob("/proc/[0-9]*")))
"""
CASES = {
    "good": "sys.stdout.write('no line ends here'); solve(CHAT); sys.stdout.write('nor here')",
    "dialect": "print(ask('/messages'))\nsys.exit(1)",
    "token": "print(ask(CHAT, token='of-another-trial'))\nprint('TOKEN', TOKEN)\nask(CHAT)",
    "other": "print('TOKEN', TOKEN)\nask(CHAT)",
    "broken": "print(ask(CHAT, body='[]'))\nsolve(CHAT)",
    "crash": "solve(CHAT)\nsys.exit('it is broken')",
    "silent": "subprocess.run(['touch', 'totals.csv'])",
}


def test_what_it_may_ask_what_it_reaches_and_how_it_ends(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    port = int(endpoint.url.split(":")[2].split("/")[0])
    hosts = [
        "127.0.0.1",
        socket.gethostbyname(socket.gethostname()),
        "172.17.0.1",
        "10.88.0.1",
        "1.1.1.1",
        "host.docker.internal",
        "example.org",
    ]
    where = [(host, at) for host in hosts for at in (port, 53, 80, 443, 2375)]
    look = LOOK.replace("*WHERE", ", ".join(map(repr, where))).replace("BACKWARDS", KEY[::-1])
    plan(tmp_path, endpoint.url, {**CASES, "look": look}, limits={"attempts": 1})
    rows = ran(tmp_path, code=1)
    scores = {name: row["score"] for name, row in rows.items()}
    assert scores == {
        **{"good": 1.0, "look": 1.0, "broken": 1.0, "token": 0.0, "other": 0.0},
        **{"dialect": None, "crash": None, "silent": None},
    }
    logs = {name: log_of(tmp_path, row) for name, row in rows.items()}
    assert "the agent's endpoint speaks the dialect chat, at /chat/completions alone" in rows["dialect"]["cause"]
    assert "the dialect messages is not translated" in rows["dialect"]["cause"]
    assert "python3 ended with exit code 1: " in rows["crash"]["cause"]
    assert "it is broken" in rows["crash"]["cause"]
    assert "ended without an answer of its model" in rows["silent"]["cause"]
    assert "HTTP/1.1 401" in logs["token"]
    assert "HTTP/1.1 400" in logs["broken"]
    tokens = {re.findall(r"TOKEN (\S+)", logs[name])[0] for name in ("token", "other")}
    assert len(tokens) == 2
    assert "REACHED" not in logs["look"]
    assert {*re.findall(r"LISTENS (\d+)", logs["look"])} == {"8377"}
    assert "INTERFACES ['lo']" in logs["look"]
    assert "HELD [] TESTS False" in logs["look"]
    assert len(endpoint.requests) == 6


ENDS = {
    "turns": "for _ in range(9): ask(CHAT)",
    "full": 'print(ask(CHAT, body=\'{"wants": "full"}\'))',
    "fits": 'print(ask(CHAT, body=\'{"wants": "full"}\'))\nsolve(CHAT)',
    "refused": 'ask(CHAT, body=\'{"wants": "refusal"}\')',
    "failing": 'solve(CHAT)\nask(CHAT, body=\'{"wants": "trouble"}\')',
}
FULL = {"code": "context_length_exceeded", "message": "This model's maximum context length is 10 tokens."}


def by_wish(request: dict[str, Any]) -> bytes | None:
    """What the endpoint of the next test replies to a request that wants something."""
    refusal = json.loads(chat(""))
    refusal["choices"][0] |= {"finish_reason": "content_filter"}
    replies = {
        "full": reply(400, json.dumps({"error": FULL}).encode()),
        "refusal": reply(200, json.dumps(refusal).encode()),
        "trouble": reply(500, b"trouble"),
    }
    return replies.get(request.get("wants", ""))


def test_limits_hold_and_what_the_endpoint_fails_in_is_no_score(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    endpoint.rule = by_wish
    plan(tmp_path, endpoint.url, ENDS, limits={"attempts": 1, "trial": {"turns": 3}}, refusals="unscored")
    rows = ran(tmp_path, code=1)
    assert {name: (row["reason"], row["score"]) for name, row in rows.items()} == {
        "turns": ("turn_limit", 0.0),
        "full": ("context_limit", 0.0),
        "fits": ("completed", 1.0),
        "refused": ("refused", None),
        "failing": ("agent_error", None),
    }
    assert rows["turns"]["prompt_tokens"] == 300
    assert rows["turns"]["finish"]["detail"]["program_log"].startswith("prompt: `/app/orders.csv`")
    assert "maximum context length is 10 tokens" in log_of(tmp_path, rows["fits"])
    assert "status 500: trouble (after 2 tries)" in rows["failing"]["cause"]
    assert rows["failing"]["prompt_tokens"] == 100


def test_a_limit_of_the_run_ends_it_and_more_goes_on(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    code = {"coder": "ask(CHAT)\nask(CHAT)\nsolve(CHAT)"}
    money = {"input": 1e6, "output": 0.0}
    plan(tmp_path, endpoint.url, code, agent={"price": money}, limits={"run": {"money": 150}})
    exits(1, "run", "plan.yaml", "--name", "own", cwd=tmp_path, LAB_KEY=KEY)
    assert len(endpoint.requests) == 2
    plan(tmp_path, endpoint.url, code, agent={"price": money}, limits={"run": {"money": 10_000}})
    exits(0, "resume", "own", "--plan", "plan.yaml", cwd=tmp_path, LAB_KEY=KEY)
    row = trials(tmp_path)["coder"]
    assert (row["score"], row["prompt_tokens"]) == (1.0, 500)


def has_seconds(folder: Path, seconds: int) -> None:
    """Give the task's agent so long."""
    toml = folder / "tasks" / "files" / "task.toml"
    toml.write_text(toml.read_text().replace("timeout_sec = 120.0", f"timeout_sec = {seconds}.0"))
    assert f"timeout_sec = {seconds}.0" in toml.read_text()


def test_a_late_program_is_ended_and_judged(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    late = "solve(CHAT)\nimport time\nwhile True: time.sleep(0.1); open('/app/alive', 'w').write(str(time.time()))"
    plan(tmp_path, endpoint.url, {"late": late})
    has_seconds(tmp_path, 5)
    test = tmp_path / "tasks" / "files" / "tests" / "test.sh"
    alive = "old=$(cat /app/alive); sleep 1; [ $old = $(cat /app/alive) ] || exit 1\n"
    test.write_text(test.read_text().replace("#!/bin/bash\n", f"#!/bin/bash\n{alive}"))
    assert alive in test.read_text()
    row = ran(tmp_path)["late"]
    assert (row["score"], row["reason"], row["finish"]["metrics"]["late"]) == (1.0, "turn_limit", 1.0)


def test_waits_for_an_endpoint_are_none_of_its_time(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    endpoint.bad = [reply(429, b"{}", "Retry-After: 8"), reply(200, chat(SOLVE))]
    endpoint.always = False
    plan(tmp_path, endpoint.url, {"patient": "solve(CHAT)"}, parameters={"time_factor": 1})
    has_seconds(tmp_path, 4)
    row = ran(tmp_path)["patient"]
    assert (row["score"], row["finish"]["metrics"]["late"]) == (1.0, 0.0)


def test_no_model_begins_a_program(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    program = {"command": ["true"], "install": "true", "model": "m", "dialect": "chat", "session": "?"}
    call = {"name": "run_installed_agent", "arguments": json.dumps(program)}
    message = {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function", "function": call}]}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    endpoint.always = reply(200, json.dumps({"model": "m", "choices": [choice], "usage": USAGE}).encode())
    plan(tmp_path, endpoint.url, {}, limits={"trial": {"turns": 2}})
    given = json.loads((tmp_path / "plan.yaml").read_text())
    (tmp_path / "plan.yaml").write_text(json.dumps({**given, "agents": [{"name": "model", "endpoint": "lab"}]}))
    row = ran(tmp_path)["model"]
    assert (row["score"], row["turns"], row["finish"]["metrics"]["unknown_function"]) == (0.0, 2, 2.0)


def test_after_a_kill_it_begins_anew_and_what_was_paid_stays_counted(
    endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    endpoint.bad = [reply(200, chat(SOLVE)), None]
    endpoint.always = False
    plan(tmp_path, endpoint.url, {"coder": "ask(CHAT)\nsolve(CHAT)"})
    begun = begin("run", "plan.yaml", "--name", "own", cwd=tmp_path, LAB_KEY=KEY)
    until(lambda: len(endpoint.requests) >= 2, slowly(60), lambda: "no second request")
    begun.kill()
    begun.communicate()
    endpoint.always = reply(200, chat(SOLVE))
    exits(0, "resume", "own", cwd=tmp_path, LAB_KEY=KEY)
    row = trials(tmp_path)["coder"]
    assert (row["score"], row["turns"], row["prompt_tokens"]) == (1.0, 1, 300)


def test_what_can_not_be_played_is_refused_before_the_run(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    plan(tmp_path, endpoint.url, {"coder": "solve(CHAT)"}, parameters={"network": "none"})
    told = exits(2, "run", "plan.yaml", cwd=tmp_path, LAB_KEY=KEY).stderr
    assert "tasks.own.parameters.network: agents of `kind: installed` play tasks of `environment: harbor`" in told
    plan(tmp_path, endpoint.url, {"coder": "solve(CHAT)"}, parameters={"runtime": "runsc"})
    assert "needs containers that share a network" in exits(2, "run", "plan.yaml", cwd=tmp_path, LAB_KEY=KEY).stderr
    plan(tmp_path, endpoint.url, {"coder": "{promt}"})
    assert "did you mean {prompt}?" in exits(2, "run", "plan.yaml", cwd=tmp_path, LAB_KEY=KEY).stderr
    plan(tmp_path, endpoint.url, {"coder": "solve(CHAT)"}, agent={"sampling": {"temperature": 0}})
    told = exits(2, "run", "plan.yaml", cwd=tmp_path, LAB_KEY=KEY).stderr
    assert "agents.coder.sampling: an agent of `kind: installed` has none" in told


def test_what_does_not_install_is_a_fault_with_its_last_lines(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    agent = {"install": "echo so far; exit 3"}
    plan(tmp_path, endpoint.url, {"coder": "solve(CHAT)"}, agent=agent, limits={"attempts": 1})
    row = ran(tmp_path, code=2)["coder"]
    assert (row["reason"], row["score"]) == ("task_error", None)
    assert "so far" in row["cause"]
