"""Tokens and certificates are replaced while a run plays: no attempt is lost, and the old ones open nothing."""

import contextlib
import sqlite3
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from task_server.http.access import token_for
from tests.e2e.proctor import Server, begin, exits, scored, server
from tests.pace import slowly, until

BOUND_S = 10.0
"""A token that left its file opens nothing after so long."""
TASKS = "tasks: [{name: db, environment: db, parameters: {engine: sqlite}, capacity: 4}]\n"
AGENTS = "token_env: PROCTOR_TOKEN\nagents: [{name: naive, kind: naive, latency_s: 0.3}]\n" + TASKS
TLS = "tls: {ca: ca.pem, cert: cert.pem, key: cert.key}\n"
PLAN = """\
controller: "{controller}"
route: {route}
epochs: {epochs}
endpoints: [{{name: ours, base_url: "{agents}", api_key_env: PROCTOR_TOKEN}}]
agents: [{{name: naive, builtin: naive, endpoint: ours, concurrency: 6}}]
tasks: [{{name: db}}]
limits: {{attempts: 1, patience_s: {patience_s}}}
tls: {{ca: ca.pem}}
"""
ROLES = ("clients", "workers", "metrics")
FILES = {**dict(zip(ROLES, ROLES, strict=True)), "agents": "clients"}
"""file of servers -> whose tokens it has"""


@dataclass
class Site:
    """Servers whose tokens are in files, one for each role and one of the client."""

    folder: Path
    controller: Server = field(init=False)
    workers: list[Server] = field(default_factory=list)
    agents: Server = field(init=False)

    def write(self, name: str, *lines: str) -> None:
        """Replace a file, in one step."""
        new = self.folder / f"{name}.new"
        new.write_text("".join(f"{line}\n" for line in lines))
        new.replace(self.folder / name)

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def ports(self) -> dict[str, tuple[str, str]]:
        """What is asked -> (method and URL, whose token opens it)"""
        url, worker = self.controller.url, self.workers[0].url
        return {
            "controller": (f"GET {url}/workers", "clients"),
            "a heartbeat": (f"POST {url}/workers", "workers"),
            "controller's metrics": (f"GET {url}/metrics", "metrics"),
            "worker": (f"GET {worker}/tasks", "derived"),
            "worker's metrics": (f"GET {worker}/metrics", "metrics"),
            "agents": (f"GET {self.agents.url}/models", "clients"),
            "agents' metrics": (f"GET {self.agents.url.removesuffix('/v1')}/metrics", "metrics"),
        }

    def opened(self, generation: str) -> dict[str, bool]:
        """Which ports the tokens of a generation open."""
        found = {}
        for where, (call, role) in self.ports().items():
            token = token_for(f"clients-{generation}", self.workers[0].url)
            found[where] = status(call, token if role == "derived" else f"{role}-{generation}") != 401
        return found

    def plan(self, route: str = "auto", patience_s: float = 60.0, epochs: int = 6) -> None:
        settings = {"controller": self.controller.url, "agents": self.agents.url, "route": route, "epochs": epochs}
        text = PLAN.format(**settings, patience_s=slowly(patience_s))
        over_tls = self.controller.url.startswith("https")
        (self.folder / "plan.yaml").write_text(text if over_tls else text.partition("tls:")[0])

    def begin(self) -> "subprocess.Popen[str]":
        variables = {"PROCTOR_TOKEN": "", "PROCTOR_TOKEN_FILE": self.file("mine")}
        return begin("run", "plan.yaml", "--name=r", "-q", cwd=self.folder, **variables)

    def log(self, role: str) -> str:
        return (self.folder / f"{role}.log").read_text()


def status(call: str, token: str) -> int:
    method, url = call.split()
    request = urllib.request.Request(url, method=method, headers={"Authorization": f"Bearer {token}"})
    request.data = b"{}" if method == "POST" else None
    try:
        with urllib.request.urlopen(request, timeout=slowly(10)) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def attempts(folder: Path) -> list[int]:
    """The attempts that each trial used."""
    with contextlib.closing(sqlite3.connect(folder / "runs" / "r" / "run.sqlite")) as store:
        return [int(count) for (count,) in store.execute("SELECT attempts FROM proctor_trial")]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with served(tmp_path) as site:
        until(lambda: all(site.opened("old").values()))
        yield site


