"""A deployment with TLS on every way and a distinct canary as every secret: who may do what, and who gets to see it."""

import base64
import contextlib
import json
import re
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
import sqlalchemy as sa

from proctor.http.tls import Tls
from task_server.http.access import token_for
from tests.database_servers import postgresql
from tests.e2e.forks.forker import STARTED
from tests.e2e.proctor import Server, begin, proctor, server
from tests.e2e.scripted import GOOD, ScriptedEndpoint, reply
from tests.pace import slowly
from tests.support import ROOT

TASKS = "tasks: [{name: db-own, environment: db, parameters: {engine: sqlite}}]\n"
PLAN = """
name: canaries
controller: CONTROLLER
tls: {ca: ../tls/ca.pem, cert: ../tls/client.pem, key: ../tls/client.key}
endpoints:
  - {name: echo, base_url: ENDPOINT, api_key_env: ECHO_KEY, max_tries: 6, max_retry_s: 60}
  - {name: ours, base_url: AGENTS, api_key_env: AGENTS_KEY}
agents:
  - {name: echo, endpoint: echo}
  - {name: reference, endpoint: ours, metadata: true}
tasks: [{name: db-own}]
limits: {patience_s: PATIENCE_S, attempts: 2, trial: {turns: 4}}
""".replace("PATIENCE_S", f"{slowly(10):g}")


