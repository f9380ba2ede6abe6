"""An endpoint behind an agent server (`kind: proxied`) comes to the same as the endpoint asked directly."""

import json
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.utils import formatdate
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.ends.test_outcomes import BLOCKED, DECLINED, FILTERED, FLAGGED, INVALID, NO_COMPLETION, TOO_LONG, failure
from tests.e2e.proctor import Server, begin, completed, ended, exits, proctor, server, troubles
from tests.e2e.scripted import GOOD, ScriptedEndpoint, listening, reply
from tests.pace import slowly, until
from tests.support import free_port

DEADLINE_S = slowly(2)
AGENTS = """\
agents:
  - name: model
    kind: proxied
    chat: {{model: model, base_url: "{url}", api_key_env: SCRIPTED_KEY, deadline_s: {deadline_s}}}
  - {{name: dead, kind: proxied, chat: {{model: dead, base_url: "{dead}", api_key_env: SCRIPTED_KEY}}}}
"""
PLAN = """\
name: passed-on
controller: {worker}
endpoints:
  - {{name: e, base_url: "{url}", api_key_env: {key}, max_tries: 3, deadline_s: {deadline_s}, patience_s: {patience_s}}}
agents: [{{name: {agent}, endpoint: e, concurrency: 1}}]
tasks: [{{name: db-own}}]
"""
REFERENCE = """\
port: {port}
tasks: [{{name: db-own, environment: db, parameters: {{engine: sqlite}}}}]
agents:
  - {{name: solver, kind: reference}}
  - {{name: through, kind: proxied, concurrency: 9, chat: {{model: solver, {chat}}}}}
  - {{name: twice, kind: proxied, chat: {{model: through, {chat}}}}}
"""
PATIENCE_S = slowly(1)
KEY = "sk-of-the-endpoint-behind-0123456789"
ONE_TOKEN = reply(200, GOOD)
THROTTLED = b'{"error": {"message": "slow down"}}'


class Case(NamedTuple):
    """What an endpoint answers: each reply once, then `always`, or well."""

    replies: Sequence[bytes | Callable[[], bytes] | None] = ()
    always: bytes | None = None
    code: int = 0
    """The exit code of a run of two trials."""
    wait_s: float = 0.0
    """The least time between the first request and the second one."""


def odd(status: int) -> bytes:
    return failure(status, "oops")


def throttled(*headers: str, status: int = 429, body: bytes = THROTTLED) -> list[bytes]:
    return [reply(status, body, *headers)]


def in_two_seconds() -> bytes:
    """The rest of the second is no part of the date."""
    return reply(429, THROTTLED, f"Retry-After: {formatdate(time.time() + 2, usegmt=True)}")


def broken() -> bytes:
    """The connection ends without a reply."""
    raise ConnectionResetError


CASES = {
    "context limit": Case(always=TOO_LONG),
    "content filter": Case(always=BLOCKED),
    "flagged": Case(always=FLAGGED),
    "filtered answer": Case(always=FILTERED),
    "declined answer": Case(always=DECLINED),
    "invalid": Case(always=INVALID, code=2),
    "wrong key": Case(always=failure(401, "no such key"), code=2),
    "wrong key once": Case([reply(200, GOOD), failure(401, "no such key")]),
    "no route": Case(always=reply(404, b"<html>\r\nnot found</html>"), code=2),
    "unpaid": Case(always=odd(402), code=2),
    "quota": Case(always=failure(429, "exceeded", code="insufficient_quota"), code=2),
    "seconds": Case(throttled("Retry-After: 2"), wait_s=2),
    "date": Case([in_two_seconds], wait_s=0.9),
    "milliseconds": Case(throttled("retry-after-ms: 1500"), wait_s=1.5),
    "reset": Case(throttled("x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 1.5s"), wait_s=1.5),
    "other reset": Case(throttled("x-ratelimit-remaining-tokens: 9", "x-ratelimit-reset-tokens: 3600s")),
    "prefixed": Case(throttled("llm_provider-retry-after: 2"), wait_s=2),
    "in words": Case(throttled(body=b'{"error": {"message": "try again in 1.5s"}}'), wait_s=1.5),
    "overloaded": Case(throttled("Retry-After: 1", status=529), wait_s=1),
    "not to be repeated": Case(throttled("x-should-retry: false", status=500)),
    "to be repeated": Case(throttled("x-should-retry: true", status=400)),
    "500": Case([odd(500), odd(500)]),
    "502 of a gateway": Case([reply(502, b"<html>bad gateway</html>")]),
    "no completion": Case([NO_COMPLETION, reply(200, b"no JSON"), reply(200, b'{"error": {"message": "oops"}}')]),
    "no content": Case([reply(204, b"")]),
    "broken off": Case([broken, broken]),
    "deadline": Case([None]),
    "deaf to this prompt": Case([odd(500)] * 3 + [ONE_TOKEN] + [odd(500)] * 2, code=1),
}


