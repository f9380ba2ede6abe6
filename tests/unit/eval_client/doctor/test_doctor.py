"""Findings from facts: every kind that a test of real processes would be too slow or too destructive for."""

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from eval_client.doctor import machine, models, resumed, servers, tasks
from eval_client.doctor.databases import StoreFacts, store_finding
from eval_client.doctor.docker_host import EngineFacts, engine_findings
from eval_client.doctor.finding import Finding, Status, fail, ok
from eval_client.doctor.kinds import PROBLEMS
from eval_client.doctor.machine import (
    GIBI,
    FolderFacts,
    descriptor_finding,
    file_system,
    folder_findings,
    memory_finding,
)
from eval_client.doctor.quick import key_finding, key_findings
from eval_client.doctor.run_checks import Check, findings, in_thread
from eval_client.plan.plan import Plan
from eval_client.store.connection import StoreError
from eval_client.store.records import Manifest, TaskRecord
from proctor.config.task import TaskDefinition
from proctor.environment import EnvironmentFault, PolicyKind
from proctor.http.client import ConnectionFailed, DeadlineExceeded, HttpFailure, Unreachable, Untrusted
from task_server.wire.errors import BadReply, ServerUnreachable, TaskServerError, Unauthorized
from task_server.wire.messages import VERSION, Health, TaskCapacity, TaskList
from task_server.wire.worker_messages import WorkerStatus
from tests.pace import slowly
from tests.support import ROOT
from tests.toy_environment import Letters, installed

Said = list[tuple[str, str]]


def said(found: list[Finding]) -> Said:
    """(kind, status) of each."""
    return [(each.id, each.status.value) for each in found]


PAGE = (ROOT / "docs" / "reference" / "doctor.md").read_text(encoding="utf-8")
LISTED = re.findall(r"`([a-z-]+)`", PAGE.split("## Checks")[1].split("##")[0])


def test_the_page_lists_every_problem_with_why_it_matters_and_what_to_do() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
    assert [row for row in rows if PROBLEMS[row[0]] != row[1:]] == []
    assert [row[0] for row in rows] == list(PROBLEMS)


def test_the_page_lists_every_check() -> None:
    files = (*(ROOT / "eval_client" / "doctor").glob("*.py"), ROOT / "eval_client" / "cli" / "doctor.py")
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    assert set(re.findall(r'\b(?:ok|skip|_program)\(\s*"([a-z-]+)"', source)) == set(LISTED)


def test_every_kind_is_provoked_by_a_test() -> None:
    tests = "".join(
        path.read_text(encoding="utf-8")
        for path in (*Path(__file__).parent.glob("test_*.py"), *(ROOT / "tests" / "e2e").glob("test_doctor*.py"))
    )
    assert [kind for kind in (*LISTED, *PROBLEMS) if f'"{kind}"' not in tests] == []


def test_what_is_amiss_always_has_a_reason_and_a_fix_and_shows_no_secret() -> None:
    for kind in PROBLEMS:
        finding = fail(kind, "x")
        assert finding.why
        assert finding.fix
    told = fail("store-unreachable", "postgresql://me:canary-canary@db/x: no answer to Bearer sk-canary1234567")
    assert "canary" not in told.model_dump_json()
    assert fail("environment-fault", "a\n  b " + "x" * 1000).what == "a b " + "x" * 596 + "..."


FOLDER = FolderFacts("runs", None, 100 * GIBI)


@pytest.mark.parametrize(
    ("facts", "needed", "expected"),
    [
        (FOLDER, 0, [("runs-folder", "ok"), ("disk", "ok")]),
        (FOLDER, 60 * GIBI, [("runs-folder", "ok"), ("disk-short", "warn")]),
        (FOLDER, 101 * GIBI, [("runs-folder", "ok"), ("disk-short", "fail")]),
        (FolderFacts("runs", None, GIBI), 0, [("runs-folder", "ok"), ("disk-short", "warn")]),
        (FolderFacts("runs", None, 9), 0, [("runs-folder", "ok"), ("disk-short", "fail")]),
        (FolderFacts("runs", None, GIBI * 9, "nfs4"), 0, [("runs-folder-network", "warn"), ("disk", "ok")]),
        (
            FolderFacts("runs", "Permission denied", GIBI * 9),
            0,
            [("runs-folder-unwritable", "fail"), ("disk", "ok")],
        ),
    ],
)
def test_the_folder_of_the_runs(facts: FolderFacts, needed: int, expected: Said) -> None:
    assert said(folder_findings(facts, needed)) == expected