@contextlib.contextmanager
def served(tmp_path: Path, *options_of_all: str) -> Iterator[Site]:
    """A controller, two workers and an agent server."""
    site = Site(tmp_path)
    (tmp_path / "tasks.yaml").write_text(TASKS)
    for name, role in FILES.items():
        site.write(name, f"{role}-old")
    site.write("own", "workers-old")
    site.write("mine", "clients-old")
    clients = {"PROCTOR_TOKEN": "", "PROCTOR_TOKEN_FILE": site.file("clients")}
    metrics = {"PROCTOR_METRICS_TOKEN_FILE": site.file("metrics")}
    with contextlib.ExitStack() as stack:

        def up(*arguments: str, **variables: str) -> Server:
            return stack.enter_context(
                server(*arguments, *options_of_all, cwd=tmp_path, PROCTOR_LOG_LEVEL="info", **variables)
            )

        workers = {"PROCTOR_WORKER_TOKEN_FILE": site.file("workers")}
        site.controller = up("controller", "--settle=0", **clients, **workers, **metrics)
        options = ("--tasks=tasks.yaml", f"--controller={site.controller.url}")
        own = {"PROCTOR_TOKEN": "", "PROCTOR_WORKER_TOKEN_FILE": site.file("own"), **metrics}
        site.workers = [up("worker", *options, f"--name=w{number}", **own) for number in range(2)]
        (tmp_path / "agents.yaml").write_text(AGENTS + (TLS if options_of_all else ""))
        agents = {**clients, "PROCTOR_TOKEN_FILE": site.file("agents")}
        site.agents = stack.enter_context(server("agents", "--config=agents.yaml", cwd=tmp_path, **agents, **metrics))
        yield site


@pytest.mark.parametrize("route", ["auto", "relayed"])
def test_all_three_tokens_are_replaced_under_load_without_an_attempt(site: Site, route: str) -> None:
    site.plan(route)
    run = site.begin()
    until(lambda: scored(site.folder, "r") >= 10)
    for name, role in FILES.items():
        site.write(name, f"{role}-old", f"{role}-new")
    until(lambda: all(site.opened("new").values()), BOUND_S)
    site.write("own", "workers-new")
    site.write("mine", "clients-new")
    before = scored(site.folder, "r")
    until(lambda: scored(site.folder, "r") >= before + 20)
    for name, role in FILES.items():
        site.write(name, f"{role}-new")
    until(lambda: not any(site.opened("old").values()), BOUND_S, lambda: site.opened("old"))
    assert run.poll() is None, "the run goes on under the new tokens"
    said = "".join(run.communicate())
    assert run.returncode == 0, said
    assert all(site.opened("new").values())
    assert {*attempts(site.folder)} == {1}
    logs = said + "".join(map(site.log, ("controller", "worker", "agents")))
    assert not any(f"{role}-{age}" in logs for role in ROLES for age in ("old", "new"))


def test_tokens_that_are_replaced_in_one_step_everywhere_cost_no_attempt(site: Site) -> None:
    site.plan()
    run = site.begin()
    until(lambda: scored(site.folder, "r") >= 10)
    for name, role in {"mine": "clients", "own": "workers", **FILES}.items():
        site.write(name, f"{role}-new")
    said = "".join(run.communicate())
    assert run.returncode == 0, said
    assert {*attempts(site.folder)} == {1}