class Came(NamedTuple):
    """What a run came to."""

    code: int
    trials: list[dict[str, object]]
    requests: int


class Site(NamedTuple):
    """A worker, an endpoint that is asked directly, and one behind an agent server."""

    worker: Server
    endpoints: Mapping[bool, ScriptedEndpoint]
    """behind -> the endpoint"""
    agents: Server
    dead: int
    """The port of an endpoint that is not there."""
    log: Path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, worker: Server) -> Iterator[Site]:
    folder, dead = tmp_path_factory.mktemp("agents"), free_port()
    endpoints = {behind: ScriptedEndpoint() for behind in (False, True)}
    with listening(endpoints[False]), listening(endpoints[True]):
        urls = {"url": endpoints[True].url, "dead": f"http://127.0.0.1:{dead}/v1"}
        (folder / "agents.yaml").write_text(AGENTS.format(deadline_s=DEADLINE_S, **urls))
        with server("agents", "--config", "agents.yaml", cwd=folder, SCRIPTED_KEY=KEY) as agents:
            yield Site(worker, endpoints, agents, dead, folder / "agents.log")


def script(endpoint: ScriptedEndpoint, case: Case) -> list[float]:
    """Let an endpoint answer so; the list that gets the times of its requests."""
    left, times = [*case.replies], list[float]()

    def rule(_request: dict[str, Any]) -> bytes | None:
        times.append(time.monotonic())
        if not left:
            return case.always
        told = left.pop(0)
        endpoint.bad = [None] if told is None else []
        return told() if callable(told) else told

    endpoint.rule, endpoint.bad = rule, []
    return times


def plan(site: Site, folder: Path, *, behind: bool, agent: str = "model", patience_s: float = 60) -> None:
    """A plan that asks the endpoint, directly or behind the agent server; only this and what follows from it differ."""
    url = (
        site.agents.url
        if behind
        else site.endpoints[False].url
        if agent == "model"
        else f"http://127.0.0.1:{site.dead}/v1"
    )
    folder.mkdir(exist_ok=True)
    text = PLAN.format(
        worker=site.worker.url,
        url=url,
        key="PROCTOR_TOKEN" if behind else "SCRIPTED_KEY",
        deadline_s=10 * DEADLINE_S if behind else DEADLINE_S,
        patience_s=patience_s,
        agent=agent,
    )
    (folder / "plan.yaml").write_text(text)


def trials(folder: Path) -> list[dict[str, object]]:
    """The rows of the run without what differs between equal runs and between the ways."""
    exits(0, "export", "r", "--to", "rows.jsonl", cwd=folder)
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    for row in rows:
        for part in (row, (row["finish"] or {}).get("detail", {})):
            for name in ("run", "seconds", "ended_at", "cause"):
                part.pop(name, None)
    return rows


@pytest.mark.parametrize("name", CASES)
def test_every_answer_comes_to_the_same_behind_an_agent_server(name: str, tmp_path: Path, site: Site) -> None:
    case, came, folders = CASES[name], list[Came](), [tmp_path / "directly", tmp_path / "behind"]
    asked = [script(site.endpoints[behind], case) for behind in (False, True)]
    with ended():
        for behind, folder in enumerate(folders):
            plan(site, folder, behind=bool(behind))
        runs = [begin("run", "plan.yaml", "--name=r", "--limit=2", cwd=each, SCRIPTED_KEY=KEY) for each in folders]
        for run, folder, times in zip(runs, folders, asked, strict=True):
            completed(run, case.code, within_s=90)
            assert not case.wait_s or times[1] - times[0] >= case.wait_s
            came.append(Came(run.returncode, trials(folder), len(times)))
    assert came[1] == came[0]


