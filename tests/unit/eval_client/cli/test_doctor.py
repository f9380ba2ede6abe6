"""What the doctor says, for every kind that a test of real processes would be too slow or too destructive for."""

import asyncio
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result
from pydantic import BaseModel, JsonValue

from eval_client.cli.doctor import machine, tasks
from eval_client.cli.doctor.command import doctor
from eval_client.cli.doctor.endpoint import ModelProbe
from eval_client.cli.doctor.finding import Finding, fail, findings, ok
from eval_client.cli.doctor.machine import GIBI
from eval_client.cli.doctor.plan_checks import Options, PlanChecks
from eval_client.cli.doctor.readiness import key_findings
from eval_client.cli.doctor.servers import ServerProbe
from eval_client.cli.usage import in_thread
from eval_client.plan.plan import Plan
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.tables import metadata, run_table
from proctor.config.task import TaskDefinition
from proctor.config.tokens import AccessTokens
from proctor.environment import EnvironmentFault
from proctor.http.client import DeadlineExceeded, Untrusted
from proctor.llm.config import ChatConfig
from task_server.wire.messages import VERSION, Health, TaskCapacity, TaskList
from tests.pace import slowly
from tests.support import via
from tests.toy_environment import Bare, Letters

Said = list[tuple[str, str]]
RUNS = Path("runs")


def said(found: list[Finding]) -> Said:
    """(kind, status) of each."""
    return [(each.id, each.status.value) for each in found]


def test_a_finding_is_one_line_and_shows_no_secret() -> None:
    told = fail("store-unreachable", "postgresql://me:canary-canary@db/x: no answer to Bearer sk-canary1234567", "", "")
    assert "canary" not in told.model_dump_json()
    assert fail("x", "a\n  b " + "x" * 1000, "", "").what == "a b " + "x" * 596 + "..."


def doctored(folder: Path, *tasks: str) -> Result:
    (folder / "plan.yaml").write_text(f"agents: [{{name: a, builtin: naive}}]\ntasks: [{', '.join(tasks)}]\n")
    return CliRunner().invoke(doctor, [str(folder / "plan.yaml"), "-o", str(folder)])


def test_an_engine_that_is_missing_is_a_warning_where_a_run_falls_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/gone.sock")
    task = "{name: boxes, environment: os, fallback: FALLS}"
    waits, falls = (doctored(tmp_path, task.replace("FALLS", word)) for word in ("false", "true"))
    assert (waits.exit_code, falls.exit_code) == (1, 0)
    assert re.search(r"^fail +docker-down", waits.output, re.MULTILINE)
    assert re.search(r"^warn +docker-down.*\n +why: `fallback: true` lets a run go on", falls.output, re.MULTILINE)


def test_why_and_how_are_said_once_of_several_findings(tmp_path: Path) -> None:
    told = doctored(tmp_path, "{name: one, environment: alfworld}", "{name: two, environment: alfworld}").output
    assert len(re.findall("^warn +not-comparable: tasks one, two: ", told, re.MULTILINE)) == 1
    assert told.count("why: scores can't be compared") == 1


def test_the_folder_of_the_runs() -> None:
    kinds = {"ext4": "runs-folder", "nfs4": "runs-folder", "overlay": "runs-folder-container"}
    assert {kind: machine.place(RUNS, kind, None).id for kind in kinds} == kinds
    assert "whose locks hold" in machine.place(RUNS, "nfs4", None).what
    untrusted = machine.place(RUNS, "nfs4", "runs can't be locked")
    assert said([untrusted]) == [("runs-folder-network", "fail")]
    free = [machine.disk(RUNS, size) for size in (GIBI * 9, GIBI, 9)]
    assert said(free) == [("disk", "ok"), ("disk-short", "warn"), ("disk-short", "fail")]


def test_packages_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = ["httpx", "absent; extra == 'db'", "proctor[db]; extra == 'all'", "pytest>=1; extra == 'card_game'"]
    monkeypatch.setattr(machine, "requires", lambda name: needed)
    python, *found = machine.extras(["db", "card_game", "unheard-of"], needed=True)
    assert said([python, *found]) == [
        ("python", "ok"),
        ("extra-missing", "warn"),
        ("extra", "ok"),
        ("extra-missing", "warn"),
    ]
    assert found[0].fix == "pip install 'proctor[db]'"
    elsewhere = machine.extras(["db"], needed=False)[1]  # no plan of this machine plays it
    assert said([elsewhere]) == [("extra", "skip")]
    assert "pip install 'proctor[db]'" in elsewhere.what


