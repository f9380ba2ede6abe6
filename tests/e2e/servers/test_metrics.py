"""What a whole world exposes is what the documentation lists, and what the dashboard and the alerts ask for."""

import contextlib
import json
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.proctor import TOKEN, begin, server
from tests.pace import slowly
from tests.support import ROOT, free_port

SAMPLE = re.compile(r"([a-z_]+)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
AGENTS = """\
token_env: PROCTOR_TOKEN
tasks: [{name: puzzles, environment: ltp}]
agents: [{name: slow, kind: naive, latency_s: 0.5}]
"""
PLAN = """\
controller: CONTROLLER
endpoints:
  - {name: ours, base_url: AGENTS, api_key_env: PROCTOR_TOKEN, concurrency: 6}
  - {name: gone, base_url: "http://127.0.0.1:1/v1", max_tries: 2, max_retry_s: 1}
agents:
  - {name: slow, endpoint: ours, metadata: true, concurrency: 4, price: {input: 1, output: 2}}
  - {name: lost, endpoint: gone, model: none}
tasks: [{name: puzzles}]
"""


class Scrape:
    """A process's metrics."""

    def __init__(self, text: str) -> None:
        self.kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
        self.samples: list[tuple[str, dict[str, str], float]] = []
        for line in text.splitlines():
            if not line.startswith("#"):
                found = SAMPLE.fullmatch(line)
                assert found, line
                self.samples.append((found[1], dict(LABEL.findall(found[2] or "")), float(found[3])))

    def value(self, name: str, /, **labels: str) -> float:
        """The sum over the series of a name that have these labels."""
        return sum(value for of, have, value in self.samples if of == name and labels.items() <= have.items())

    def labels(self, name: str) -> set[str]:
        """Of all series of a metric."""
        suffixes = ("_bucket", "_sum", "_count") if self.kinds[name] == "histogram" else ("",)
        return {label for of, have, _ in self.samples if of in {name + end for end in suffixes} for label in have} - {
            "le"
        }


def scrape(url: str, token: str = TOKEN) -> Scrape:
    request = urllib.request.Request(url + "/metrics", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=slowly(10)) as reply:
        assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return Scrape(reply.read().decode())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Scrape]]:
    """Controller, worker, agent server and client, scraped in the midst of a run."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "tasks.yaml").write_text("tasks: [{name: puzzles, environment: ltp, capacity: 2}]")
    (folder / "agents.yaml").write_text(AGENTS)
    with contextlib.ExitStack() as stack:
        controller = stack.enter_context(server("controller", cwd=folder)).url
        worker = stack.enter_context(server("worker", "--tasks=tasks.yaml", f"--controller={controller}", cwd=folder))
        agents = stack.enter_context(server("agents", "--config=agents.yaml", cwd=folder))
        (folder / "plan.yaml").write_text(PLAN.replace("CONTROLLER", controller).replace("AGENTS", agents.url))
        port = free_port()
        run = begin(
            "run", "plan.yaml", "--name=r", "-q", f"--metrics={port}", cwd=folder, PROCTOR_METRICS_TOKEN="scrape"
        )
        try:
            client = _in_the_midst(f"http://127.0.0.1:{port}")
            urls = {"Controller": controller, "Worker": worker.url, "Agent server": agents.url.removesuffix("/v1")}
            yield {**{part: scrape(url) for part, url in urls.items()}, "Client": client}
        finally:
            run.kill()
            run.communicate(timeout=slowly(60))


def _in_the_midst(url: str) -> Scrape:
    """The client's metrics once it has seen an answer, a failure and a finish."""
    give_up = time.monotonic() + slowly(120)
    while True:
        with contextlib.suppress(urllib.error.URLError):
            found = scrape(url, "scrape")
            seen = [found.value(name) for name in ("proctor_trials_scored", "proctor_attempt_faults_total")]
            if all(seen):
                with pytest.raises(urllib.error.HTTPError, match="401"):
                    scrape(url, "wrong")
                return found
        assert time.monotonic() < give_up
        time.sleep(0.02)  # between looks


def documented() -> dict[str, dict[str, tuple[str, set[str]]]]:
    """part -> metric -> (kind, labels), of the tables of docs/reference/metrics.md."""
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    parts = re.split(r"^#+ ", text, flags=re.MULTILINE)
    row = re.compile(r"^\| `([a-z_]+)(?:\{([a-z,]+)\})?` \| ([a-z]+) \|", re.MULTILINE)
    return {
        part.splitlines()[0]: {name: (kind, set(labels.split(",")) - {""}) for name, labels, kind in row.findall(part)}
        for part in parts[1:]
    }


@pytest.mark.parametrize("part", ["Controller", "Worker", "Agent server", "Client"])
def test_the_tables_list_exactly_what_is_exposed(world: dict[str, Scrape], part: str) -> None:
    listed, found = documented(), world[part]
    assert {**listed["Every process"], **listed[part]}.keys() == found.kinds.keys()
    for name, (kind, labels) in {**listed["Every process"], **listed[part]}.items():
        assert found.kinds[name] == kind, name
        assert found.labels(name) in (labels, set()), name


