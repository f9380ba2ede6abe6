"""Secrets and the viewer: which token opens what, and that none of them is ever shown."""

import json
import secrets
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
import sqlalchemy as sa

from eval_client.store.tables import trial_table
from tests.database_servers import postgresql
from tests.e2e.pages.addresses import ERRORS, FILES, PAGES, QUIET, TEXTS, Named
from tests.e2e.pages.conftest import viewer
from tests.e2e.proctor import TOKEN, begin, exits, server
from tests.e2e.scripted import GOOD, ScriptedEndpoint, reply
from tests.e2e.servers.test_security import forms
from tests.pace import slowly

VIEW_TOKEN = "a-long-random-token-of-the-viewer"
TASKS = "tasks: [{name: db-own, environment: db, parameters: {engine: sqlite}}]\n"
PLAN = """
name: canaries
endpoints: [{name: echo, base_url: ENDPOINT, api_key_env: ECHO_KEY, max_tries: 6}]
agents: [{name: echo, endpoint: echo}]
tasks: [{name: db-own, environment: db, parameters: {engine: sqlite}}]
limits: {patience_s: PATIENCE_S, attempts: 2, trial: {turns: 4}}
""".replace("PATIENCE_S", f"{slowly(10):g}")
ADDRESSES = (*PAGES, *QUIET, *ERRORS, *TEXTS, *FILES)


def status(address: str, token: str) -> int:
    return httpx.get(address, headers={"Authorization": f"Bearer {token}"}, timeout=slowly(30)).status_code


def test_the_viewers_token_opens_the_viewer_alone_and_only_the_clients_opens_it_too(tmp_path: Path) -> None:
    others = {"PROCTOR_WORKER_TOKEN": "token-of-the-workers", "PROCTOR_METRICS_TOKEN": "token-of-the-metrics"}
    variables = {**others, "PROCTOR_VIEW_TOKEN": VIEW_TOKEN}
    (tmp_path / "tasks.yaml").write_text(TASKS)
    with viewer(tmp_path, **variables) as address:
        opened = {token: status(f"{address}/", token) for token in (VIEW_TOKEN, TOKEN, *others.values())}
    assert opened == {VIEW_TOKEN: 200, TOKEN: 200, **dict.fromkeys(others.values(), 401)}
    for role in ("controller", "worker", "agents"):
        arguments = () if role == "controller" else ("--tasks", "tasks.yaml")
        with server(role, *arguments, "--port", "0", cwd=tmp_path, **variables) as running:
            base = running.url.removesuffix("/v1")
            for path in ("tasks", "workers", "sessions/1", "metrics", "v1/models", "nothing"):
                assert status(f"{base}/{path}", VIEW_TOKEN) == 401, (role, path)
            assert status(f"{base}/metrics", TOKEN) == 200


@pytest.mark.postgresql
def test_no_page_answer_report_or_log_holds_a_secret(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    names = ("key", "password", "view", "client")
    canaries = {name: f"canary-{name}-{secrets.token_hex(8)}" for name in names}
    key = canaries["key"].encode()
    endpoint.bad = [reply(500, key), reply(429, b"\x1b[31m" + key), reply(200, key)]
    endpoint.bad += [reply(200, GOOD.replace(b"Thinking.", b"My key is " + key + b"."))]
    (tmp_path / "plan.yaml").write_text(PLAN.replace("ENDPOINT", endpoint.url))
    seen: dict[str, str] = {}
    with postgresql() as database:
        store = database.url.replace("proctor@", f"proctor:{canaries['password']}@", 1)
        variables = {"ECHO_KEY": canaries["key"], "PROCTOR_STORE": store, "PROCTOR_TOKEN": canaries["client"]}
        variables |= {"PROCTOR_VIEW_TOKEN": canaries["view"], "PROCTOR_LOG_LEVEL": "debug"}
        done = exits(
            0,
            "run",
            "plan.yaml",
            "--name",
            "played",
            "--limit",
            "1",
            "--set",
            "epochs=2",
            "-q",
            cwd=tmp_path,
            **variables,
        )
        wanted = ("report", "played", "--html", "report.html", "--samples", "--trials", "0,1")
        made = exits(0, *wanted, cwd=tmp_path, **variables)
        seen |= {"run": done.stdout + done.stderr, "report": made.stdout + made.stderr}
        seen["report.html"] = (tmp_path / "report.html").read_text(encoding="utf-8")
        process = begin("view", "--port", "0", cwd=tmp_path, **variables)
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        fine = ask(address, canaries, seen, "")
        spoil(store, canaries["view"] * 5)
        ask(address, canaries, seen, " with a value that can't be read")
    broken = ask(address, canaries, seen, " without its store")
    process.terminate()
    seen["log"] = "".join(process.communicate(timeout=slowly(30)))
    assert process.returncode == 0
    assert fine == {200, 303, 307, 400, 401, 403, 404}
    assert 503 in broken
    assert "My key is" not in seen["/runs/{run}/trials/0"] + seen["/runs/{run}/trials/1"]
    assert "proctor_trial.finish" in seen["/runs/{run}/trials/0 with a value that can't be read"]
    found = [
        (name, where, text[max(0, text.index(form) - 80) : text.index(form)])
        for name, secret in canaries.items()
        for form in forms(secret)
        for where, text in seen.items()
        if form in text
    ]
    assert found == []


def spoil(store: str, text: str) -> None:
    """Make the finishes of all trials invalid, with a text in them."""
    engine = sa.create_engine(store)
    with engine.begin() as connection:
        connection.execute(trial_table.update().values(finish=json.dumps({"reason": text})))
    engine.dispose()


def ask(address: str, canaries: dict[str, str], seen: dict[str, str], when: str) -> set[int]:
    """Every address with the token and without, and logins with right and wrong ones; the statuses of all."""
    names = Named("played", "db-own", "insert-00000")
    met = set()
    with httpx.Client(base_url=address, timeout=slowly(60)) as http:
        for each in ADDRESSES:
            bearer = {"Authorization": f"Bearer {canaries['view']}"}
            for where, headers in ((each, bearer), (f"{each} refused", {"Authorization": f"Bearer {canaries['key']}"})):
                answer = http.get(names.fill(each), headers=headers)
                seen[where + when] = f"{answer.headers} {answer.text}"
                met.add(answer.status_code)
        for name, token in canaries.items():
            sent = http.post("/login", data={"token": token, "next": f"/?{quote('canary')}"})
            seen[f"login {name}{when}"] = f"{sent.headers} {sent.text}"
            met.add(sent.status_code)
    return met