def test_an_endpoint_that_is_down_behind_is_waited_for_and_no_attempt_is_used(tmp_path: Path, site: Site) -> None:
    folders, back = [tmp_path / "directly", tmp_path / "behind"], ScriptedEndpoint()
    for behind, folder in enumerate(folders):
        plan(site, folder, behind=bool(behind), agent="dead", patience_s=PATIENCE_S)
        gone = proctor("run", "plan.yaml", "--name=r", "--limit=2", cwd=folder, SCRIPTED_KEY=KEY)
        assert (gone.returncode, [row["reason"] for row in trials(folder)]) == (2, [None, None]), gone.stderr
        assert "no answer for" in gone.stderr
    assert trials(folders[1]) == trials(folders[0])
    with ended():
        settings = "--set", "endpoints.e.patience_s=600"
        runs = [begin("resume", "r", *settings, cwd=each, SCRIPTED_KEY=KEY) for each in folders]
        until(lambda: all("is down, 2 trials wait for it" in troubles(folder) for folder in folders), 60)
        back.bound = socket.create_server(("127.0.0.1", site.dead))
        with listening(back):
            for run in runs:
                completed(run, within_s=90)
    assert [row["reason"] for row in trials(folders[1])] == ["completed"] * 2
    assert trials(folders[1]) == trials(folders[0])


def test_no_try_is_used_at_an_endpoint_behind_that_is_down_while_other_agents_of_the_server_answer(
    tmp_path: Path, site: Site
) -> None:
    def slow(_request: dict[str, Any]) -> None:
        time.sleep(0.3)  # so that one agent answers while the other one is asked again

    script(site.endpoints[True], Case())
    site.endpoints[True].rule = slow
    plan(site, tmp_path, behind=True, patience_s=PATIENCE_S)
    text = (tmp_path / "plan.yaml").read_text()
    both = "agents: [{name: dead, endpoint: e, concurrency: 1}, {name: model, "
    (tmp_path / "plan.yaml").write_text(text.replace("agents: [{name: model, ", both))
    exits(2, "run", "plan.yaml", "--name=r", cwd=tmp_path)
    came = {name: {row["reason"] for row in trials(tmp_path) if row["agent"] == name} for name in ("model", "dead")}
    assert came == {"model": {"completed"}, "dead": {None}}


def test_it_is_said_whose_key_is_refused_once_and_the_doctor_and_a_metric_tell(tmp_path: Path, site: Site) -> None:
    script(site.endpoints[True], Case())
    site.endpoints[True].always = failure(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key")
    plan(site, tmp_path, behind=True)
    before = site.log.read_text()
    told = [
        proctor("run", "plan.yaml", "--name=r", "--limit=2", cwd=tmp_path).stderr,
        proctor("run", "plan.yaml", "--name=s", "--limit=2", cwd=tmp_path).stderr,
        proctor("doctor", "plan.yaml", "--no-calls", cwd=tmp_path).stdout,
        proctor("doctor", "plan.yaml", cwd=tmp_path).stdout,
    ]
    for each in told:
        said = next(line for line in each.splitlines() if "behind it" in line)
        assert "(variable SCRIPTED_KEY holds the key that was sent)" in said
        assert "PROCTOR_TOKEN" not in said
        assert KEY not in each
    assert "agent server" in told[2]
    logged = site.log.read_text().removeprefix(before)
    assert logged.count("status 401: ") == 1
    assert KEY not in logged
    assert site.agents.metric('proctor_agent_up\\{agent="model"\\}') == 0
    with urllib.request.urlopen(site.agents.url.removesuffix("/v1") + "/readyz", timeout=slowly(10)) as ready:
        assert ready.status == 200
    site.endpoints[True].always = False
    assert site.agents.metric('proctor_agent_up\\{agent="model"\\}') == 1


def test_a_reference_agent_behind_two_servers_gets_the_metadata_and_plays(tmp_path: Path, worker: Server) -> None:
    port = free_port()
    chat = f"api_key_env: PROCTOR_TOKEN, base_url: 'http://127.0.0.1:{port}/v1'"
    (tmp_path / "agents.yaml").write_text(REFERENCE.format(port=port, chat=chat))
    agents = [{"name": name, "endpoint": "e", "metadata": True} for name in ("solver", "through", "twice")]
    with server("agents", "--config", "agents.yaml", cwd=tmp_path) as served:
        endpoint = {"name": "e", "base_url": served.url, "api_key_env": "PROCTOR_TOKEN"}
        plan = {"name": "p", "controller": worker.url, "endpoints": [endpoint], "agents": agents}
        (tmp_path / "plan.yaml").write_text(json.dumps(plan | {"tasks": [{"name": "db-own"}], "epochs": 2}))
        exits(0, "run", "plan.yaml", "--name=r", "--limit=2", cwd=tmp_path)
        without = proctor("run", "plan.yaml", "--name=s", "--set", "agents.twice.metadata=false", cwd=tmp_path)
    assert [(row["score"], row["attempts"]) for row in trials(tmp_path)] == [(1.0, 1)] * 12
    assert "set `metadata: true` at the agent in the plan" in " ".join(without.stderr.split())
