"""The alerts of docker/prometheus, each brought about in the stack of docker/compose.yaml under its own Prometheus.

Their durations are a twentieth of what is shipped, and so is the time between two scrapes.
"""

import contextlib
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import docker
import httpx
import pytest
import yaml
from docker.models.containers import Container

from tests.deployments.docker_compose import Stack, stack
from tests.pace import slowly, until
from tests.support import ROOT, free_port

pytestmark = [
    *(pytest.mark.compose, pytest.mark.images, pytest.mark.docker),
    pytest.mark.usefixtures("no_leftovers"),
]

SHIPPED = ROOT / "docker" / "prometheus"
TWENTIETH_MS = {"m": 3000, "s": 50}
"""A minute's and a second's."""
DEAD = {"base_url": "http://agents:9/v1", "model": "none", "max_tries": 1}
TASKS: dict[str, list[dict[str, Any]]] = {
    "tasks.yaml": [
        {"name": "puzzles", "environment": "ltp"},
        {"name": "faulty", "environment": "ltp", "parameters": {"host": DEAD, "cache": "/tmp/ltp"}},
    ],
    "tasks-os.yaml": [{"name": "alone", "environment": "ltp"}, {"name": "sick", "environment": "db"}],  # no MariaDB
    "tasks-db.yaml": [{"name": "spare", "environment": "ltp"}],
    "tasks-agents.yaml": [{"name": "puzzles", "environment": "ltp"}],
}
SLOW = {"name": "slow", "kind": "naive", "latency_s": 0.3}
FIRED = 'max_over_time(ALERTS{alertstate="firing"}[1h])'
CROWDED = 4
"""Endpoints of one model that answers one request at a time."""


def shortened(text: str) -> str:
    """A file of Prometheus's with a twentieth of each duration, and a hundredth of the memory that is too much."""
    durations = re.compile(r"(?<=[\[ ])(\d+)([ms])(?=[\] \n])")
    return durations.sub(lambda told: f"{int(told[1]) * TWENTIETH_MS[told[2]]}ms", text).replace("2e9", "2e7")


def configuration(folder: Path, slow: str) -> Path:
    """What PROCTOR_CONFIG names; `slow` is the host of the slow models."""
    (folder / "prometheus").mkdir(parents=True)
    (folder / "prometheus" / "alerts.yml").write_text(shortened((SHIPPED / "alerts.yml").read_text()))
    scraped = yaml.safe_load((SHIPPED / "prometheus.yml").read_text())
    scraped["global"] = {"scrape_interval": "750ms", "evaluation_interval": "750ms"}
    for found in (found for job in scraped["scrape_configs"] for found in job.get("dns_sd_configs", ())):
        found["refresh_interval"] = "1s"
    (folder / "prometheus" / "prometheus.yml").write_text(yaml.safe_dump(scraped))
    for name, tasks in TASKS.items():
        (folder / name).write_text(yaml.safe_dump({"tasks": tasks}))
    played = [task for name in ("tasks.yaml", "tasks-os.yaml") for task in TASKS[name] if task["name"] != "sick"]
    agents = [SLOW, {**SLOW, "name": "one", "concurrency": 1}]
    served = {"host": "0.0.0.0", "port": 8000, "token_env": "PROCTOR_TOKEN", "tasks": played, "agents": agents}
    (folder / "agents.yaml").write_text(yaml.safe_dump(served))
    url = f"http://{slow}:8000/v1"
    (folder / "plan.yaml").write_text(plan(url, "one", CROWDED, ["puzzles", "faulty"]))
    (folder / "alone.yaml").write_text(plan(url, "slow", 1, ["alone"]))
    return folder


def plan(url: str, model: str, agents: int, tasks: Sequence[str]) -> str:
    """A long run of agents with an endpoint each, all of them at one server."""
    names = [f"{model}-{number}" for number in range(agents)]
    endpoint = {"base_url": url, "api_key_env": "PROCTOR_TOKEN", "concurrency": 1, "shared": False}
    described = {
        "controller": "http://controller:8000",
        "epochs": 100,
        "limits": {"patience_s": 3600},
        "endpoints": [{"name": name, **endpoint} for name in names],
        "agents": [{"name": name, "endpoint": name, "model": model, "metadata": True} for name in names],
        "tasks": [{"name": name} for name in tasks],
    }
    return yaml.safe_dump(described)


