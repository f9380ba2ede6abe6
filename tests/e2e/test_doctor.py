"""`proctor doctor` before real trouble: each test brings some about, and every finding has its fix."""

import contextlib
import http.server
import json
import os
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from eval_client.cli.doctor import machine
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.records import Manifest, Trial
from eval_client.store.sqlite_file import file_of
from eval_client.store.store import Store
from eval_client.store.tables import metadata, run_table
from tests.database_servers import postgresql, program
from tests.e2e.docker_engine import OwnEngine
from tests.e2e.proctor import TOKEN, proctor, server
from tests.e2e.replicas.replica_server import Process, processes
from tests.e2e.scripted import listening
from tests.e2e.tools_endpoint import ToolsEndpoint, importable
from tests.pace import slowly
from tests.support import serving

CANARY = "sk-canary-canary-1234"
OWN = "{name: own, environment: db, parameters: {engine: sqlite}}"


class Report:
    """What the doctor found."""

    def __init__(self, ended: subprocess.CompletedProcess[str]) -> None:
        assert "Traceback" not in ended.stderr, ended.stderr
        assert "canary" not in ended.stdout + ended.stderr
        self.code = ended.returncode
        self.findings: list[dict[str, str]] = json.loads(ended.stdout)["findings"]
        for each in self.findings:
            assert bool(each["fix"]) == bool(each["why"]) == (each["status"] in ("warn", "fail"))

    def says(self, kind: str, status: str, *texts: str) -> None:
        """There is such a finding with all these texts."""
        found = [each for each in self.findings if each["id"] == kind and each["status"] == status]
        assert any(all(text in each["what"] + each["fix"] for text in texts) for each in found), str(self)

    def __str__(self) -> str:
        return "\n".join(f"{each['status']} {each['id']}: {each['what']}" for each in self.findings)


def doctor(folder: Path, *arguments: str, **extra: str) -> Report:
    """`proctor doctor --json ...` to its end."""
    return Report(proctor("doctor", "--json", *arguments, cwd=folder, **extra))


def doctor_within(folder: Path, script: str, *arguments: str, **extra: str) -> Report:
    """The same as root of a mount and user namespace of its own, in which a shell script was run before."""
    command = ["unshare", "--map-root-user", "--mount", "sh", "-ec", f'{script}\nexec "$@"', "sh"]
    ended = proctor("doctor", "--json", *arguments, cwd=folder, within=command, **extra)
    assert ended.stdout, ended.stderr
    return Report(ended)


def without_mariadb() -> str:
    """Shell commands after which no mariadbd can be started."""
    path = program("mariadbd")
    return f"mount --bind /dev/null {path}" if path else ":"


