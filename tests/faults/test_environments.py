"""Every installed environment keeps scores and turns through kills of the client and a worker, and doubled turns.

The agents answer as a function of the transcript, so a run with the same seed must come out equal turn by turn.
"""

import json
import random
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from proctor import registry
from proctor.environment import EnvironmentFault
from tests.e2e.proctor import Server, begin, completed, exits, proctor, rows, server
from tests.faults.parts.farm import KEY
from tests.faults.parts.proxy import Fault, Proxies, proxies
from tests.pace import slowly, until
from tests.support import free_port

SAMPLES = 2
AGENTS = ("reference", "naive", "random")
IN_FLIGHT = 2 * len(AGENTS)
LATENCY_S, LATENCY_OF_FEW_TURNS_S = 0.03, 0.15
FEW_TURNS = ("db", "mind2web", "os", "simulbench")
"""Environments whose sessions would be over before anything could be killed."""
LEASE_S = slowly(6.0)
TASK = "t"
PLAN = """\
name: generic
seed: 7
controller: {controller}
agents:
  - {{name: reference, builtin: reference, endpoint: "{agents}", concurrency: 2}}
  - {{name: naive, builtin: naive, endpoint: "{agents}", concurrency: 2}}
  - {{name: random, builtin: random, endpoint: "{agents}", concurrency: 2}}
tasks:
  - {{name: t}}
limits: {{attempts: 10, patience_s: {patience_s}}}
"""
NEEDS = {"db": pytest.mark.mariadb, "os": pytest.mark.docker}
CALLS = "proctor_agent_requests_total"


@dataclass
class Servers:
    """Two workers of one environment behind a proxy, their controller, and the agents."""

    folder: Path
    stack: ExitStack
    ways: Proxies
    controller: Server
    agents: Server
    workers: dict[str, Server]
    whole: "Played | None" = None

    def start_worker(self, name: str) -> None:
        link = self.ways.links[name]
        files = ("--tasks=tasks.yaml", "--port", str(link.upstream))
        options = (f"--controller={self.controller.url}", f"--name={name}", f"--advertise={link.url}")
        self.workers[name] = self.stack.enter_context(server("worker", *files, *options, cwd=self.folder))

    def calls(self) -> int:
        """Model calls answered so far."""
        return int(self.agents.metric(CALLS))

    def played(self, run: str) -> "Played":
        """What was observed and answered, turn by turn, and what came of it."""
        exits(0, "export", run, "--what", "turns", "--to", "turns.jsonl", cwd=self.folder)
        lines = [json.loads(line) for line in (self.folder / "turns.jsonl").read_text().splitlines()]
        keys = ("agent", "sample", "epoch", "turn", "observation", "action", "stop")
        return Played(rows(run, self.folder), [tuple(line[key] for key in keys) for line in lines])

    def undisturbed(self) -> "Played":
        """The run that nothing disturbed."""
        assert self.whole is not None
        return self.whole


class Played(NamedTuple):
    """A run, without what differs between equal runs."""

    rows: list[dict[str, object]]
    turns: list[tuple[object, ...]]


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=NEEDS.get(name, ()), id=name) for name in registry.names()]
)
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    name, folder = str(request.param), tmp_path_factory.mktemp(f"generic-{request.param}")
    try:
        parameters = registry.load(name).detect_parameters()
    except EnvironmentFault as left_out:
        pytest.skip(str(left_out))
    task = {"name": TASK, "environment": name, "parameters": parameters, "capacity": IN_FLIGHT}
    (folder / "tasks.yaml").write_text(json.dumps({"tasks": [task]}))
    latency_s = LATENCY_OF_FEW_TURNS_S if name in FEW_TURNS else LATENCY_S
    agents = [{"name": agent, "kind": agent, "latency_s": latency_s} for agent in AGENTS]
    (folder / "agents.yaml").write_text(json.dumps({"token_env": "PROCTOR_TOKEN", "tasks": [task], "agents": agents}))
    with proxies(0) as ways, ExitStack() as stack:
        controller = stack.enter_context(server("controller", "--lease", str(LEASE_S), cwd=folder))
        served = stack.enter_context(server("agents", "--config", "agents.yaml", cwd=folder))
        parts = Servers(folder, stack, ways, controller, served, {})
        for worker in ("w1", "w2"):
            ways.link(worker, free_port())
            parts.start_worker(worker)
        until(lambda: controller.metric("proctor_worker_slots_free") == 2 * IN_FLIGHT)
        (folder / "plan.yaml").write_text(
            PLAN.format(controller=controller.url, agents=served.url, patience_s=slowly(40))
        )
        exits(0, *command("whole"), cwd=folder, **KEY)
        parts.whole = parts.played("whole")
        yield parts