class Prometheus:
    """The Prometheus of a stack, as its users ask it."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1/query"

    def _asked(self, query: str) -> list[dict[str, str]]:
        """The labels of all series that a query finds; none while it does not answer."""
        with contextlib.suppress(httpx.TransportError):
            answer = httpx.get(self._url, params={"query": query}, timeout=slowly(10)).json()
            return [each["metric"] for each in answer["data"]["result"]]
        return []

    def up(self) -> set[str]:
        """The jobs that are scraped, each as often as it has targets: `proctor-client 2`."""
        found = [each["job"] for each in self._asked("up == 1")]
        return {f"{job} {found.count(job)}" for job in found}

    def fired(self) -> set[str]:
        """The alerts that have fired so far."""
        return {each["alertname"] for each in self._asked(FIRED)}

    def missed(self) -> set[str]:
        """The addresses that ProctorPartDown has named, and that are not scraped any more."""
        found = self._asked(f"{FIRED} unless on (instance) up")
        return {each["instance"] for each in found if each["alertname"] == "ProctorPartDown"}


def test_every_job_is_up_and_every_alert_fires_on_its_trouble(tmp_path: Path) -> None:
    ports = {name: free_port() for name in ("CONTROLLER_PORT", "AGENTS_PORT", "STORE_PORT", "PROMETHEUS_PORT")}
    slow = f"slow-{ports['AGENTS_PORT']}"
    config = configuration(tmp_path / "config", slow)
    settings = {**ports, "PROCTOR_CONFIG": config, "PROCTOR_LOG_FORMAT": "json"}
    prometheus = Prometheus(ports["PROMETHEUS_PORT"])
    with (
        stack(tmp_path, "127.0.0.1", settings) as running,
        contextlib.closing(docker.from_env(timeout=int(slowly(60)))) as engine,
    ):
        running.compose("--profile", "os", "--profile", "alerts", "up", "--detach", "--no-build", "--scale", "worker=2")
        mounted = f"{config}/agents.yaml:/etc/proctor/agents.yaml:ro"
        serve = ("agents", "--config", "/etc/proctor/agents.yaml")
        running.compose("run", "--detach", "--no-deps", "--name", slow, "--volume", mounted, "agents", *serve)
        clients = [
            begun(running, config, "plan.yaml", "crowded"),
            begun(running, config, "alone.yaml", "alone"),
        ]
        jobs = {"proctor-controller 1", "proctor-agents 1", "proctor-worker 4", "proctor-client 2"}
        until(lambda: prometheus.up() == jobs, 120, prometheus.up)
        fires(prometheus, "ProctorTaskDown", "ProctorMemory", "ProctorFaults", "ProctorThrottled")

        worker = engine.containers.get(running.containers("worker")[0])
        [network] = worker.attrs["NetworkSettings"]["Networks"].values()
        worker.kill()  # it stays down: the engine starts none again that was killed by its order
        fires(prometheus, "ProctorWorkersLost")
        until(lambda: f"{network['IPAddress']}:8000" in prometheus.missed(), 60, prometheus.missed)
        [controller] = running.containers("controller")
        said = engine.containers.get(controller).logs(stdout=False).splitlines()
        assert any("is lost" in json.loads(line)["message"] for line in said)

        [alone] = running.containers("worker-os")
        engine.containers.get(alone).kill()
        fires(prometheus, "ProctorNoWorkers", "ProctorStandstill")

        [agents] = [each for each in running.containers("agents") if engine.containers.get(each).name != slow]
        blocked(prometheus, engine.containers.get(agents))

        [store] = running.containers("store")
        engine.containers.get(store).kill()
        fires(prometheus, "ProctorStoreTrouble")
        for client in clients:  # no store, so they would try for a while
            engine.containers.get(client).kill()
        named = {rule["alert"] for rule in yaml.safe_load((SHIPPED / "alerts.yml").read_text())["groups"][0]["rules"]}
        assert prometheus.fired() == named


def begun(running: Stack, config: Path, name: str, run: str) -> str:
    """A client that plays a plan: its container."""
    mounted = ("--volume", f"{config}/{name}:/etc/proctor/{name}:ro") if name != "plan.yaml" else ()
    command = ("client", "run", f"/etc/proctor/{name}", "--name", run, "--quiet")
    return running.compose("run", "--detach", "--use-aliases", *mounted, *command).strip()


def fires(prometheus: Prometheus, *alerts: str) -> None:
    """Wait for these alerts."""
    until(lambda: prometheus.fired() >= set(alerts), 180, prometheus.fired)


def blocked(prometheus: Prometheus, container: Container) -> None:
    """A process that is held up for a second again and again, until Prometheus says so."""
    give_up = time.monotonic() + slowly(120)
    while "ProctorLoopBlocked" not in prometheus.fired():
        assert time.monotonic() < give_up
        container.pause()
        time.sleep(1)  # the load under test
        container.unpause()
        time.sleep(1)