def test_a_poor_machine(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    report = doctor_within(
        tmp_path,
        "mount -t tmpfs -o size=200m tmpfs runs",
        DOCKER_HOST=f"unix://{tmp_path}/nothing.sock",
        PROCTOR_STORE=f"postgresql+psycopg://me:{CANARY}@127.0.0.1:9/x",
    )
    assert report.code == 1
    report.says("python", "ok", sys.version.split()[0])
    report.says("extra", "ok", "db: pymysql")
    report.says("docker-down", "warn", "nothing.sock", "DOCKER_HOST")
    report.says("runs-folder", "ok")
    report.says("disk-short", "warn", "0.2 GiB")
    report.says("store-unreachable", "fail", "***@127.0.0.1:9")


BAD = {
    "keyless": (401, b'{"error": {"message": "Incorrect API key provided: ' + CANARY.encode() + b'"}}'),
    "unheard-of": (404, b'{"error": {"message": "The model `unheard-of` does not exist"}}'),
    "poor": (429, b'{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}'),
    "busy": (429, b'{"error": {"message": "Rate limit reached"}}'),
    "ill": (503, b"overloaded"),
    "strict": (400, b'{"error": {"message": "temperature must be at most 2"}}'),
    "chatty": (200, b"<html>Welcome</html>"),
}
KINDS = {
    "good": "agent",
    "keyless": "agent-key",
    "unheard-of": "agent-model",
    "poor": "agent-quota",
    "ill": "agent-failing",
    "strict": "agent-refuses",
    "chatty": "agent-reply",
    "silent": "agent-silent",
}
GOOD = b'{"choices": [{"message": {"content": "ready"}}], "usage": {"prompt_tokens": 20, "completion_tokens": 1}}'


@contextlib.contextmanager
def models() -> Iterator[tuple[str, list[str]]]:
    """An endpoint whose models each have a way of their own to fail; its base URL, and what it was asked for."""
    released, asked = threading.Event(), []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            model = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["model"]
            asked.append(model)
            if model == "silent":
                released.wait()
            self._answer(*BAD.get(model, (200, GOOD)))

        def do_GET(self) -> None:
            asked.append(self.path)
            self._answer(200, b'{"data": [{"id": "good"}]}')

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Not at all."""

    class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
        block_on_close = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that left early is no error."""

    with Server(("127.0.0.1", 0), Handler) as listening, serving(listening):
        try:
            yield f"http://127.0.0.1:{listening.server_address[1]}/v1", asked
        finally:
            released.set()


def test_a_plan_with_everything_wrong_that_can_be_wrong_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "empty").mkdir()
    with models() as (url, asked):
        agents = [{"name": name, "endpoint": url} for name in ("good", *BAD, "silent")]
        agents += [
            {"name": "refusing", "endpoint": "http://127.0.0.1:9/v1"},
            {"name": "secure", "endpoint": url.replace("http:", "https:")},
            {"name": "naive", "builtin": "naive"},
            {"name": "garbled", "endpoint": "other"},
        ]
        tasks: list[dict[str, object]] = [
            {"name": "lost", "environment": "db", "data": "nowhere.jsonl"},
            {"name": "sql", "environment": "db"},
            {"name": "boxes", "environment": "os"},
            {"name": "thin", "environment": "os", "parameters": {"engine": "namespace"}},
            {"name": "cards", "environment": "card_game"},
            {"name": "kept", "environment": "ltp", "parameters": {"host": {"model": "h"}, "cache": "/proc/no"}},
        ]
        plan = {
            "endpoints": [{"name": "other", "base_url": url, "api_key_env": "GARBLED"}],
            "agents": agents,
            "tasks": tasks,
        }
        (tmp_path / "plan.yaml").write_text(json.dumps(plan))
        report = doctor_within(
            tmp_path,
            f"mount -t tmpfs -o ro tmpfs runs\n{without_mariadb()}",
            *("plan.yaml", f"--patience={slowly(3)}"),
            OPENAI_API_KEY=CANARY,
            GARBLED=f"{CANARY} \u00e9",
            DOCKER_HOST=f"unix://{tmp_path}/nothing.sock",
        )
        assert report.code == 1
        assert sorted(asked) == sorted(["good", *BAD, "silent"])
        for model, kind in KINDS.items():
            report.says(kind, "ok" if kind == "agent" else "fail", f"agent {model}: model {model} at {url}")
        report.says("agent-throttled", "warn", "agent busy")
        report.says("agent-key", "fail", "OPENAI_API_KEY holds the key that was sent", "***")
        report.says("agent-unreachable", "fail", "agent refusing")
        report.says("agent-tls", "fail", "agent secure")
        report.says("agent", "skip", "agent naive is built in")
        report.says("key", "ok", "OPENAI_API_KEY is set")
        report.says("key-broken", "fail", "GARBLED")
        report.says("agent", "skip", "agent garbled: see key-broken")
        report.says("data-broken", "fail", "task 'lost'", "nowhere.jsonl")
        report.says("mariadb-missing", "fail", "task sql", "engine: sqlite")
        report.says("docker-down", "fail", "nothing.sock")
        report.says("task-untrusted", "fail", "task thin", "good")
        report.says("environment", "ok", "task cards")
        report.says("environment-fault", "fail", "task kept", "set `cache` to another folder")
        report.says("runs-folder-unwritable", "fail", "Read-only file system", "-o FOLDER")

        asked.clear()
        (tmp_path / "plan.yaml").write_text(json.dumps({**plan, "agents": agents[:2], "tasks": tasks[4:5]}))
        plain = proctor("doctor", "plan.yaml", "--no-calls", cwd=tmp_path, OPENAI_API_KEY="")
        assert asked == ["/v1/models", "/v1/models"]
        assert plain.returncode == 1
        assert "\x1b" not in plain.stdout
        assert "skip  key: OPENAI_API_KEY is unset" in plain.stdout
        assert "fail  agent-model: agent keyless" in plain.stdout
        assert "\n      fix: correct `model`\n" in plain.stdout


