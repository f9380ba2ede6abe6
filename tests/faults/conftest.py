"""The agents that all tests of the fault suite share, and a farm for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.proctor import Server, server
from tests.faults.parts.farm import Farm, farm, importable

AGENTS = """\
token_env: PROCTOR_TOKEN
tasks: [{name: ledger, environment: ledger}]
agents:
  - {name: reference, kind: reference, latency_s: 0.05}
  - {name: naive, kind: naive, latency_s: 0.05}
"""


@pytest.fixture(scope="session")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("agents")
    (folder / "agents.yaml").write_text(AGENTS)
    with server("agents", "--config", "agents.yaml", cwd=folder, **importable(folder)) as running:
        yield running


@pytest.fixture
def parts(tmp_path: Path, agents: Server) -> Iterator[Farm]:
    """A farm not yet started."""
    with farm(tmp_path, agents) as running:
        yield running