def command(run: str) -> tuple[str, ...]:
    return ("run", "plan.yaml", "--name", run, "--limit", str(SAMPLES), "-q")


def test_a_second_run_with_the_seed_is_equal_turn_by_turn(servers: Servers) -> None:
    """And so it is with doubled, late and reordered turns on the way."""
    for name in servers.workers:
        servers.ways.links[name].faults += [
            Fault("duplicate", "POST", chance=0.4),
            Fault("late_copy", "POST", chance=0.4),
            Fault("hold", "POST", chance=0.4, seconds=0.2),
        ]
    before = servers.calls()
    done = proctor(*command("doubled"), cwd=servers.folder, **KEY)
    for link in servers.ways.links.values():
        link.faults.clear()
    assert done.returncode == 0, done.stdout + done.stderr
    assert any(call.link.endswith("/copy") and "/turns" in call.target for call in servers.ways.calls)
    assert servers.played("doubled") == servers.undisturbed()
    assert servers.calls() - before == len(servers.undisturbed().turns)


@contextmanager
def gated(servers: Servers, spared: int) -> Iterator[Fault]:
    """So many turns come through to the workers, then none until this ends: no run is over before it can be killed."""
    gate = Fault("gate", "POST .*/turns", spared=spared)
    for link in servers.ways.links.values():
        link.faults.append(gate)
    try:
        yield gate
    finally:
        for link in servers.ways.links.values():
            link.faults.remove(gate)


def at_the_gate(servers: Servers, since: int) -> list[str]:
    """The workers that a turn waits for, of the calls after so many."""
    return [call.link for call in servers.ways.calls[since:] if "/turns" in call.target and call.outcome == "failed"]


def until_called(servers: Servers, target: int, client: "subprocess.Popen[str]") -> None:
    """Come back at so many calls, or once the client has ended."""
    until(lambda: servers.calls() >= target or client.poll() is not None)


def test_a_killed_client_resumes_without_loss_or_second_payment(servers: Servers) -> None:
    chance, kills, before = random.Random(1), 0, servers.calls()
    whole = len(servers.undisturbed().turns)
    client = begin(*command("killed"), cwd=servers.folder, **KEY)
    while kills < 3:
        target = servers.calls() + chance.randrange(1, max(2, whole // 6))
        with gated(servers, whole // 2) if kills == 0 else nullcontext():
            until_called(servers, target, client)
            if client.poll() is not None:
                break
            client.kill()
            client.communicate()
        kills += 1
        client = begin("resume", "killed", "-q", cwd=servers.folder, **KEY)
    completed(client, within_s=200)
    assert kills > 0
    assert servers.played("killed") == servers.undisturbed()
    assert servers.calls() - before <= whole + kills * IN_FLIGHT


def test_a_killed_worker_costs_no_score_and_no_paid_turn(servers: Servers) -> None:
    before, since = servers.calls(), len(servers.ways.calls)
    whole = len(servers.undisturbed().turns)
    client = begin(*command("widowed"), cwd=servers.folder, **KEY)
    with gated(servers, whole // 3):
        until(lambda: bool(at_the_gate(servers, since)))
        lost = at_the_gate(servers, since)[0]
        servers.workers[lost].kill()
    servers.start_worker(lost)
    completed(client, within_s=200)
    assert servers.played("widowed") == servers.undisturbed()
    assert servers.calls() - before == whole