@dataclass
class Site:
    """Servers under way, their secrets, and whatever they and the clients have said."""

    folder: Path
    variables: dict[str, str]
    canaries: dict[str, str]
    controller: Server
    worker: Server
    agents: Server
    http: httpx.Client
    seen: dict[str, str] = field(default_factory=dict)
    """Where something was said -> what."""

    def call(self, method: str, url: str, token: str | None) -> httpx.Response:
        """A request with the client's certificate."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        response = self.http.request(method, url, headers=headers, json={})
        self.seen[f"{method} {url} {response.status_code} {len(self.seen)}"] = f"{response.headers} {response.text}"
        return response

    def tls(self, name: str) -> Path:
        return self.folder.parent / "tls" / name

    def proctor(self, *arguments: str, code: int, **variables: str) -> str:
        """What a command said; it ends with the code."""
        ended = proctor(*arguments, cwd=self.folder, **{**self.variables, **variables})
        said = self.seen[f"proctor {arguments[0]} {len(self.seen)}"] = ended.stdout + ended.stderr
        assert ended.returncode == code, said
        return said


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    with postgresql() as database:
        yield database.url


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the commands of docs/explanation/security.md make."""
    folder = tmp_path_factory.mktemp("site") / "tls"
    folder.mkdir()
    block = re.search(r"```sh\n(.*?)```", (ROOT / "docs" / "explanation" / "security.md").read_text(), re.DOTALL)
    assert block is not None
    subprocess.run(["bash", "-euc", block[1]], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def site(tls: Path, store: str, tmp_path: Path) -> Iterator[Site]:
    names = ("client", "worker", "metrics", "agents", "echo", "store", "database", "typed")
    canaries = {name: f"canary-{name}-{secrets.token_hex(8)}" for name in names}
    folder, hidden = tls.parent / tmp_path.name, tls.parent / f"{tmp_path.name}-secrets"
    folder.mkdir()
    hidden.mkdir()
    (folder / "tasks.yaml").write_text(TASKS)
    files = {**canaries, "store-url": store.replace("proctor@", f"proctor:{canaries['store']}@", 1)}
    for name, text in files.items():
        (hidden / name).write_text(text + "\n")
    logs = {"PROCTOR_LOG_LEVEL": "debug", "PROCTOR_LOG_FORMAT": "json"}
    ca = [f"--tls-ca={tls / 'ca.pem'}", f"--tls-client-ca={tls / 'ca.pem'}"]
    with contextlib.ExitStack() as stack:

        def up(role: str, name: str, *arguments: str, **variables: str) -> Server:
            shown = [f"--tls-cert={tls / name}.pem", f"--tls-key={tls / name}.key", *ca]
            return stack.enter_context(server(role, *shown, *arguments, cwd=folder, **{**logs, **STARTED, **variables}))

        client = {"PROCTOR_TOKEN": "", "PROCTOR_TOKEN_FILE": str(hidden / "client")}
        workers = {"PROCTOR_WORKER_TOKEN_FILE": str(hidden / "worker"), "PROCTOR_METRICS_TOKEN": canaries["metrics"]}
        controller = up("controller", "controller", "--settle=0", **client, **workers)
        reports = ("--tasks=tasks.yaml", f"--controller={controller.url}")
        passwords = {"PROCTOR_TOKEN": "", "PROCTOR_DB_PASSWORD": canaries["database"]}
        worker = up("worker", "worker-1", *reports, **workers, **passwords)
        (folder / ".env").write_text(f"OURS={canaries['agents']}\n")
        agents = up("agents", "worker-1", "--tasks=tasks.yaml", "--token-env=OURS")
        variables = {
            **logs,
            **client,
            "PROCTOR_STORE_FILE": str(hidden / "store-url"),
            "ECHO_KEY_FILE": str(hidden / "echo"),
            "AGENTS_KEY": canaries["agents"],
        }
        context = Tls(ca=tls / "ca.pem", cert=tls / "client.pem", key=tls / "client.key").context()
        http = stack.enter_context(httpx.Client(verify=context, trust_env=False, timeout=slowly(30)))
        yield Site(folder, variables, canaries, controller, worker, agents, http)


@pytest.mark.postgresql
def test_no_canary_is_seen_anywhere_after_everything_went_wrong(site: Site, endpoint: ScriptedEndpoint) -> None:
    plan = PLAN.replace("CONTROLLER", site.controller.url)
    plan = plan.replace("base_url: AGENTS,", f"base_url: {site.agents.url},").replace("ENDPOINT", endpoint.url)
    (site.folder / "plan.yaml").write_text(plan)
    key = site.canaries["echo"]
    said = f"\x1b[31mthe key {key}, {quote(key)} or {base64.b64encode(key.encode()).decode()} is wrong"

    endpoint.always = reply(401, json.dumps({"error": {"message": said}}).encode())
    assert "stopped, its trials of" in site.proctor("run", "plan.yaml", "--name=refused", code=2)
    endpoint.always = False
    endpoint.bad = [reply(500, said.encode()), reply(429, said.encode()), reply(200, said.encode())]
    endpoint.bad += [reply(200, GOOD.replace(b"Thinking.", f"My key is {key}.".encode()))]
    running = begin("run", "plan.yaml", "--name=played", "--limit=2", cwd=site.folder, **site.variables, **STARTED)
    watched: set[str] = set()
    while running.poll() is None:
        watched |= command_lines()
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(0.2)
    site.seen["command lines"] = "\n".join(watched)
    site.seen["run"] = "".join(running.communicate())
    assert running.returncode == 0, site.seen["run"]
    assert "--name=played" in site.seen["command lines"]
    site.worker.kill()
    site.proctor("run", "plan.yaml", "--name=alone", "--limit=1", code=2)
    mistakes(site)
    site.proctor("report", "refused", code=0)
    site.proctor("export", "refused", "--as", "csv", "--to", "trials.csv", code=0)
    site.proctor("export", "played", "--what", "turns", "--to", "turns.jsonl", code=0)
    ask_everybody(site)
    site.seen["the store"] = rows_of(Path(site.variables["PROCTOR_STORE_FILE"]).read_text().strip())
    for path in site.folder.rglob("*"):
        if path.is_file() and path.name != ".env":
            site.seen[str(path)] = path.read_bytes().decode("utf-8", "replace")

    assert "My key is" not in site.seen["the store"], "a reply with the key is not played but asked for again"
    assert any(key in head for head in endpoint.headers)
    assert '"level": "' in site.seen[str(site.folder / "controller.log")]
    secrets_ = {**site.canaries, "of the worker": token_for(site.canaries["client"], site.worker.url)}
    secrets_ |= {path.name: path.read_text().splitlines()[1] for path in site.tls("").glob("*.key")}
    found = [
        (name, where, text[max(0, text.index(form) - 80) : text.index(form)])
        for name, secret in secrets_.items()
        for form in forms(secret)
        for where, text in site.seen.items()
        if form in text
    ]
    assert found == []
    assert [where for where, text in site.seen.items() if "\x1b" in text and not where.endswith(".jsonl")] == []


def mistakes(site: Site) -> None:
    """What a hurried user types, with secrets in it."""
    typed = site.canaries["typed"]
    plan = (site.folder / "plan.yaml").read_text()
    (site.folder / "wrong.yaml").write_text(re.sub(r"(https?)://", rf"\1://me:{typed}@", plan))
    said = site.proctor("run", "wrong.yaml", code=2)
    assert "wrong.yaml:3: controller:" in said
    assert said.count("must hold no user name, password") == 2
    (site.folder / "wrong.yaml").unlink()
    url = f"postgresql+psycopg://me:{typed}@127.0.0.1:9/x"
    assert "PROCTOR_STORE_FILE" in site.proctor("ls", "--store", url, code=2)
    site.proctor("ls", code=2, PROCTOR_STORE_FILE="", PROCTOR_STORE=url)
    site.proctor("run", "plan.yaml", code=2, PROCTOR_TOKEN=typed)
    site.proctor("run", "plan.yaml", code=2, PROCTOR_TOKEN=typed, PROCTOR_TOKEN_FILE="")
    site.proctor("worker", "--tasks=tasks.yaml", f"--controller=http://me:{typed}@127.0.0.1:9", code=2)


def ask_everybody(site: Site) -> None:
    """Every route, with every token."""
    paths = ("tasks", "workers", "metrics", "openapi.json", "healthz", "nothing", "sessions", "tasks/db-own/samples")
    for url in (site.controller.url, site.agents.url.removesuffix("/v1"), site.agents.url):
        for path in (*paths, "models", "chat/completions"):
            for token in (None, *(site.canaries[name] for name in ("client", "worker", "metrics", "agents"))):
                site.call("GET" if len(site.seen) % 2 else "POST", f"{url}/{path}", token)


def rows_of(url: str) -> str:
    """Every column of every row of every table."""
    engine = sa.create_engine(url)
    metadata = sa.MetaData()
    metadata.reflect(engine)
    with engine.connect() as connection:
        rows = [tuple(row) for table in metadata.sorted_tables for row in connection.execute(sa.select(table))]
    engine.dispose()
    assert len(rows) > 10
    return "\n".join(map(str, rows))


def command_lines() -> set[str]:
    """Of every process of this machine."""
    lines = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.add(path.read_text(errors="replace"))
    return lines


def forms(secret: str) -> set[str]:
    """What of a secret must be found nowhere."""
    encoded = {base64.b64encode(b"-" * lead + secret.encode()).decode()[4:-4] for lead in range(3)}
    return {secret, secret[-10:], quote(secret, safe=""), *encoded}


@pytest.mark.postgresql
def test_each_token_and_certificate_opens_what_it_should_and_nothing_else(site: Site) -> None:
    tokens, controller, worker = site.canaries, site.controller.url, site.worker.url
    assert controller.startswith("https://")
    own = token_for(tokens["client"], worker)
    opened = {
        (where, name, path): site.call(method, f"{url}{path}", token).status_code
        for where, url in (("controller", controller), ("worker", worker))
        for name, token in (*tokens.items(), ("own", own))
        for method, path in (("GET", "/tasks"), ("POST", "/workers"), ("GET", "/metrics"), ("POST", "/sessions"))
    }
    assert {route for route, status in opened.items() if status != 401} == {
        *(("controller", "client", path) for path in ("/tasks", "/metrics", "/sessions")),
        ("controller", "worker", "/workers"),
        ("controller", "metrics", "/metrics"),
        ("worker", "metrics", "/metrics"),
        *(("worker", "own", path) for path in ("/tasks", "/workers", "/metrics", "/sessions")),
    }
    elsewhere = {
        "worker": "w",
        "boot": "b",
        "url": "https://169.254.169.254",
        "sequence": 1,
        "tasks": [],
        "sessions": [],
    }
    headers = {"Authorization": f"Bearer {tokens['worker']}"}
    refused = site.http.post(f"{controller}/workers", json=elsewhere, headers=headers)
    assert (refused.status_code, refused.json()["type"]) == (403, "forbidden")
    assert "--allow-workers" in refused.json()["detail"]
    for url in (controller, worker, site.agents.url):
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{url}/healthz", verify=Tls(ca=site.tls("ca.pem")).context())
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            httpx.get(f"{url}/healthz")
    plan = (
        PLAN.replace("CONTROLLER", controller).replace("ENDPOINT", site.agents.url).replace("AGENTS,", f"{controller},")
    )
    (site.folder / "plan.yaml").write_text(plan.replace("tls: {ca: ../tls/ca.pem, ", "tls: {"))
    assert "certificate verify failed" in site.proctor("run", "plan.yaml", code=2)
