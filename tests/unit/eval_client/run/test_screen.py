"""What a run prints and serves while it plays: its plain line, its endpoints, its metrics."""

import asyncio
import re
from io import StringIO

import httpx
import pytest
from rich.console import Console

from eval_client.core.limits.pool import Share
from eval_client.core.limits.rates import Rates
from eval_client.core.limits.throttle import EndpointLevel
from eval_client.core.run_view import PairView, RunView
from eval_client.core.spend import RunLimits, Spend
from eval_client.endpoints.endpoints import Endpoints
from eval_client.plan.plan import Plan
from eval_client.run.live import Live, table
from eval_client.run.metrics import exposition, listener
from eval_client.run.reporters import shared_lines
from eval_client.run.screen import line
from proctor.config.tokens import AccessTokens
from proctor.http.auth import Access
from proctor.http.server import ConfigError
from tests.support import via


def view(money: float) -> RunView:
    counts = {"turns": 0, "retries": 0, "attempts_lost": 0, "prompt_tokens": 1, "completion_tokens": 2}
    return RunView(run="r", elapsed_s=1.0, left_s=None, pairs=(), use={}, money=money, troubles=(), shared=(), **counts)


def test_money_stands_in_the_line_where_a_price_is_known() -> None:
    assert "| tokens 3 | money 0.005 |" in line(view(0.005), ())
    assert "money" not in line(view(0.0), ())


def test_a_cause_that_several_tasks_wait_for_is_said_once() -> None:
    counts = {"planned": 2, "scored": 0, "unscored": 0, "running": 0, "mean": None}
    waits = {"db": "endpoint", "ltp": "endpoint", "kg": "no worker"}
    pairs = [PairView(agent=agent, task=task, waits_for=why, **counts) for agent in "ab" for task, why in waits.items()]
    run = view(0.0).model_copy(update={"pairs": tuple(pairs)})
    assert line(run, run.waits().values()).endswith("| waits for endpoint: db, ltp | kg: no worker")
    screen = drawn(run, 60)
    assert screen.count("endpoint") == screen.count("no worker") == 1


class Screen:
    """What a terminal shows: it wraps long lines, and wraps its lines anew when it is made narrower."""

    CODES = re.compile(r"\x1b\[([\d;?]*)([A-Za-z])|(.)", re.DOTALL)

    def __init__(self, width: int) -> None:
        self.width, self.rows, self.x, self.y = width, [""], 0, 0

    def write(self, text: str) -> None:
        for number, code, char in self.CODES.findall(text):
            if code == "J":
                self.rows[self.y :] = [self.rows[self.y][: self.x]]
            elif code == "A":
                self.y -= int(number or 1)
            elif code == "G" or char == "\r":
                self.x = int(number or 1) - 1
            elif char == "\n":
                self._down()
            elif char:
                if self.x == self.width:
                    self._down()
                self.rows[self.y] = self.rows[self.y][: self.x].ljust(self.x) + char
                self.x += 1

    def _down(self) -> None:
        self.x, self.y = 0, self.y + 1
        self.rows += [""] * (self.y == len(self.rows))

    def narrow(self, width: int) -> None:
        wrapped = [[row[at : at + width] for at in range(0, max(1, len(row)), width)] for row in self.rows]
        self.y = sum(map(len, wrapped[: self.y])) + self.x // width
        self.x, self.width, self.rows = self.x % width, width, [row for rows in wrapped for row in rows]


def drawn(run: RunView, width: int) -> str:
    console = Console(width=width, file=StringIO(), no_color=True)
    with console.capture() as text:
        console.print(table(run))
    return "\n".join(row.rstrip() for row in text.get().splitlines())


def test_the_live_screen_is_drawn_anew_in_its_place_when_the_terminal_is_narrower() -> None:
    counts = {"planned": 9, "scored": 1, "unscored": 0, "running": 1, "mean": 0.5, "waits_for": None}
    pairs = tuple(PairView(agent="an-agent", task=task, **counts) for task in ("knowledge_graph", "card_game"))
    use = {"endpoint built-in": (0, 10_000), "agent an-agent": (3, 3)}
    run = view(0.0).model_copy(update={"run": "a-long-name-of-a-run", "pairs": pairs, "use": use})
    written = StringIO()
    console = Console(
        width=140, height=30, file=written, force_terminal=True, no_color=True, _environ={"TERM": "xterm"}
    )
    live, screen = Live(console, lambda: table(run)), Screen(140)
    for width in (140, 80, 60, 40):
        console.width = width
        screen.narrow(width)
        for _ in range(2):
            live.show()
            console.print(f"said at {width}")
            screen.write(written.getvalue())
            written.seek(written.truncate(0))
        shown = [row.rstrip() for row in screen.rows]
        assert shown == [row for row in shown if row.startswith("said at")] + drawn(run, width).splitlines()
    assert "agent an-agent 3/3" in "".join(shown)
    assert "built-in" not in "".join(shown)
    live.stop()
    screen.write(written.getvalue())
    assert [row.rstrip() for row in screen.rows] == [*shown, ""]


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


@pytest.mark.parametrize("where", ["x:y", "99999", "127.0.0.1:", "http://127.0.0.1:1", "::1:80"])
def test_an_address_that_is_none_is_refused(where: str) -> None:
    with pytest.raises(ConfigError, match=r"--metrics: .* is not \[HOST:\]PORT"):
        listener(where)


def test_other_machines_see_it_only_with_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROCTOR_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="set PROCTOR_TOKEN"):
        listener("0.0.0.0:0")
    with listener("0") as socket:
        assert socket.getsockname()[0] == "127.0.0.1"
    monkeypatch.setenv("PROCTOR_TOKEN", "a-token-of-the-tests")
    with listener("0.0.0.0:0") as socket:
        assert socket.getsockname()[0] == "0.0.0.0"


@pytest.mark.parametrize(("token", "status"), [(None, 403), ("a-token-of-the-tests", 200)])
async def test_a_web_page_elsewhere_sees_it_only_with_a_token(token: str | None, status: int) -> None:
    app = exposition(lambda: "", Access(AccessTokens.given(token)))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as http:
        shown = {"Authorization": f"Bearer {token}", "Host": "rebound.example"}
        assert (await http.get("/metrics", headers=shown)).status_code == status
        assert (await http.get("/metrics", headers={**shown, "Host": "localhost:9464"})).status_code == 200