@pytest.mark.smoke
def test_a_plan_with_mistakes_is_told_with_file_line_and_field(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(f"agents: [{{name: naive, builtin: naive}}]\ntasks: [{OWN}]\nepochs: many\n")
    report = doctor(tmp_path, "plan.yaml")
    assert report.code == 1
    report.says("plan-broken", "fail", "plan.yaml:3: epochs")
    assert proctor("doctor", "--run", "r", cwd=tmp_path).returncode == 2


def test_a_command_that_is_not_on_this_machine(tmp_path: Path) -> None:
    words = '["no-such-program", "{url}"]'
    agents = (
        f"[{{name: here, kind: command, command: [sh, '{{url}}']}}, {{name: gone, kind: command, command: {words}}}]"
    )
    (tmp_path / "plan.yaml").write_text(f"agents: {agents}\ntasks: [{OWN}]\n")
    report = doctor(tmp_path, "plan.yaml")
    assert report.code == 1
    report.says("agent-command", "fail", "agent gone", "no-such-program", "install it")
    report.says("agent", "skip", "agent here is a command: sh")


def test_a_run_whose_store_lacks_turns_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "runs" / "r").mkdir(parents=True)
    store = Store(connect(sqlite_url(tmp_path / "runs" / "r")), "r")
    store.create(
        Manifest(version="1", plan_path="p", plan={}, identity={}),
        [Trial(id=0, agent="a", task="t", sample="s", epoch=0)],
    )
    Path(f"{file_of(store.engine)}.r.open").write_text("3 1 0")  # what a killed client had made durable
    report = doctor(tmp_path, "--run", "r")
    assert report.code == 1
    report.says("run-damaged", "fail", "3 turns, 1 attempts", "are lost", "restore its store")
    store.engine.dispose()


@pytest.mark.docker
@pytest.mark.mariadb
def test_a_plan_that_can_be_run_fails_nothing_and_leaves_nothing_behind() -> None:
    folder = Path(tempfile.mkdtemp(prefix="proctor-doctor-", dir="/tmp"))  # a socket's path must be short
    folder.chmod(0o755)
    try:
        temporary = folder / "tmp"
        temporary.mkdir()
        temporary.chmod(0o1777)
        tasks = [{"name": name, "environment": name} for name in ("db", "os", "card_game")]
        plan = {"agents": [{"name": "naive", "builtin": "naive"}], "tasks": tasks}
        (folder / "plan.yaml").write_text(json.dumps(plan))
        report = doctor(folder, "plan.yaml", "--patience", "60", TMPDIR=str(temporary))
        assert report.code == 0, str(report)
        for name in ("db", "os", "card_game"):
            report.says("environment", "ok", f"task {name}")
            report.says("data", "ok", f"task {name}")
        report.says("docker-image", "ok", "proctor-os:latest")
        assert list(temporary.iterdir()) == []
        assert [path.name for path in folder.iterdir() if path.name not in ("plan.yaml", "tmp")] == []
    finally:
        shutil.rmtree(folder)


REMOTE = """\
controller: {controller}
agents: [{{name: naive, builtin: naive}}, {{name: reference, builtin: reference}}]
tasks:
  - {{name: own, environment: db, parameters: {{engine: sqlite}}, data: mine.jsonl}}
  - {{name: full, environment: card_game}}
  - {{name: boxes, environment: os}}
  - {{name: gone, environment: card_game}}
"""


