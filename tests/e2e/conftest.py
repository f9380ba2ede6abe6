"""A lone worker and a scripted endpoint, shared by the tests of a module."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.proctor import Server, server
from tests.e2e.scripted import ScriptedEndpoint, listening

TASKS = "tasks: [{name: db-own, environment: db, parameters: {engine: sqlite}}]\n"


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A lone worker with the task `db-own`."""
    folder: Path = tmp_path_factory.mktemp("worker")
    (folder / "tasks.yaml").write_text(TASKS)
    with server("worker", "--tasks", "tasks.yaml", cwd=folder) as running:
        yield running


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    """An endpoint that answers as its script says, in a thread of its own."""
    scripted = ScriptedEndpoint()
    with listening(scripted):
        yield scripted