MOUNTS = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 21 0:40 / /home rw shared:2 - nfs4 server:/home rw,vers=4.2
41 40 8:2 / /home/me/local\\040disk rw - xfs /dev/sdb rw
42 21 0:41 / /scratch rw - lustre mds@o2ib:/scratch rw
43 21 0:42 / /scratch rw - tmpfs tmpfs rw
broken line
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/", "ext4"),
        ("/homestead/me", "ext4"),
        ("/home", "nfs4"),
        ("/home/me/runs", "nfs4"),
        ("/home/me/local disk/runs", "xfs"),
        ("/scratch/me", "tmpfs"),
    ],
)
def test_the_file_system_of_a_folder_is_that_of_the_nearest_mount(folder: str, kind: str) -> None:
    assert file_system(Path(folder), MOUNTS) == kind
    assert file_system(Path(folder), "") is None


def test_a_store_on_a_server_may_have_its_folder_anywhere() -> None:
    facts = FolderFacts("runs", None, GIBI * 9, "nfs4")
    assert said(folder_findings(facts, in_sqlite=False)) == [("runs-folder", "ok"), ("disk", "ok")]


def test_memory_and_descriptors() -> None:
    found = [memory_finding(8 * GIBI), memory_finding(GIBI // 2), memory_finding(None)]
    assert said(found) == [("memory", "ok"), ("memory-short", "warn"), ("memory", "skip")]
    found = [descriptor_finding(1024, 16), descriptor_finding(1024, 500), descriptor_finding(256, 1)]
    assert said(found) == [("descriptors", "ok"), ("descriptors-few", "warn"), ("descriptors-few", "warn")]
    assert "ulimit -n 1628" in found[1].fix


def test_packages_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = [("httpx", None), ("nowhere-to-be-found", None), ("absent", "db")]
    monkeypatch.setattr(machine, "_required", lambda: needed)
    assert said(machine.packages()) == [("package-missing", "fail")]
    assert said(machine.extras(["db", "card_game", "unheard-of"])) == [
        ("extra-missing", "warn"),
        ("extra", "ok"),
        ("extra-missing", "warn"),
    ]
    assert machine.extras(["db"])[0].fix == "pip install 'proctor[db]'"


def test_programs_are_looked_for_where_environments_find_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "_SEARCH", str(tmp_path))
    (tmp_path / "mariadbd").touch(mode=0o755)
    assert said(machine.programs())[0] == ("mariadb", "ok")
    (tmp_path / "mariadbd").chmod(0o644)
    assert said(machine.programs())[0] == ("mariadb-missing", "warn")


def test_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCTOR_KEY", "")
    assert said([key_finding("DOCTOR_KEY", optional=False), key_finding("DOCTOR_KEY", optional=True)]) == [
        ("key-unset", "warn"),
        ("key", "skip"),
    ]
    monkeypatch.setenv("DOCTOR_KEY", "sk-h\u00e9llo-canary")
    broken = key_finding("DOCTOR_KEY", optional=False)
    assert broken.id == "key-broken"
    assert "canary" not in broken.what
    monkeypatch.setenv("DOCTOR_KEY", "sk-good-canary")
    assert said([key_finding("DOCTOR_KEY", optional=False)]) == [("key", "ok")]


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
    plan = Plan.model_validate(
        {
            "endpoints": [{"name": "e", "base_url": "http://127.0.0.1:9/v1", "api_key_env": "DOCTOR_KEY", **fields}],
            "agents": [{"name": "a", "endpoint": "e"}, {"name": "b", "endpoint": "e"}],
            "tasks": [{"name": "t", "environment": "ltp"}],
        }
    )
    broken = [found.what for found in key_findings(plan) if found.id == "key-broken"]
    assert broken == [text for text in broken if told in text]
    assert len(broken) == 2


def test_a_proxy_that_is_set_and_not_used_is_named_where_nothing_answers() -> None:
    told = models.judge_failure(ASKED, Unreachable("refused"), ["HTTPS_PROXY"])
    assert "HTTPS_PROXY: set, but used only with `proxy: env`" in told.what


ENGINE = EngineFacts("20.10", "proctor-os:latest", True, "/docker", 50 * GIBI)


def test_an_engine_without_its_image_or_room() -> None:
    well = [("docker", "ok"), ("docker-image", "ok"), ("docker-disk", "ok")]
    assert said(engine_findings(ENGINE, needed=True)) == well
    poor = EngineFacts("20.10", "proctor-os:latest", False, "/docker", GIBI)
    assert said(engine_findings(poor, needed=False)) == [
        ("docker", "ok"),
        ("docker-image-missing", "warn"),
        ("docker-disk-short", "warn"),
    ]
    assert said(engine_findings(poor, needed=True))[1] == ("docker-image-missing", "fail")


def test_an_engine_that_can_not_bound_what_a_sandbox_writes() -> None:
    def told(bounds: bool | None, *, in_memory: bool = False) -> Said:
        facts = replace(ENGINE, driver="overlay2", bounds_disk=bounds)
        findings = said(engine_findings(facts, needed=True, in_memory=in_memory))
        return [each for each in findings if each[0] in ("docker-quota", "docker-disk-unbounded")]

    assert told(True) == [("docker-quota", "ok")]
    assert told(False) == [("docker-disk-unbounded", "warn")]
    assert told(None) == told(False, in_memory=True) == []


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        (StoreFacts("s", version="postgresql 15", schemas=()), "store"),
        (StoreFacts("s", unreachable="refused"), "store-unreachable"),
        (StoreFacts("s", version="x", refused="permission denied"), "store-rights"),
        (StoreFacts("s", version="x", schemas=(2, 3)), "store"),
        (StoreFacts("s", version="x", row_bytes=1 << 20), "store-rows"),
        (StoreFacts("s", version="x", row_bytes=16 << 20), "store"),
        (StoreFacts("s", version="x", schemas=(0, 3)), "store-schema"),
        (StoreFacts("s", version="x", schemas=(4,)), "store-schema"),
    ],
)
def test_stores(facts: StoreFacts, kind: str) -> None:
    assert store_finding(facts).id == kind


