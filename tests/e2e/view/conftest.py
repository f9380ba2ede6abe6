"""Runs that take a while, viewers of them, and a browser."""

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser import chromium
from tests.e2e.gates import Gate, gate_before
from tests.e2e.proctor import Server, begin, ended, exits, server
from tests.pace import slowly
from tests.support import made_once

TASK = "{name: db-own, environment: db, parameters: {engine: sqlite}}"
KEY = {"OPENAI_API_KEY": "token-of-the-tests"}
LATENCY_S = 0.6
PLAN = """\
endpoints: [{{name: e, base_url: "{agents}", concurrency: {concurrency}}}]
agents:
  - {{name: reference, builtin: reference, endpoint: e}}
  - {{name: naive, builtin: naive, endpoint: e}}
tasks: [{task}]
"""
PLANNED = 40

Begin = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="session")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Models whose answers take LATENCY_S."""
    folder = tmp_path_factory.mktemp("agents")
    kinds = (f"  - {{name: {name}, kind: {name}, latency_s: {LATENCY_S}}}\n" for name in ("reference", "naive"))
    (folder / "agents.yaml").write_text(f"tasks: [{TASK}]\nagents:\n{''.join(kinds)}")
    with server("agents", "--config", "agents.yaml", cwd=folder) as running:
        yield running


@pytest.fixture
def way(agents: Server) -> Iterator[Gate]:
    """The way to the models: while it is shut, a run is not over, however late a test looks at it."""
    with gate_before(agents.url) as opened:
        yield opened


@pytest.fixture
def run(tmp_path: Path, way: Gate) -> Iterator[Begin]:
    """Begins a run called `slow` of PLANNED trials, which plays so many at once."""

    def begun(*options: str, concurrency: int = 3, **extra: str) -> "subprocess.Popen[str]":
        text = PLAN.format(agents=way.url, task=TASK, concurrency=concurrency)
        (tmp_path / "plan.yaml").write_text(text)
        return begin("run", "plan.yaml", "--name", "slow", "-q", *options, cwd=tmp_path, **KEY, **extra)

    with ended():
        yield begun


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with a finished run called `done`."""

    def play(folder: Path) -> None:
        entries = "agents: [{name: reference, builtin: reference}, {name: naive, builtin: naive}]"
        (folder / "plan.yaml").write_text(f"{entries}\ntasks: [{TASK}]\n")
        exits(0, "run", "plan.yaml", "--name", "done", "-q", cwd=folder)

    return made_once(tmp_path_factory, "played", play)


@contextlib.contextmanager
def viewer(folder: Path, *arguments: str, **extra: str) -> Iterator[str]:
    """The address of `proctor view` in a folder. It must end without an error, however many watch."""
    with ended():
        process = begin("view", *arguments, "--port", "0", cwd=folder, **extra)
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()
        _, errors = process.communicate(timeout=slowly(60))
        assert (process.returncode, errors) == (0, "")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Of a module, not of the session: within it no async test can run."""
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of a fresh browser; no script of it may fail, and nothing may break its policy."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    made = context.new_page()
    troubles: list[str] = []
    made.on("pageerror", lambda error: troubles.append(str(error)))
    made.on("console", lambda said: troubles.append(said.text) if "Security Policy" in said.text else None)
    yield made
    context.close()
    assert not troubles