def test_a_controller_whose_workers_are_of_another_version_and_data(tmp_path: Path) -> None:
    import environments.database

    shipped = Path(str(environments.database.__file__)).parent / "samples" / "select.jsonl"
    (tmp_path / "theirs.jsonl").write_text(shipped.read_text())
    (tmp_path / "mine.jsonl").write_text(shipped.read_text().replace("?", "!", 1))
    (tmp_path / "one.yaml").write_text(
        "tasks:\n- {name: own, environment: db, parameters: {engine: sqlite}, data: theirs.jsonl}\n"
        "- {name: boxes, environment: os}\n"
    )
    (tmp_path / "two.yaml").write_text("tasks: [{name: full, environment: card_game, capacity: 1}]\n")
    with (
        server("controller", "--settle=0", cwd=tmp_path) as controller,
        server(
            "worker",
            *("--tasks=one.yaml", "--name=one", f"--controller={controller.url}"),
            cwd=tmp_path,
            DOCKER_HOST=f"unix://{tmp_path}/nothing.sock",
        ),
        server(
            "worker",
            *("--tasks=two.yaml", "--name=two", f"--controller={controller.url}"),
            cwd=tmp_path,
            PYTHONPATH=os.pathsep.join([str(older_version(tmp_path)), os.environ.get("PYTHONPATH", "")]),
        ),
    ):
        occupy(controller.url, "full")
        (tmp_path / "plan.yaml").write_text(REMOTE.format(controller=controller.url))
        report = doctor(tmp_path, "plan.yaml")
        assert report.code == 1
        report.says("plan", "ok", "2 agents, 4 tasks")
        report.says("controller", "ok", controller.url)
        report.says("key", "ok", "PROCTOR_TOKEN")
        report.says("task", "ok", "task own: 8 of 8")
        report.says("task-full", "warn", "task full: all 1 slots")
        report.says("task-waiting", "fail", "task boxes", "nothing.sock")
        report.says("task-unknown", "fail", "task gone", f"--controller {controller.url}")
        report.says("data-differs", "fail", "task own")
        report.says("version", "ok", controller.url)
        refused = doctor(tmp_path, "plan.yaml", PROCTOR_TOKEN="wrong-canary-token")
        refused.says("controller-token", "fail", "PROCTOR_TOKEN holds the token that was sent")


def older_version(folder: Path) -> Path:
    """A folder that, first on its path, makes a Python process believe that an older Proctor is installed."""
    info = folder / "older" / "proctor-0.0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: proctor\nVersion: 0.0.1\n")
    [entry_points] = Path(sys.prefix).glob("lib/python*/site-packages/proctor-*.dist-info/entry_points.txt")
    shutil.copy(entry_points, info)
    return info.parent


def occupy(controller: str, task: str) -> None:
    """Begin a session, once the task can be started."""

    def ask(path: str, body: object = None) -> object:
        request = urllib.request.Request(controller + path, json.dumps(body).encode() if body else None)
        request.add_header("Authorization", f"Bearer {TOKEN}")
        with urllib.request.urlopen(request, timeout=slowly(60)) as reply:
            return json.loads(reply.read())

    version = ""
    while True:
        listed = ask(f"/tasks?wait_s=30&after={version}")
        assert isinstance(listed, dict)
        names = {each["name"]: each for each in listed["tasks"]}
        if (
            names.get(task, {}).get("free")
            and names.get("own", {}).get("free")
            and names["boxes"]["waiting"] != "starting"
        ):
            break
        version = listed["version"]
    samples = ask(f"/tasks/{task}/samples")
    assert isinstance(samples, dict)
    ask("/sessions", {"session": "1" * 32, "task": task, "sample": samples["samples"][0], "lease_s": 600.0})


@pytest.mark.postgresql
def test_stores_that_refuse_or_hold_runs_of_another_version() -> None:
    with postgresql() as database:
        assert machine.store(database.url).id == "store"
        engine = sa.create_engine(database.url)
        with engine.begin() as connection:
            connection.execute(sa.text("CREATE ROLE poor LOGIN"))
        refused = machine.store(database.url.replace("//proctor@", "//poor@"))
        assert refused.id == "store-rights"
        assert "permission denied" in refused.what
        metadata.create_all(engine)
        with engine.begin() as connection:
            row = {"id": "r", "schema_version": 0, "created_at": "", "manifest": "", "fence": 0, "state": "new"}
            connection.execute(run_table.insert(), row)
        engine.dispose()
        other = machine.store(database.url)
        assert other.id == "store-schema"
        assert sa.inspect(engine).has_table("proctor_doctor_probe") is False
        engine.dispose()


PODMAN = {
    "version": {"ApiVersion": "1.41", "MinAPIVersion": "1.24", "Components": [{"Name": "Podman Engine"}]},
    "info": {"ServerVersion": "4.3.1", "SecurityOptions": ["name=seccomp", "name=rootless"], "CgroupVersion": "1"},
    "json": {"Id": "sha256:1"},
}
"""What Podman tells of itself without root on cgroup v1, by the end of a path; and of an image."""