@pytest.mark.parametrize(
    ("value", "url", "kind"),
    [
        ("", "https://host/v1", "key-unset"),
        ("", "http://127.0.0.1/v1", "key"),
        ("sk-h\u00e9llo-canary", "https://host/v1", "key-broken"),
        ("sk-good-canary", "https://host/v1", "key"),
    ],
)
def test_keys(value: str, url: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCTOR_KEY", value)
    found = key_findings(plan_of(base_url=url))
    assert [each.id for each in found] == [kind]
    assert "canary" not in found[0].what


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"api_key_file": "no/such/key"}, "there is no file no/such/key"),
        ({"api_key_command": ["no-such-program"]}, "there is no program 'no-such-program'"),
        ({"headers": {"x-team": "${NO_TEAM_KEY}"}}, "the variable NO_TEAM_KEY is unset"),
        ({"query": {"code": "${NO_TEAM_KEY}"}}, "the variable NO_TEAM_KEY is unset"),
        ({"proxy": "${NO_TEAM_KEY}"}, "the variable NO_TEAM_KEY is unset"),
    ],
)
def test_what_an_endpoint_names_and_is_not_there(fields: dict[str, object], told: str) -> None:
    [broken] = [found.what for found in key_findings(plan_of(**fields)) if found.id == "key-broken"]
    assert told in broken


def plan_of(**endpoint: object) -> Plan:
    """A plan with one model at an endpoint with these fields."""
    fields = {"name": "e", "base_url": "http://127.0.0.1:9/v1", "api_key_env": "DOCTOR_KEY", **endpoint}
    agents, tasks = [{"name": "a", "endpoint": "e"}], [{"name": "t", "environment": "ltp"}]
    return Plan.model_validate({"endpoints": [fields], "agents": agents, "tasks": tasks})


@pytest.mark.parametrize(("schema", "kind"), [(0, "store-schema"), (2, "store"), (3, "store"), (4, "store-schema")])
def test_stores_of_other_versions(schema: int, kind: str, tmp_path: Path) -> None:
    url = sqlite_url(tmp_path)
    assert machine.store(url).id == "store"
    engine = connect(url)
    metadata.create_all(engine)
    with engine.begin() as connection:
        row = {"id": "r", "schema_version": schema, "created_at": "", "manifest": "", "fence": 0, "state": "new"}
        connection.execute(run_table.insert(), row)
    engine.dispose()
    assert machine.store(url).id == kind
    assert machine.store("sqlite:///no/such/folder/x").id == "store-unreachable"


def completion(**message: object) -> bytes:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": None, **message}}]}).encode()


def error(message: str, code: str = "") -> bytes:
    return json.dumps({"error": {"message": message, "code": code}}).encode()


READY = completion(content="ready")
CALL = {"id": "c", "function": {"name": "report_ready", "arguments": "{}"}, "extra_content": {"signature": "s"}}
CALLED = completion(tool_calls=[CALL], reasoning_content="r")
WANTS_OTHER_NAME = error("'max_tokens' is not supported. Use 'max_completion_tokens' instead.")

WANTS_STREAM = error("parameter.enable_thinking must be set to false for non-streaming calls")


class Endpoint:
    """Answers requests with these replies, in turn, the last one again and again; `bodies` are the requests."""

    def __init__(self, *replies: tuple[int, bytes] | Exception) -> None:
        self._replies, self.bodies = list(replies), list[dict[str, Any]]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(json.loads(request.content or "{}"))
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, Exception):
            raise reply
        return httpx.Response(reply[0], content=reply[1])


