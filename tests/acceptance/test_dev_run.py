"""The public dev data of every task in the AgentBench plan, through processes of their own for every server."""

import json
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.proctor import Server, begin, completed, exits, proctor, rows, server
from tests.pace import until
from tests.support import ROOT

pytestmark = [pytest.mark.shared, pytest.mark.docker, pytest.mark.mariadb]
PLAN = str(ROOT / "examples" / "agentbench-dev.yaml")
CALLS = "proctor_agent_requests_total"
KEY = {"OPENAI_API_KEY": "token-of-the-tests"}
CONCURRENCY = 2
AGENTS = ("reference", "naive", "random")
TASKS = {
    "os-dev": (26, 25 / 26, 0.3),
    "db-dev": (60, 1.0, 0.3),
    "ltp-dev": (40, 1.0, 0.3),
    "kg-dev": (20, 1.0, 0.4),
    "card-dev": (12, 1.0, 1.0),
    "alfworld-dev": (20, 1.0, 0.4),
    "mind2web-own": (60, 100 * 55 / 60, 30.0),
    "webshop-own": (60, 1.0, 0.8),
}
"""task -> its samples, what the reference reaches on them, and what naive and random stay below"""


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Server, list[str]]]:
    """A folder, the agent server, and the options that point the plan at the running servers."""
    folder = tmp_path_factory.mktemp("farm")
    with (
        server("agents", f"--tasks={PLAN}", cwd=folder) as agents,
        server("controller", cwd=folder) as controller,
        server("worker", f"--tasks={PLAN}", f"--controller={controller.url}", cwd=folder),
    ):
        options = [f"--set=controller={controller.url}"]
        for name in AGENTS:
            options += [f"--set=agents.{name}.endpoint={agents.url}", f"--set=agents.{name}.concurrency={CONCURRENCY}"]
        yield folder, agents, options


CHANCY = {"dev-dev-00000", "dev-dev-00004", "dev-dev-00025"}
"""Samples of os that hang on the moment or on chance (a log that grows, a random one): guesses at them vary."""


OS_KILLED = 8
"""Samples of os in the run that is killed: a container each is costly, and the other tasks have all of theirs there."""


def scores(of: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    table = []
    for row in of:
        guessed = row["sample"] in CHANCY and row["agent"] != "reference"
        keys = ("agent", "task", "sample", "reason", "turns", *(() if guessed else ("score",)))
        table.append(tuple(row[key] for key in keys))
    return table


def turns(of: list[dict[str, Any]]) -> int:
    return sum(row["turns"] for row in of)


def until_called(agents: Server, target: float, client: "subprocess.Popen[str]") -> None:
    """Come back at so many calls, or once the client has ended."""
    until(lambda: client.poll() is not None or agents.metric(CALLS) >= target, 300)


def test_reference_reaches_the_published_figures_and_kills_change_nothing(
    farm: tuple[Path, Server, list[str]],
) -> None:
    folder, agents, options = farm
    exits(0, "run", PLAN, "--name", "whole", "-q", *options, cwd=folder, **KEY)
    report = json.loads(proctor("report", "whole", "--json", cwd=folder).stdout)
    pairs = {(pair["agent"], pair["task"]): pair for pair in report["pairs"]}
    assert {key: (pair["planned"], pair["scored"]) for key, pair in pairs.items()} == {
        (agent, task): (count, count) for agent in AGENTS for task, (count, _, _) in TASKS.items()
    }
    for task, (_, reached, floor) in TASKS.items():
        assert pairs["reference", task]["value"] == pytest.approx(reached)
        assert all(pairs[agent, task]["value"] < floor for agent in ("naive", "random"))
    uninterrupted = int(agents.metric(CALLS))

    chance, kills = random.Random(5), 0
    options = [*options, f"--set=tasks.os-dev.samples.limit={OS_KILLED}"]
    client = begin("run", PLAN, "--name", "killed", *options, cwd=folder, **KEY)
    while client.poll() is None:
        target = agents.metric(CALLS) + chance.randrange(20, 400)
        until_called(agents, target, client)
        if client.poll() is None and kills < 6:
            client.send_signal(signal.SIGKILL)
            client.communicate()
            kills += 1
            client = begin("resume", "killed", *options, cwd=folder, **KEY)
    completed(client)
    assert kills >= 5
    killed, all_rows = rows("killed", folder), rows("whole", folder)
    played = {(row["task"], row["sample"]) for row in killed}
    again = [row for row in all_rows if (row["task"], row["sample"]) in played]
    assert len(all_rows) - len(again) == len(AGENTS) * (TASKS["os-dev"][0] - OS_KILLED)
    assert scores(killed) == scores(again)
    left_out = turns(all_rows) - turns(again)
    in_flight = CONCURRENCY * len(AGENTS)
    assert agents.metric(CALLS) - uninterrupted <= uninterrupted - left_out + kills * in_flight
