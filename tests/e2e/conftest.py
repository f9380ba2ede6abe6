"""A lone worker, a scripted endpoint and a place for runs, shared by the tests of a module."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.database_servers import postgresql
from tests.e2e.proctor import TOKEN, Server, server
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


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def store(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """The variables of a process that name a key, and where runs are stored: in folders, or in a server of its own."""
    key = {"OPENAI_API_KEY": TOKEN}
    if request.param == "sqlite":
        yield key
    else:
        with postgresql() as database:
            yield {**key, "PROCTOR_STORE": database.url}