async def asked(endpoint: Endpoint, how: str, **fields: object) -> list[Finding]:
    """The findings of a probe."""
    async with httpx.AsyncClient(transport=httpx.MockTransport(endpoint)) as http:
        config = ChatConfig.model_validate({"model": "gpt", "base_url": "http://e/v1", **fields})
        probe = ModelProbe(via(http), "agent a", config, slowly(10))
        return await probe.tools() if how == "tools" else [await getattr(probe, how)()]


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, error("Incorrect API key provided: sk-canary1234"), "agent-key"),
        (403, b"{}", "agent-key"),
        (400, error("API key not valid. Please pass a valid API key."), "agent-key"),
        (404, error("The model `gpt` does not exist."), "agent-model"),
        (400, error("invalid model ID", "model_not_found"), "agent-model"),
        (404, b"<html>Not Found</html>", "agent-url"),
        (405, b"", "agent-url"),
        (301, b"", "agent-url"),
        (400, error("temperature must be at most 2"), "agent-refuses"),
        (400, WANTS_OTHER_NAME, "agent-refuses"),
        (400, WANTS_STREAM, "agent-refuses"),
        (400, error("This model only support stream mode, please enable the stream parameter."), "agent-refuses"),
        (429, error("You exceeded your current quota.", "insufficient_quota"), "agent-quota"),
        (402, b"{}", "agent-quota"),
        (429, error("Rate limit reached"), "agent-throttled"),
        (502, b"Bad Gateway", "agent-failing"),
        (200, b"<html>Welcome</html>", "agent-reply"),
        (200, READY, "agent"),
    ],
)
async def test_what_an_endpoint_may_reply(status: int, body: bytes, kind: str) -> None:
    [finding] = await asked(Endpoint((status, body)), "complete")
    assert finding.id == kind
    assert finding.what.startswith("agent a: model gpt at http://e/v1")
    assert "canary" not in finding.what
    assert ("max_tokens_field" in finding.fix) == (body == WANTS_OTHER_NAME)
    assert ("stream: true" in finding.fix) == (b"stream" in body)


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, b'{"data": [{"id": "gpt"}]}', ("agent", "ok")),
        (200, b'{"data": [{"id": "other"}]}', ("agent-model", "fail")),
        (404, b"", ("agent", "skip")),
        (401, b"", ("agent-key", "fail")),
        (200, b"[]", ("agent-reply", "fail")),
    ],
)
async def test_what_an_endpoint_may_say_of_its_models(status: int, body: bytes, expected: tuple[str, str]) -> None:
    assert said(await asked(Endpoint((status, body)), "look_up")) == [expected]


@pytest.mark.parametrize("how", ["complete", "look_up"])
@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (httpx.ConnectError("refused"), "agent-unreachable"),
        (DeadlineExceeded("late"), "agent-silent"),
        (httpx.RemoteProtocolError("cut short"), "agent-reply"),
    ],
)
async def test_what_may_happen_instead_of_a_reply(
    failure: Exception, kind: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    [finding] = await asked(Endpoint(failure), how)
    assert finding.id == kind
    assert "HTTPS_PROXY" in finding.what
    assert "set, but used only with `proxy: env`" in finding.what


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        ([(400, error("gemma does not support tools"))], [("agent-tools-refused", "fail")]),
        ([(500, error("tools param requires --jinja flag"))], [("agent-tools-refused", "fail")]),
        ([(400, error("temperature must be at most 2"))], [("agent-refuses", "fail")]),
        ([(200, b"<html>")], [("agent-reply", "fail")]),
        ([(200, CALLED), (200, READY)], [("agent-tools", "ok"), ("agent-tools", "ok")]),
        ([(200, READY), (200, READY)], [("agent-tools-unused", "warn"), ("agent-tools", "ok")]),
        (
            [(200, CALLED), (400, error("reasoning_content must be passed back"))],
            [("agent-tools", "ok"), ("agent-tools-history", "fail")],
        ),
        ([(200, CALLED), (503, b"")], [("agent-tools", "ok"), ("agent-failing", "fail")]),
    ],
)
async def test_endpoints_that_are_to_take_tools(replies: list[tuple[int, bytes]], expected: Said) -> None:
    endpoint = Endpoint(*replies)
    assert said(await asked(endpoint, "tools")) == expected
    assert len(endpoint.bodies) == len(replies)


async def test_the_history_holds_the_endpoints_own_call_with_what_it_demands_back() -> None:
    endpoint = Endpoint((200, CALLED), (200, READY))
    await asked(endpoint, "tools")
    messages = endpoint.bodies[1]["messages"]
    assert isinstance(messages, list)
    [called] = [each for each in messages if isinstance(each, dict) and each["role"] == "assistant"]
    assert called["reasoning_content"] == "r"
    assert '"extra_content": {"signature": "s"}' in json.dumps(called["tool_calls"])