ASKED = models.ProbeReply("a", "gpt", "http://e/v1", "KEY", True)
NO_MODEL = b'{"error": {"message": "The model `gpt` does not exist.", "code": 404}}'
WANTS_OTHER_NAME = b'{"error": {"message": "max_tokens is not supported. Use max_completion_tokens instead."}}'
QUOTA = b'{"error": {"message": "You exceeded your current quota.", "code": "insufficient_quota"}}'


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, b'{"error": {"message": "Incorrect API key provided: sk-canary1234"}}', "agent-key"),
        (403, b"{}", "agent-key"),
        (404, NO_MODEL, "agent-model"),
        (400, b'{"error": {"message": "invalid model ID", "code": "model_not_found"}}', "agent-model"),
        (404, b"<html>Not Found</html>", "agent-url"),
        (405, b"", "agent-url"),
        (301, b"", "agent-url"),
        (400, b'{"error": {"message": "temperature must be at most 2"}}', "agent-refuses"),
        (400, WANTS_OTHER_NAME, "agent-refuses"),
        (429, QUOTA, "agent-quota"),
        (402, b"{}", "agent-quota"),
        (429, b'{"error": {"message": "Rate limit reached"}}', "agent-throttled"),
        (502, b"Bad Gateway", "agent-failing"),
        (200, b"<html>Welcome</html>", "agent-reply"),
        (200, b'{"choices": [{"message": {"content": "ready"}}]}', "agent"),
    ],
)
def test_what_an_endpoint_may_reply(status: int, body: bytes, kind: str) -> None:
    finding = models.judge_completion(ASKED, status, body)
    assert finding.id == kind
    assert "canary" not in finding.what


def test_what_an_endpoint_may_say_of_its_models() -> None:
    listed = b'{"data": [{"id": "gpt"}]}'
    assert said([models.judge_models(ASKED, 200, listed)]) == [("agent", "ok")]
    assert said([models.judge_models(ASKED._replace(model="x"), 200, listed)]) == [("agent-model", "fail")]
    assert said([models.judge_models(ASKED, 404, b"")]) == [("agent", "skip")]
    assert said([models.judge_models(ASKED, 401, b"")]) == [("agent-key", "fail")]
    assert said([models.judge_models(ASKED, 200, b"[]")]) == [("agent-reply", "fail")]


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (Untrusted("self-signed certificate"), "agent-tls"),
        (Unreachable("refused"), "agent-unreachable"),
        (DeadlineExceeded("no whole reply"), "agent-silent"),
        (ConnectionFailed("cut short"), "agent-reply"),
    ],
)
def test_what_may_happen_instead_of_a_reply(failure: HttpFailure, kind: str) -> None:
    assert models.judge_failure(ASKED, failure).id == kind