def test_an_engine_that_limits_nothing(tmp_path: Path) -> None:
    class Podman(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(PODMAN.get(self.path.rpartition("/")[2], {})).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Not at all."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Podman) as engine, serving(engine):
        report = doctor(tmp_path, DOCKER_HOST=f"tcp://127.0.0.1:{engine.server_port}")
    report.says("docker", "ok", "Podman 4.3.1", "lack of memory")
    report.says("docker-unlimited", "warn", "the memory and processes of a container", "cgroup v2")
    report.says("docker-image", "ok")


@pytest.mark.docker
def test_an_engine_without_image(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="proctor-doctor-", dir="/tmp"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", str(folder)], check=True)
    try:
        engine = OwnEngine(folder, "--default-address-pool=base=10.213.0.0/23,size=24")
        engine.start()
        try:
            (tmp_path / "plan.yaml").write_text(
                "agents: [{name: naive, builtin: naive}]\ntasks: [{name: boxes, environment: os}]\n"
            )
            alone = doctor(tmp_path, DOCKER_HOST=engine.host)
            alone.says("docker", "ok", "Docker engine")
            alone.says("docker-image-missing", "warn", "proctor-os:latest", "docker build")
            planned = doctor(tmp_path, "plan.yaml", DOCKER_HOST=engine.host)
            planned.says("docker-image-missing", "fail", "proctor-os:latest")
        finally:
            engine.stop()
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


def test_each_server_of_an_endpoint_is_asked_and_their_file_is_read(tmp_path: Path) -> None:
    plan, listed = tmp_path / "plan.yaml", tmp_path / "servers"
    text = "endpoints: [{name: e, %s}]\nagents: [{name: a, endpoint: e, model: m}]\ntasks: [" + OWN + "]\n"
    with processes(0.05, "broken") as several:
        plan.write_text(text % f"base_url: {json.dumps([each.url for each in several])}")
        report = doctor(tmp_path, "plan.yaml", OPENAI_API_KEY=CANARY)
        report.says("agent", "ok", several[0].url)
        report.says("agent-failing", "fail", several[1].url, "engine dead")
        several += [Process(model="m:8192"), Process(model="other")]
        plan.write_text(text % f"base_url: {json.dumps([several[0].url, several[2].url])}")
        report = doctor(tmp_path, "plan.yaml", OPENAI_API_KEY=CANARY)
        report.says("replicas-differ", "warn", several[2].url, "max_model_len: 4096, 8192")
        plan.write_text(text % f"base_url: {json.dumps([several[0].url, several[3].url])}")
        report = doctor(tmp_path, "plan.yaml", OPENAI_API_KEY=CANARY)
        report.says("replicas-other", "fail", several[3].url, "serves other, not m")
        plan.write_text(text % "replicas_file: servers")
        listed.write_text(f"{several[0].url}\nnonsense\n")
        report = doctor(tmp_path, "plan.yaml", OPENAI_API_KEY=CANARY)
        report.says("agent", "ok", several[0].url)
        report.says("replicas-file", "fail", "line 2")
        report.says("agent", "skip", "--enable-prompt-tokens-details")


def test_servers_that_refuse_a_temperature_of_0_are_not_said_to_be_alike_in_an_answer(tmp_path: Path) -> None:
    with processes("default", "default") as several:
        where = f"base_url: {json.dumps([each.url for each in several])}"
        tasks = OWN + ", {name: riddles, environment: ltp, parameters: {host: {endpoint: e, model: m}}}"
        text = f"endpoints: [{{name: e, {where}}}]\nagents: [{{name: a, endpoint: e, model: m}}]\ntasks: [{tasks}]\n"
        (tmp_path / "plan.yaml").write_text(text)
        report = doctor(tmp_path, "plan.yaml", OPENAI_API_KEY=CANARY)
    report.says("agent", "ok", several[1].url, "answers in")
    report.says("agent-refuses", "fail", "task riddles: host m", several[1].url, "write `temperature: 1`")
    alike = [each["what"] for each in report.findings if "servers are alike" in each["what"]]
    assert alike == [f"{each}: 2 servers are alike in what they list" for each in ("agent a", "task riddles: host m")]


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