class Demanding(Endpoint):
    """A provider that demands all that some demand: a stream, a name, a value, a role, and what it thought back."""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        reply = super().__call__(request)
        body, roles = self.bodies[-1], [each["role"] for each in self.bodies[-1]["messages"]]
        history = [each for each in body["messages"] if each["role"] == "assistant"]
        refusals = {
            "This model only support stream mode, please enable the stream parameter.": not body.get("stream"),
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.": "max_tokens" in body,
            "invalid temperature: only 1 is allowed for this model": body.get("temperature") != 1,
            "Unknown parameter: top_k": "top_k" in body,
            "'messages[0].role' does not support 'system' with this model.": "system" in roles,
            "reasoning_content must be passed back": any("reasoning_content" not in each for each in history),
        }
        why = next((why for why, refused in refusals.items() if refused), None)
        return reply if why is None else httpx.Response(400, content=error(why))


async def test_a_plan_that_follows_the_fixes_meets_all_demands_of_its_endpoint() -> None:
    config: dict[str, Any] = {"sampling": {"temperature": 0, "max_tokens": 9, "top_k": 4}, "reasoning": "never"}
    fixes: list[tuple[str, Callable[[], object]]] = [
        ("`stream: true`", lambda: config.update(stream=True)),
        ("`max_tokens_field: max_completion_tokens`", lambda: config.update(max_tokens_field="max_completion_tokens")),
        ("write `temperature: 1`", lambda: config["sampling"].update(temperature=1)),
        ("correct `top_k`", lambda: config["sampling"].pop("top_k")),
        ("`system_role: developer`", lambda: config.update(system_role="developer")),
        ("set the agent's `reasoning`", lambda: config.update(reasoning="auto")),
    ]
    for fix, done in fixes:
        endpoint = Demanding((200, CALLED))
        found = [*await asked(endpoint, "complete", **config), *await asked(endpoint, "tools", **config)]
        assert {each.fix.count(fix) for each in found if each.is_problem} == {1}, found
        done()
    found = [*await asked(endpoint, "complete", **config), *await asked(endpoint, "tools", **config)]
    assert said(found) == [("agent", "ok"), ("agent-tools", "ok"), ("agent-tools", "ok")]
    assert "streamed" in found[0].what
    assert "wants back what it thought" in found[1].what


def standing(name: str, total: int, free: int, waiting: str | None = None) -> TaskCapacity:
    return TaskCapacity(name=name, environment="db", total=total, free=free, waiting=waiting, digest="d")


def health(url: str, version: str = VERSION) -> Health:
    return Health.model_validate({"role": "controller", "url": url, "version": version})


Replies = Mapping[str, BaseModel | Exception | tuple[int, bytes]]
PROBLEM = b'{"type": "%s", "title": "t", "detail": "just started"}'


async def looked(*offered: TaskCapacity, wants: tuple[str, ...] = (), others: Replies | None = None) -> list[Finding]:
    """The findings at a controller with these tasks, for a plan with tasks of these names; `others`: other replies."""
    well: Replies = {
        "http://c/healthz": health("http://c"),
        "http://c/tasks": TaskList(version="v", tasks=offered),
    }

    def reply(request: httpx.Request) -> httpx.Response:
        found = {**well, **(others or {})}.get(str(request.url), httpx.ConnectError("refused"))
        if isinstance(found, Exception):
            raise found
        status, body = (200, found.model_dump_json().encode()) if isinstance(found, BaseModel) else found
        return httpx.Response(status, content=body, headers={"content-type": "application/json"})

    tasks = [{"name": name} for name in wants or ("good",)]
    agents = [{"name": "gpt", "endpoint": "http://e/v1"}]
    plan = Plan.model_validate({"controller": "http://c", "agents": agents, "tasks": tasks})
    async with httpx.AsyncClient(transport=httpx.MockTransport(reply)) as http:
        return (await ServerProbe(via(http), plan, AccessTokens("token"), slowly(10)).look())[0]


GOOD = standing("good", 4, 2)
ALONE: Said = [("controller", "ok"), ("version", "ok")]


