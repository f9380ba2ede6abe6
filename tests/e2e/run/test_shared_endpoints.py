"""Runs of their own that use one endpoint with one key hold to its limits together, and each says that it does."""

import asyncio
import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_client.core.limits.rates import BURST_S, RATE_SHARE, SLIP_S
from tests.database_servers import mariadb, postgresql
from tests.e2e.proctor import Server, begin, proctor
from tests.e2e.scripted import GOOD, ScriptedEndpoint, listening, reply
from tests.pace import slowly, until

KEY = {"SCRIPTED_KEY": "sk-canary-7f3a9c"}
LIMIT = 4
TOKENS = 110
"""Of each answer."""
REQUESTS = 20
"""Of each run."""
PLAN = """\
controller: {worker}
endpoints: [{{name: mine, base_url: "{url}", api_key_env: SCRIPTED_KEY, {options}}}]
agents: [{{name: model, endpoint: mine, concurrency: 16}}]
tasks: [{{name: db-own}}]
"""
TOO_MANY = reply(429, b'{"error": {"message": "too many at once"}}', "Retry-After: 1")


class LimitedEndpoint(ScriptedEndpoint):
    """Answers LIMIT requests at once, each after a while, and any more with 429; notes when each came."""

    def __init__(self) -> None:
        super().__init__()
        self.answer_s = slowly(0.1)
        self.came: list[float] = []
        self.refused = 0
        self.most = 0
        """Requests at once, refused ones among them."""
        self.now = 0
        self.free = asyncio.Event()
        self.free.set()

    async def replied(self, *, asked: bool) -> bytes | None:
        self.came.append(time.monotonic())
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            if self.now > LIMIT:
                self.refused += 1
                return TOO_MANY
            await asyncio.sleep(self.answer_s)
            await self.free.wait()
            return reply(200, GOOD)
        finally:
            self.now -= 1

    def hold(self) -> None:
        """Answer nothing until it is let go. Both may be called from another thread."""
        self.soon(self.free.clear)

    def let_go(self) -> None:
        self.soon(self.free.set)


@pytest.fixture
def limited() -> Iterator[LimitedEndpoint]:
    endpoint = LimitedEndpoint()
    with listening(endpoint):
        yield endpoint


def write_plan(folder: Path, worker: Server, endpoint: LimitedEndpoint, options: str = f"concurrency: {LIMIT}") -> None:
    (folder / "plan.yaml").write_text(PLAN.format(worker=worker.url, url=endpoint.url, options=options))


def run(folder: Path, name: str, **extra: str) -> "subprocess.Popen[str]":
    return begin("run", "plan.yaml", "--name", name, cwd=folder, **KEY, **extra)


def until_said(folder: Path, name: str, what: str, **extra: str) -> None:
    """Until `proctor status` shows it."""
    seen = [""]

    def is_said() -> bool:
        seen[0] = proctor("status", name, cwd=folder, **extra).stdout
        return what in seen[0]

    until(is_said, seen=lambda: seen[0])


def finished(*clients: "subprocess.Popen[str]") -> list[str]:
    """What each said on its screen, once all have ended well."""
    ends = [client.communicate(timeout=slowly(120)) for client in clients]
    assert [client.returncode for client in clients] == [0] * len(clients), ends
    return [said for _, said in ends]


def test_two_runs_on_one_key_never_ask_more_at_once_than_the_endpoint_takes(
    tmp_path: Path, worker: Server, limited: LimitedEndpoint
) -> None:
    limited.hold()
    write_plan(tmp_path, worker, limited)
    first = run(tmp_path, "a")
    until(lambda: len(limited.came) == LIMIT)
    second = run(tmp_path, "b")
    until_said(tmp_path, "a", f"shared with 1 other run (b), {LIMIT // 2} of {LIMIT} trials at once")
    until_said(tmp_path, "b", f"shared with 1 other run (a), 0 of {LIMIT} trials at once")
    status = json.loads(proctor("status", "b", "--json", cwd=tmp_path).stdout)
    assert status["endpoints"][0].startswith("endpoint mine: shared")
    limited.let_go()
    finished(first, second)
    assert (limited.refused, limited.most, len(limited.came)) == (0, LIMIT, 2 * REQUESTS)


def test_runs_that_share_nothing_are_refused(tmp_path: Path, worker: Server, limited: LimitedEndpoint) -> None:
    limited.hold()
    write_plan(tmp_path, worker, limited, f"concurrency: {LIMIT}, shared: false, max_tries: 100")
    first = run(tmp_path, "a")
    until(lambda: len(limited.came) == LIMIT)
    second = run(tmp_path, "b")
    until(lambda: limited.refused > 0)
    limited.let_go()
    finished(first, second)
    assert limited.most > LIMIT


