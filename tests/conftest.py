"""Which tests `make test` plays, and what is skipped.

`make test` leaves out what is `thorough`: what is marked so, what needs a part of `LATER`, and of the end-to-end tests
all but those marked `smoke`, one way of each kind. `make test-all` plays the rest. What needs a part that this machine
lacks is skipped with its reason; in CI a skipped test fails but for allowed ones.
"""

import collections
import functools
import gc
import os
import shlex
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

from tests import support
from tests.database_servers import mariadb, postgresql
from tests.e2e.proctor import ended

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell; our processes would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
LATER = {"faketime", "lan", "latex", "postgresql", "prometheus", "ray", "runsc", "shared", "slurm"}
LATER |= {"textworld", "virtuoso"}
"""The parts without which `make test` does, so that it needs few packages of the system and none that is compiled."""
ALLOWED_SKIPS = support.ROOT / "tests" / "allowed_skips.txt"
_missing = functools.cache(support.missing)

os.environ.pop("COLUMNS", None)  # pytest-xdist sets it: tables would be as narrow as its own terminal
hypothesis.settings.register_profile("proctor", deadline=None)  # no test depends on absolute time
hypothesis.settings.load_profile("proctor")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Without searches for dead cycles: what is imported and collected stays, and later searches leave it out."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that mostly wait, of e2e and integration tests, are spread evenly among those that compute.

    So a parallel run keeps the cores busy. The short files come last, so that its processes end at the same time.
    """
    kinds: dict[str, dict[str, None]] = {"e2e": {}, "integration": {}, "unit": {}, "others": {}}
    for item in items:
        kind = next((kind for kind in kinds if item.nodeid.startswith(f"tests/{kind}/")), "others")
        kinds[kind][item.location[0]] = None
    places = {
        file: (kind in ("integration", "unit"), number / len(files))
        for kind, files in kinds.items()
        for number, file in enumerate(files)
    }
    items.sort(key=lambda item: places[item.location[0]])
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if marks & LATER or (item.nodeid.startswith("tests/e2e/") and "smoke" not in marks):
            item.add_marker("thorough")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for part in support.PARTS:
        if item.get_closest_marker(part) is not None and (reason := _missing(part)) is not None:
            pytest.skip(reason)


@functools.cache
def _allowed_skips() -> frozenset[str]:
    """The tests that may be skipped even in CI, with whatever parameters."""
    lines = (line.partition("#")[0].strip() for line in ALLOWED_SKIPS.read_text().splitlines())
    return frozenset(filter(None, lines))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get("CI") and item.nodeid.partition("[")[0] not in _allowed_skips():
        report.outcome = "failed"
        report.longrepr = f"skipped in CI, and not listed in {ALLOWED_SKIPS.name}: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names for each failed test the command that plays it alone; tells scripts/test.sh what was played."""
    ended = terminalreporter.stats
    failed = [report.nodeid for kind in ("failed", "error") for report in ended.get(kind, ())]
    for test in dict.fromkeys(failed):
        terminalreporter.write_line(f"to play it alone: JOBS=1 scripts/test.sh {shlex.quote(test)}")
    why = collections.Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in ended.get("skipped", ()))
    skipped = f" ({', '.join(f'{count}: {reason}' for reason, count in why.items())})" if why else ""
    line = f"{len(ended.get('passed', ()))} tests passed, {len(failed)} failed, {why.total()} skipped{skipped}"
    if place := os.environ.get("PROCTOR_TEST_PLAYED"):
        Path(place).write_text(line)


@pytest.fixture(scope="session", autouse=True)
def _state_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """So that runs of tests share no endpoint with those of this user."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(autouse=True)
def _nothing_left_running() -> Iterator[None]:
    """So that a test that failed is the only one that does."""
    with ended():
        yield


@pytest.fixture(scope="module")
def postgresql_url() -> Iterator[str]:
    with postgresql() as server:
        yield server.url


@pytest.fixture(scope="module")
def mariadb_url() -> Iterator[str]:
    with mariadb() as server:
        yield server.url


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgresql", marks=pytest.mark.postgresql),
        pytest.param("mariadb", marks=pytest.mark.mariadb),
    ]
)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store in each kind of database; those of the servers keep what other tests of a module have made there."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'run.sqlite'}"
    return str(request.getfixturevalue(f"{request.param}_url"))