def standing(name: str, total: int, free: int, waiting: str | None = None) -> TaskCapacity:
    return TaskCapacity(name=name, environment="db", total=total, free=free, waiting=waiting, digest="d")


def server(
    *offered: TaskCapacity,
    tasks: TaskServerError | None = None,
    version: str = VERSION,
    not_ready: str | None = None,
    workers: tuple[servers.WorkerFacts, ...] = (),
) -> servers.ServerFacts:
    alive = Health(role="controller", url="http://c", version=version)
    listed = tasks or TaskList(version="v", tasks=offered)
    return servers.ServerFacts("http://c", alive, not_ready, listed, workers)


def judged(facts: servers.ServerFacts, *tasks: str, relayed: bool = False) -> Said:
    return said(servers.server_findings(facts, token_env="T", has_token=True, tasks=tasks, relayed=relayed))


ALONE: Said = [("controller", "ok"), ("version", "ok")]


def test_tasks_as_a_controller_offers_them() -> None:
    offered = (
        standing("good", 4, 2),
        standing("gone", 0, 0, "no live worker holds it"),
        standing("broken", 4, 0, "EnvironmentFault: no engine"),
        standing("nothing", 0, 0),
        standing("full", 4, 0),
    )
    assert judged(server(*offered), "good", "gone", "unheard-of", "broken", "nothing", "full") == [
        *ALONE,
        ("task", "ok"),
        ("task-unknown", "fail"),
        ("task-unknown", "fail"),
        ("task-waiting", "fail"),
        ("task-no-capacity", "fail"),
        ("task-full", "warn"),
    ]


def test_workers_of_one_task_that_differ_are_named() -> None:
    differing = standing("db", 4, 0, "its workers differ in data or version, give all the same (e: w9; d: w1, w2)")
    facts = server(standing("db", 2, 2), standing("db", 2, 1), differing)
    assert judged(facts, "db") == [*ALONE, ("task-workers-differ", "fail")]
    findings = servers.server_findings(facts, token_env="T", has_token=True, tasks=["db"], relayed=False)
    assert "w9" in findings[-1].what


def test_controllers_that_cannot_be_used() -> None:
    assert judged(servers.ServerFacts("http://c", ServerUnreachable("refused"))) == [("controller-unreachable", "fail")]
    assert judged(servers.ServerFacts("http://c", BadReply("not an Alive"))) == [("controller-other", "fail")]
    untrusted = BadReply("self-signed")
    untrusted.__cause__ = Untrusted("self-signed")
    assert judged(servers.ServerFacts("http://c", untrusted)) == [("controller-tls", "fail")]
    assert judged(server(tasks=Unauthorized()))[0] == ("controller-token", "fail")
    assert judged(server(not_ready="just started"))[0] == ("controller-not-ready", "warn")


def test_versions_of_a_controller_and_its_workers() -> None:
    def worker(name: str, version: str, *, answers: bool) -> servers.WorkerFacts:
        return servers.WorkerFacts(
            WorkerStatus(worker=name, url=f"http://{name}", version=version, draining=False), answers
        )

    workers = (
        worker("w1", VERSION, answers=True),
        worker("w2", "0.0.1", answers=False),
        worker("w3", "unknown", answers=True),
    )
    assert judged(server(version="9.9", workers=workers)) == [
        ("controller", "ok"),
        ("version-differs", "fail"),
        ("worker", "ok"),
        ("version", "ok"),
        ("worker-relayed", "warn"),
        ("version-differs", "fail"),
        ("worker", "ok"),
        ("version-differs", "fail"),
    ]
    assert ("worker", "skip") in judged(server(workers=workers), relayed=True)


TASK = tasks.TaskFacts("db", 3, "d" * 32, None, False)


