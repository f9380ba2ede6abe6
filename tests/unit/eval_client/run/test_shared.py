"""What the screen and `proctor status` say of endpoints that are shared or whose rates are limited."""

import asyncio
from pathlib import Path

import httpx
import pytest

from eval_client.core.limits.pool import Share
from eval_client.core.limits.rates import Rates
from eval_client.core.limits.throttle import EndpointLevel
from eval_client.core.spend import RunLimits, Spend
from eval_client.endpoints.endpoints import Endpoints
from eval_client.plan.plan import Plan
from eval_client.run.stall_reporter import WRITE_EVERY_S, LinesFile, lines_of, shared_lines
from tests.support import via

PLAN = Plan.model_validate(
    {
        "endpoints": [
            {"name": "e", "base_url": "http://model/v1"},
            {"name": "two", "base_url": ["http://a/v1", "http://b/v1"]},
            {"name": "own", "base_url": "http://other/v1", "shared": False},
        ],
        "agents": [
            {"name": "a", "endpoint": "e"},
            {"name": "b", "endpoint": "own"},
            {"name": "c", "builtin": "naive"},
            {"name": "d", "endpoint": "two"},
        ],
        "tasks": [{"name": "t", "environment": "ltp"}],
    }
)


@pytest.fixture
def endpoints(monkeypatch: pytest.MonkeyPatch) -> Endpoints:
    monkeypatch.setenv("OPENAI_API_KEY", "token-of-the-tests")
    monkeypatch.setenv("PROCTOR_LOCAL_TOKEN", "token-of-the-run")

    http = httpx.AsyncClient()
    return Endpoints(PLAN, via(http), Spend(RunLimits(), {}), "http://127.0.0.1:1/v1", lambda: None)


def share(*others: str, rates: Rates | None = None) -> Share:
    return Share(0.0, EndpointLevel(limit=16.5, cool_until=0.0), 5, others, rates or Rates(), ())


def test_only_endpoints_that_are_to_be_shared_are_and_never_those_of_the_run_itself(endpoints: Endpoints) -> None:
    key = "token-of-the-tests"
    several = {f"two at http://{host}/v1": (f"http://{host}/v1", key) for host in ("a", "b")}
    assert endpoints.addresses == {"e": ("http://model/v1", key), **several}
    assert endpoints.pooled.keys() == endpoints.addresses.keys()
    assert {endpoints.endpoint(name) for name in several} == {"two"}


def test_a_run_that_is_alone_says_nothing(endpoints: Endpoints) -> None:
    endpoints.shares["e"] = share()
    assert shared_lines(endpoints) == ()


def test_a_line_names_the_other_runs_and_this_clients_part(endpoints: Endpoints) -> None:
    endpoints.shares["e"] = share("x")
    line = "endpoint e: shared with 1 other run (x), 5 of 16 trials at once are for this client"
    assert shared_lines(endpoints) == (line,)
    endpoints.shares["e"] = share("p", "q", "r", "s")
    assert "with 4 other runs (p, q, r, ...), 5 of 16" in shared_lines(endpoints)[0]


async def test_a_line_says_how_many_requests_wait_for_which_rate(endpoints: Endpoints) -> None:
    gate = endpoints.gates["e"]
    gate.take(Rates(rpm=60), ())
    endpoints.shares["e"] = share(rates=Rates(rpm=60))
    waiting = asyncio.create_task(gate.enter(0.0))
    await asyncio.sleep(0)
    assert shared_lines(endpoints) == ("endpoint e: 1 request waiting for rpm (60)",)
    waiting.cancel()


def test_a_line_says_why_nothing_is_shared(endpoints: Endpoints) -> None:
    endpoints.shares["e"], endpoints.unshared["e"] = share(), "/x: No space left on device"
    assert shared_lines(endpoints) == ("endpoint e: not shared with other runs: /x: No space left on device",)


def test_the_lines_lie_in_the_runs_folder_written_seldom_and_go_with_the_run(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    file = LinesFile(path, WRITE_EVERY_S)
    file.write(("one",), 0.0)
    file.write(("two",), 0.5 * WRITE_EVERY_S)
    assert lines_of(path) == ["one"]
    file.write(("two",), WRITE_EVERY_S)
    assert lines_of(path) == ["two"]
    file.close()
    assert lines_of(path) == []


async def test_one_of_several_servers_that_is_down_is_named_until_all_are(endpoints: Endpoints) -> None:
    first, second = endpoints.replicas["two"].all.values()
    first.outage.failed("no connection", surely=True)
    assert shared_lines(endpoints) == ("endpoint two: replica http://a/v1 is down: no connection",)
    assert not endpoints.is_down("two")
    second.outage.failed("no connection", surely=True)
    assert shared_lines(endpoints) == ()
    assert endpoints.is_down("two")
    first.outage.answered()
    assert not endpoints.is_down("two")