def test_a_client_without_the_new_token_waits_and_ends_with_its_trials_pending(site: Site) -> None:
    site.plan(patience_s=2.0, epochs=2)
    run = site.begin()
    until(lambda: scored(site.folder, "r") >= 10)
    site.write("clients", "clients-new")
    said = "".join(run.communicate())
    assert run.returncode == 2, said
    assert "the token of PROCTOR_TOKEN_FILE was refused" in said
    assert "can't be reached" not in said
    with contextlib.closing(sqlite3.connect(site.folder / "runs" / "r" / "run.sqlite")) as store:
        rows = store.execute("SELECT count(*), count(finish), count(score) FROM proctor_trial").fetchone()
    assert rows[1] == rows[2] < rows[0], "what is not scored is pending"
    site.write("mine", "clients-new")
    site.write("agents", "clients-new")
    variables = {"PROCTOR_TOKEN": "", "PROCTOR_TOKEN_FILE": site.file("mine")}
    exits(0, "resume", "runs/r", "-q", cwd=site.folder, **variables)


def test_a_file_that_can_not_be_used_leaves_access_as_it_was_and_says_so_once(site: Site) -> None:
    for number, broken in enumerate((None, b"", b"no name canary-in-a-line\n", b"\x00\xff"), 1):
        for name in FILES:
            (site.folder / name).unlink() if broken is None else (site.folder / name).write_bytes(broken)

        def said(times: int = len(ROLES) * number) -> bool:
            site.opened("old")
            return site.log("controller").count("the earlier tokens stay") == times

        until(said, BOUND_S, lambda: site.log("controller"))
        assert all(site.opened("old").values())
        assert not any(site.opened("wrong").values())
        assert said()
    assert "line 1: between name and token may stand" in site.log("controller")
    assert "canary" not in site.log("controller")


def authority(folder: Path, generation: str) -> None:
    """Make an authority and a certificate by it."""
    begins = ["openssl", "req", "-x509", "-newkey", "ed25519", "-noenc", "-days", "30"]
    ca = ["-subj", f"/CN=CA {generation}", "-addext", "keyUsage=critical,keyCertSign", "-keyout", "ca.key"]
    subprocess.run([*begins, *ca, "-out", f"{generation}-ca.pem"], cwd=folder, check=True, capture_output=True)
    names = ["-subj", f"/CN={generation}", "-addext", "subjectAltName=IP:127.0.0.1"]
    by = ["-CA", f"{generation}-ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE"]
    made = ["-keyout", f"{generation}.key", "-out", f"{generation}.pem"]
    subprocess.run([*begins, *by, *names, *made], cwd=folder, check=True, capture_output=True)


def shown(server: Server) -> str:
    """The certificate that new connections get."""
    url = urlsplit(server.url)
    return ssl.get_server_certificate((str(url.hostname), int(url.port or 0)), timeout=slowly(10)).strip()


def test_certificates_and_their_authority_are_replaced_under_load(tmp_path: Path) -> None:
    texts = dict[str, str]()
    for generation in ("old", "new"):
        authority(tmp_path, generation)
        texts |= {
            name: (tmp_path / name).read_text()
            for name in (f"{generation}{end}" for end in ("-ca.pem", ".pem", ".key"))
        }

    def put(name: str, *sources: str) -> None:
        Site(tmp_path).write(name, *(texts.get(source, source) for source in sources))

    put("ca.pem", "old-ca.pem")
    put("cert.pem", "old.pem")
    put("cert.key", "old.key")
    files = [
        f"--tls-{option}={tmp_path / name}"
        for option, name in (("ca", "ca.pem"), ("cert", "cert.pem"), ("key", "cert.key"))
    ]
    with served(tmp_path, *files) as site:
        servers = (site.controller, *site.workers, site.agents)
        site.plan()
        run = site.begin()
        until(lambda: scored(tmp_path, "r") >= 5)
        put("ca.pem", "old-ca.pem", "new-ca.pem")
        put("cert.pem", "half a certificate")
        until(
            lambda: (
                {*map(shown, servers)} == {texts["old.pem"].strip()} and "earlier TLS files stay" in site.log("worker")
            )
        )
        put("cert.pem", "new.pem")
        put("cert.key", "new.key")
        until(lambda: {*map(shown, servers)} == {texts["new.pem"].strip()}, BOUND_S)
        before = scored(tmp_path, "r")
        until(lambda: scored(tmp_path, "r") >= before + 10)
        put("ca.pem", "new-ca.pem")
        said = "".join(run.communicate())
        assert run.returncode == 0, said
        assert {*attempts(tmp_path)} == {1}