async def test_tasks_as_a_controller_offers_them() -> None:
    offered = {
        standing("full", 4, 0): ("task-full", "warn"),
        standing("gone", 0, 0, "no live worker holds it"): ("task-unknown", "fail"),
        standing("broken", 4, 0, "EnvironmentFault: no engine"): ("task-waiting", "fail"),
        standing("nothing", 0, 0): ("task-no-capacity", "fail"),
        GOOD: ("task", "ok"),
    }
    wants = (*(each.name for each in offered), "unheard-of")
    assert said(await looked(*offered, wants=wants)) == [*ALONE, *offered.values(), ("task-unknown", "fail")]


async def test_workers_of_one_task_that_differ_are_named() -> None:
    differing = standing("good", 4, 0, "its workers differ in data or version, give all the same (e: w9; d: w1, w2)")
    found = await looked(GOOD, standing("good", 2, 1), differing)
    assert said(found) == [*ALONE, ("task-workers-differ", "fail")]
    assert "w9" in found[-1].what


UNTRUSTED = Untrusted("self-signed")


@pytest.mark.parametrize(
    ("others", "first"),
    [
        ({"http://c/healthz": httpx.ConnectError("refused")}, ("controller-unreachable", "fail")),
        ({"http://c/healthz": (200, b"<html>")}, ("controller-other", "fail")),
        ({"http://c/healthz": UNTRUSTED}, ("controller-tls", "fail")),
        ({"http://c/tasks": (401, PROBLEM % b"unauthorized")}, ("controller-token", "fail")),
    ],
)
async def test_controllers_that_cannot_be_used(others: Replies, first: tuple[str, str]) -> None:
    assert said(await looked(GOOD, others=others))[0] == first


async def test_a_controller_of_another_version() -> None:
    others: Replies = {"http://c/healthz": health("http://c", "9.9")}
    assert said(await looked(GOOD, others=others)) == [
        ("controller", "ok"),
        ("version-differs", "fail"),
        ("task", "ok"),
    ]


class Thin(Bare):
    """Weak isolation, and data of its own."""

    def trusted_agents_only(self) -> bool:
        return True

    def not_comparable_because(self) -> str:
        return "own samples"

    def caution_for_models(self) -> str:
        return "its people are rules"


class Empty(Bare):
    """No samples."""

    def samples(self) -> tuple[str, ...]:
        return ()


def played(*agents: str) -> Plan:
    """A plan of one task, played by these agents; `gpt` is a model."""
    entries = [
        {"name": name, "endpoint": "http://e/v1"} if name == "gpt" else {"name": name, "builtin": name}
        for name in agents
    ]
    return Plan.model_validate({"agents": entries, "tasks": [{"name": "t", "environment": "toy"}]})