def test_data_that_are_read_here() -> None:
    assert said(tasks.data_findings(TASK, {"gpt": None})) == [("data", "ok"), ("comparable", "ok")]
    thin = tasks.TaskFacts("os", 3, "d", "own samples", True)
    assert said(tasks.data_findings(thin, {"gpt": None, "r": "reference"})) == [
        ("data", "ok"),
        ("not-comparable", "warn"),
        ("task-untrusted", "fail"),
    ]
    assert said(tasks.data_findings(thin, {"r": "reference"})) == [("data", "ok"), ("not-comparable", "warn")]
    ruled = tasks.TaskFacts("town", 3, "d", None, False, caution="its people are rules")
    *_, found = tasks.data_findings(ruled, {"gpt": None, "r": "reference"})
    assert said([found]) == [("task-simplified", "warn")]
    assert "town, played by gpt: its people are rules" in found.what
    assert said(tasks.data_findings(ruled, {"r": "reference"})) == [("data", "ok"), ("comparable", "ok")]
    assert said(tasks.data_findings(tasks.TaskFacts("x", 0, "d", None, False), {})) == [("task-empty", "fail")]
    assert tasks.digest_findings([TASK], {"db": "d" * 32, "os": "e"}) == []
    assert said(tasks.digest_findings([TASK], {"db": "e" * 32})) == [("data-differs", "fail")]


def test_a_policy_that_the_environment_of_a_task_does_not_have(tmp_path: Path) -> None:
    playing: dict[str, PolicyKind | None] = {"r": "reference", "weak": "naive", "gpt": None}
    with installed(tmp_path):
        facts = tasks.task_facts(TaskDefinition(name="toy", environment="toy-solved"), playing.values())
    *_, found = tasks.data_findings(facts, playing)
    assert said([found]) == [("policy-missing", "fail")]
    assert found.what == "task toy: its environment has no naive policy, needed by agent weak"


def test_a_run_that_is_to_be_resumed() -> None:
    plan = Plan.model_validate(
        {"agents": [{"name": "naive", "builtin": "naive"}], "tasks": [{"name": "db", "environment": "db"}]}
    )
    manifest = Manifest(
        version="0",
        plan_path="p",
        plan={},
        identity=plan.identity(),
        tasks={"db": TaskRecord(environment="db", digest="d", samples=3)},
    )
    assert said(resumed.run_findings("r", manifest, plan, {"db": "d"})) == [("run", "ok")]
    changed = plan.model_copy(update={"epochs": 2})
    assert said(resumed.run_findings("r", manifest, changed, {"db": "e"})) == [
        ("run-plan-changed", "fail"),
        ("run-data-changed", "fail"),
    ]
    assert resumed.unreadable(StoreError("another version")).id == "run-unreadable"


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

    checks = [Check("a", crash()), Check("b", hang()), Check("c", wait()), Check("d", well())]
    found = [each async for each in findings(checks, limit_s)]
    held.set()
    assert said(found) == [("check-failed", "fail"), ("check-late", "fail"), ("check-late", "fail"), ("plan", "ok")]
    assert found[0].status is Status.FAIL
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
    leaving: set[asyncio.Task[None]] = set()
    (finding,) = await tasks.entered(TaskDefinition(name="t", environment="letters"), slowly(60), leaving)
    await asyncio.gather(*leaving)
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
    found = await tasks.entered(definition, slowly(60), set(), by_calls=True)
    assert said(found) == [("environment", "ok"), ("agent-tools", "ok")]
    assert f"task t: a model that calls no function {comes_to}" in found[1].what
    assert said(await tasks.entered(definition, slowly(60), set())) == [("environment", "ok")]


async def test_an_environment_that_comes_up_late_is_still_left_as_it_should(monkeypatch: pytest.MonkeyPatch) -> None:
    come, left = asyncio.Event(), []

    @asynccontextmanager
    async def lifespan(self: Letters) -> AsyncIterator[None]:
        await come.wait()
        yield
        left.append(self)

    monkeypatch.setattr(Letters, "lifespan", lifespan)
    monkeypatch.setattr("proctor.registry.load", lambda name: Letters)
    leaving: set[asyncio.Task[None]] = set()
    (finding,) = await tasks.entered(TaskDefinition(name="t", environment="letters"), 0.01, leaving)
    assert said([finding]) == [("environment-late", "warn")]
    come.set()
    await asyncio.gather(*leaving)
    assert len(left) == 1