@pytest.mark.parametrize("rate", ["rpm", "tpm"])
def test_two_runs_hold_a_rate_together_and_say_what_they_wait_for(
    rate: str, tmp_path: Path, worker: Server, limited: LimitedEndpoint
) -> None:
    """However fast the machine, the requests of both take as long as the rate says."""
    limited.answer_s, a_minute = 0.0, 120
    write_plan(tmp_path, worker, limited, f"rpm: {a_minute}" if rate == "rpm" else f"tpm: {a_minute * TOKENS}")
    said = finished(run(tmp_path, "a"), run(tmp_path, "b"))
    assert all(re.search(rf"requests? waiting for {rate}", each) for each in said), said
    assert len(limited.came) == 2 * REQUESTS
    least_s = (2 * REQUESTS - 1) * 60 / (RATE_SHARE * a_minute) - BURST_S - SLIP_S
    assert limited.came[-1] - limited.came[0] >= 0.9 * least_s


def test_a_rate_holds_at_each_of_several_servers(tmp_path: Path, worker: Server, limited: LimitedEndpoint) -> None:
    limited.answer_s, a_minute = 0.0, 120
    with listening(other := LimitedEndpoint()):
        write_plan(tmp_path, worker, limited, f"rpm: {a_minute}")
        plan = (tmp_path / "plan.yaml").read_text()
        (tmp_path / "plan.yaml").write_text(plan.replace(f'"{limited.url}"', f'["{limited.url}", "{other.url}"]'))
        finished(run(tmp_path, "a"))
    times = [each.came[2:] for each in (limited, other)]  # the start asked each for its models and an answer
    least_s = [(len(each) - 1) * 60 / (RATE_SHARE * a_minute) - BURST_S - SLIP_S for each in times]
    assert all(each[-1] - each[0] >= 0.9 * least for each, least in zip(times, least_s, strict=True))
    assert max(times[0][-1], times[1][-1]) - min(times[0][0], times[1][0]) < REQUESTS * 60 / (RATE_SHARE * a_minute)


def test_what_a_killed_run_held_is_free_for_another(tmp_path: Path, worker: Server, limited: LimitedEndpoint) -> None:
    limited.hold()
    write_plan(tmp_path, worker, limited)
    first = run(tmp_path, "a")
    until(lambda: len(limited.came) == LIMIT)
    second = run(tmp_path, "b")
    until_said(tmp_path, "b", "shared with 1 other run (a), 0 of")
    assert len(limited.came) == LIMIT
    first.kill()
    first.communicate()
    limited.let_go()
    finished(second)
    assert len(limited.came) == LIMIT + REQUESTS


def test_where_nothing_can_be_shared_the_run_says_so_once_and_goes_on(
    tmp_path: Path, worker: Server, limited: LimitedEndpoint
) -> None:
    (tmp_path / "state").write_text("no folder")
    write_plan(tmp_path, worker, limited, f"concurrency: {LIMIT}, rpm: 600")
    (said,) = finished(run(tmp_path, "a", XDG_STATE_HOME=str(tmp_path / "state")))
    assert len(re.findall("WARNING.*endpoint mine is not shared with other runs", said)) == 1
    assert len(limited.came) == REQUESTS


@pytest.mark.postgresql
def test_runs_in_one_postgresql_share(tmp_path: Path, worker: Server, limited: LimitedEndpoint) -> None:
    with postgresql() as server:
        _share_in(server.url, tmp_path, worker, limited)


@pytest.mark.mariadb
def test_runs_in_one_mariadb_share(tmp_path: Path, worker: Server, limited: LimitedEndpoint) -> None:
    with mariadb() as server:
        _share_in(server.url, tmp_path, worker, limited)


def _share_in(url: str, folder: Path, worker: Server, limited: LimitedEndpoint) -> None:
    """Two runs, each with no state folder, so that it must be the database."""
    write_plan(folder, worker, limited)
    store = {**KEY, "PROCTOR_STORE": url, "XDG_STATE_HOME": "/proc/nowhere"}
    limited.hold()
    first = begin("run", "plan.yaml", "--name", "a", cwd=folder, **store)
    until(lambda: len(limited.came) == LIMIT)
    second = begin("run", "plan.yaml", "--name", "b", cwd=folder, **store)
    until_said(folder, "b", "shared with 1 other run (a), 0 of", **store)
    limited.let_go()
    finished(first, second)
    assert (limited.refused, len(limited.came)) == (0, 2 * REQUESTS)
    assert limited.most == LIMIT