def queries() -> list[str]:
    dashboard = json.loads((ROOT / "docker" / "grafana" / "proctor.json").read_text(encoding="utf-8"))
    rules = yaml.safe_load((ROOT / "docker" / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    return asked + [rule["expr"] for group in rules["groups"] for rule in group["rules"]]


def test_the_dashboard_and_the_alerts_ask_for_what_is_exposed(world: dict[str, Scrape]) -> None:
    known = {name: found for found in world.values() for name in found.kinds}
    labels = {name: listed for table in documented().values() for name, (_, listed) in table.items()}
    for query in queries():
        assert query.count("(") == query.count(")")
        for name, selector in re.findall(r"\b((?:proctor|process)_[a-z_]+)(\{[^}]*\})?", query):
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            assert base in known, query
            assert (known[base].kinds[base] == "histogram") == (base != name), query
            assert set(re.findall(r"([a-z_]+)[=!]", selector)) - {"job", "le"} <= labels[base], query


def test_every_alert_is_explained() -> None:
    rules = yaml.safe_load((ROOT / "docker" / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))
    names = [rule["alert"] for group in rules["groups"] for rule in group["rules"]]
    text = (ROOT / "docs" / "how-to" / "operations.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(Proctor[A-Za-z]+)` \|", text, re.MULTILINE) == names


@pytest.mark.prometheus
def test_each_alert_fires_on_its_trouble_alone() -> None:
    rules = ROOT / "tests" / "e2e" / "servers" / "alerts.yaml"
    done = subprocess.run(["promtool", "test", "rules", rules], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    cases = [case for test in yaml.safe_load(rules.read_text())["tests"] for case in test["alert_rule_test"]]
    named = re.findall(r"- alert: (\w+)", (ROOT / "docker" / "prometheus" / "alerts.yml").read_text())
    for wanted in (True, False):
        assert {case["alertname"] for case in cases if bool(case.get("exp_alerts")) == wanted} == set(named)


def test_the_scrape_configuration_names_services_and_ports_of_the_compose_file() -> None:
    jobs = yaml.safe_load((ROOT / "docker" / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    services = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text(encoding="utf-8"))["services"]
    ports = re.findall(r"--port[\"', =]+(\d+)", (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8"))
    for job in jobs["scrape_configs"]:
        hosts = [target.split(":") for each in job.get("static_configs", ()) for target in each["targets"]]
        hosts += [[name, str(each["port"])] for each in job.get("dns_sd_configs", ()) for name in each["names"]]
        for host, port in hosts:
            assert host in services
            assert job["job_name"] == "proctor-client" or port in ports
            if job["job_name"] == "proctor-client":
                assert services[host]["environment"]["PROCTOR_METRICS"] == f"0.0.0.0:{port}"
        secret = Path(job["authorization"]["credentials_file"])
        assert secret.parent == Path("/run/secrets")
        assert secret.name in services["prometheus"]["secrets"], "of one line; the servers' file may have more"
        assert all("metrics-token" in services[host]["secrets"] for host, _ in hosts)


def test_all_that_plays_in_the_stack_is_found_by_the_name_that_is_scraped() -> None:
    page = (ROOT / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
    played = re.findall(r"^\$ docker-compose run (.*)client (?:run|resume) ", page, re.MULTILINE)
    assert played
    assert all("--use-aliases" in options for options in played)


def test_the_numbers_are_those_of_the_run(world: dict[str, Scrape]) -> None:
    client, controller, worker = world["Client"], world["Controller"], world["Worker"]
    planned = client.value("proctor_trials_planned", agent="slow")
    assert planned == client.value("proctor_trials_planned", agent="lost") == 12
    assert client.value("proctor_cap_capacity", kind="endpoint", name="ours") == 6
    assert client.value("proctor_cap_capacity", kind="task", name="puzzles") == 2
    assert 0 < client.value("proctor_cap_used", kind="task", name="puzzles") <= 2
    assert client.value("proctor_trials_waiting", reason="task") > 0
    assert client.value("proctor_endpoint_requests_total", endpoint="gone", outcome="retry") > 0
    assert client.value("proctor_model_seconds_sum", agent="slow") >= 0.5 * client.value(
        "proctor_model_seconds_count", agent="slow"
    )
    assert controller.value("proctor_workers") == controller.value("proctor_controller_settled") == 1
    assert controller.value("proctor_worker_slots", task="puzzles") == worker.value("proctor_slots") == 2
    assert worker.value("proctor_turns_total") >= worker.value("proctor_turn_seconds_count") > 0
    assert controller.value("proctor_sessions_placed_total") >= worker.value("proctor_finishes_total") > 0
    assert 2e7 < worker.value("process_resident_memory_bytes") < 2e9


def test_a_run_tells_how_many_sessions_it_could_hold(world: dict[str, Scrape]) -> None:
    wanted = world["Controller"].value("proctor_task_demand", task="puzzles")
    assert 4 <= wanted <= 4 + 12  # slow's concurrency, and what lost still owes: far more than the two slots