@pytest.mark.parametrize(
    ("environment", "agents", "expected"),
    [
        (Bare, ["gpt"], [("data", "ok")]),
        (Bare, ["gpt", "naive"], [("data", "ok"), ("policy-missing", "fail")]),
        (
            Thin,
            ["gpt"],
            [("data", "ok"), ("not-comparable", "warn"), ("task-untrusted", "fail"), ("task-simplified", "warn")],
        ),
        (Empty, ["gpt"], [("task-empty", "fail")]),
    ],
)
def test_data_that_are_read_here(
    environment: type[Bare], agents: list[str], expected: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.registry.load", lambda name: environment)
    plan = played(*agents)
    found = list(tasks.read_data(plan.definitions()[0], plan).found)
    assert said(found) == expected
    assert all("gpt" in each.what for each in found if each.id in ("task-untrusted", "task-simplified"))


async def test_only_agents_that_play_a_task_by_function_calls_are_offered_tools() -> None:
    offered = set[str]()

    def reply(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        offered.update([body["model"]] if "tools" in body else [])
        return httpx.Response(200, content=READY)

    plan = Plan.model_validate(
        {
            "controller": "http://controller",
            "agents": [{"name": name, "endpoint": "http://127.0.0.1:9/v1"} for name in "abc"],
            "tasks": [
                {"name": "calls", "environment": "db", "parameters": {"protocol": "tools"}},
                {"name": "texts", "environment": "db", "parameters": {"protocol": "text"}},
                {"name": "simple", "environment": "card_game"},
                {"name": "unknown", "environment": "of-nobody"},
                {"name": "remote"},
            ],
            "assignments": [
                {"agents": ["a"], "tasks": ["calls"]},
                {"agents": ["b"], "tasks": ["texts", "simple", "unknown", "remote"]},
                {"agents": ["c"], "tasks": ["texts", "calls"]},
            ],
        }
    )
    async with httpx.AsyncClient(transport=httpx.MockTransport(reply)) as http:
        found = await checked(http, plan, "agent a", "agent b", "agent c")
    assert [each.id for each in found].count("agent") == 3
    assert offered == {"a", "c"}


async def checked(http: httpx.AsyncClient, plan: Plan, *names: str) -> list[Finding]:
    """The findings of these checks of a plan."""
    checks = PlanChecks(plan, Options(RUNS, None, slowly(10)), via(http)).all()
    for name in checks.keys() - set(names):
        checks[name].close()
    return [each async for each in findings({name: checks[name] for name in names}, slowly(60))]


async def test_a_check_that_crashes_or_hangs_is_a_finding_and_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, limit_s, ahead_s = threading.Event(), slowly(60), 0.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: time.monotonic() + ahead_s)

    async def crash() -> list[Finding]:
        raise KeyError("canary")

    async def hang() -> list[Finding]:
        await in_thread(held.wait)
        return []

    async def wait() -> list[Finding]:
        await asyncio.Event().wait()
        return []

    async def well() -> list[Finding]:
        nonlocal ahead_s
        found = [ok("plan", await in_thread(lambda: "fine"))]
        ahead_s = limit_s  # the time of all others is up
        return found

    checks = {"a": crash(), "b": hang(), "c": wait(), "d": well()}
    found = [each async for each in findings(checks, limit_s)]
    held.set()
    assert said(found) == [("check-failed", "fail"), ("check-late", "fail"), ("check-late", "fail"), ("plan", "ok")]
    assert found[0].what == "a: KeyError: 'canary'"


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        (None, "environment"),
        (ImportError("no module"), "environment-missing"),
        (EnvironmentFault("x"), "environment-fault"),
        (OSError("y"), "environment-fault"),
    ],
)
async def test_an_environment_that_is_entered_once(
    monkeypatch: pytest.MonkeyPatch, trouble: Exception | None, kind: str
) -> None:
    left = []

    @asynccontextmanager
    async def lifespan(self: Letters) -> AsyncIterator[None]:
        if trouble is not None:
            raise trouble
        yield
        left.append(self)

    monkeypatch.setattr(Letters, "lifespan", lifespan)
    monkeypatch.setattr("proctor.registry.load", lambda name: Letters)
    (finding,) = await tasks.started(TaskDefinition(name="t", environment="letters"), slowly(60))
    assert finding.id == kind
    assert len(left) == (trouble is None)


@pytest.mark.parametrize(
    ("world", "parameters", "comes_to"),
    [
        ("db", {"engine": "sqlite", "protocol": "tools"}, "ends as turn_limit after 15 turns: score 0, some 7,"),
        ("card_game", {"protocol": "tools"}, "ends as invalid_format after 10 turns: score 0, some 8,"),
    ],
)
async def test_what_a_model_comes_to_and_costs_that_calls_nothing(
    world: str, parameters: dict[str, JsonValue], comes_to: str
) -> None:
    definition = TaskDefinition(name="t", environment=world, parameters=parameters)
    found = await tasks.started(definition, slowly(60), by_calls=True)
    assert said(found) == [("environment", "ok"), ("agent-tools", "ok")]
    assert f"task t: a model that calls no function {comes_to}" in found[1].what
    assert said(await tasks.started(definition, slowly(60))) == [("environment", "ok")]


async def test_an_environment_that_comes_up_late_is_still_left_as_it_should(monkeypatch: pytest.MonkeyPatch) -> None:
    left = []

    @asynccontextmanager
    async def lifespan(self: Letters) -> AsyncIterator[None]:
        try:
            await asyncio.Event().wait()
            yield
        finally:
            left.append(self)

    monkeypatch.setattr(Letters, "lifespan", lifespan)
    monkeypatch.setattr("proctor.registry.load", lambda name: Letters)
    (finding,) = await tasks.started(TaskDefinition(name="t", environment="letters"), 0.01)
    assert said([finding]) == [("environment-late", "warn")]
    assert len(left) == 1
