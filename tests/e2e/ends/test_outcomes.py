"""What a call comes to, end to end: reasons, journal, report, exit code, resume, retry and exports, in two stores."""

import json
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.proctor import Server, exits, proctor, rows
from tests.e2e.scripted import ANSWER, GOOD, ScriptedEndpoint, reply, write_plan


def failure(status: int, message: str, **more: object) -> bytes:
    return reply(status, json.dumps({"error": {"message": message, "code": status, **more}}).encode())


def completion(**of_choice: object) -> bytes:
    body = json.loads(GOOD)
    body["choices"][0] |= of_choice
    return reply(200, json.dumps(body).encode())


FLAGGED = failure(403, "m requires moderation and your input was flagged", metadata={"reasons": ["violence"]})
FILTERED = completion(finish_reason="content_filter")
DECLINED = completion(message={"role": "assistant", "content": None, "refusal": "I can't help with that."})
BLOCKED = failure(400, "The response was filtered", code="content_filter")
TOO_LONG = failure(400, "This model's maximum context length is 4096 tokens.", code="context_length_exceeded")
INVALID = failure(400, "messages.0: something about it is odd")
NO_COMPLETION = completion(finish_reason="error")
BY_SAMPLE = [FLAGGED, FILTERED, DECLINED, BLOCKED, TOO_LONG, INVALID, NO_COMPLETION]
"""What the first samples of the task get for every request; the others get answers."""


def by_sample(replies: list[bytes]) -> Callable[[dict[str, Any]], bytes | None]:
    """A rule that gives each question, in the order in which they come first, a reply of its own."""
    places: dict[str, int] = {}

    def rule(request: dict[str, Any]) -> bytes | None:
        if request.get("max_tokens") == 1:
            return None  # the endpoint itself is well
        question = json.dumps(request["messages"][-1])
        place = places.setdefault(question, len(places))
        return replies[place] if place < len(replies) else None

    return rule


def plan(folder: Path, worker: Server, endpoint: ScriptedEndpoint, refusals: str = "scored") -> None:
    write_plan(folder, worker, endpoint.url, f"refusals: {refusals}", max_tries=2)


def reasons(folder: Path) -> Counter[object]:
    return Counter(row["reason"] for row in rows(folder.name, folder))


def validity(folder: Path) -> dict[str, Any]:
    (pair,) = json.loads(proctor("report", folder.name, "--format", "json", cwd=folder).stdout)["pairs"]
    return dict(pair)


@pytest.fixture(params=["sqlite", "postgresql"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose runs are kept in one of the stores."""
    if request.param == "postgresql":
        monkeypatch.setenv("PROCTOR_STORE", request.getfixturevalue("postgresql_url"))
    return tmp_path


def test_each_outcome_of_a_call_is_its_trials_alone_and_a_resume_asks_for_faults_only(
    folder: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.rule = by_sample(BY_SAMPLE)
    plan(folder, worker, endpoint)
    ended = exits(1, "run", "plan.yaml", "--name", folder.name, cwd=folder)
    assert reasons(folder) == {"completed": 13, "refused": 4, "context_limit": 1, "agent_error": 2}
    kept = rows(folder.name, folder)
    assert [row["score"] for row in kept if row["reason"] == "refused"] == [0.0] * 4
    pair = validity(folder)
    assert (pair["scored"], pair["validity"]["refused"], sum(pair["faults"].values())) == (18, 4 / 18, 2)
    assert "refused" in ended.stdout

    endpoint.rule, asked = (lambda _request: None), len(endpoint.requests)
    exits(0, "resume", folder.name, cwd=folder)
    assert len(endpoint.requests) == asked + 2
    assert reasons(folder) == {"completed": 15, "refused": 4, "context_limit": 1}

    exits(0, "resume", folder.name, "--retry", "cause=flagged", cwd=folder)
    assert reasons(folder) == {"completed": 16, "refused": 3, "context_limit": 1}


def test_a_refusal_keeps_the_last_text_of_the_model_and_who_declined(
    tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.always = FILTERED
    plan(tmp_path, worker, endpoint)
    exits(0, "run", "plan.yaml", "--name", tmp_path.name, "--limit", "1", cwd=tmp_path)
    shown = proctor("show", tmp_path.name, "0", cwd=tmp_path).stdout
    assert "refused" in shown
    assert ANSWER.splitlines()[0] in shown
    (row,) = rows(tmp_path.name, tmp_path)
    assert "content_filter" in str(row["cause"])
    tokens = validity(tmp_path)
    assert (tokens["prompt_tokens"], tokens["completion_tokens"]) == (100, 10), "a declined input is paid for"
    exits(0, "export", tmp_path.name, "--as", "inspect", "--to", "log", cwd=tmp_path)
    (log,) = (tmp_path / "log").iterdir()
    with zipfile.ZipFile(log) as parts:
        (sample,) = (json.loads(parts.read(name)) for name in parts.namelist() if name.startswith("samples/"))
    assert sample["output"]["choices"][-1]["stop_reason"] == "content_filter"


def test_refusals_that_the_plan_does_not_score_are_no_faults_and_are_never_asked_again(
    folder: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.rule = by_sample([FLAGGED, FILTERED])
    plan(folder, worker, endpoint, "unscored")
    exits(0, "run", "plan.yaml", "--name", folder.name, cwd=folder)
    assert reasons(folder) == {"completed": 18, "refused": 2}
    pair = validity(folder)
    assert (pair["scored"], pair["faults"]) == (18, {})
    asked = len(endpoint.requests)
    exits(0, "resume", folder.name, cwd=folder)
    assert len(endpoint.requests) == asked


@pytest.mark.parametrize(
    "gone",
    [
        failure(402, "Insufficient credits"),
        failure(429, "You exceeded your current quota", type="insufficient_quota", code="insufficient_quota"),
    ],
)
def test_credits_that_are_gone_stop_the_agent_and_use_no_attempt(
    gone: bytes, folder: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.bad = [*[reply(200, GOOD)] * 5, *[gone] * 15]
    plan(folder, worker, endpoint)
    ended = exits(2, "run", "plan.yaml", "--name", folder.name, "--set", "agents.model.concurrency=1", cwd=folder)
    told = " ".join(ended.stderr.split())
    assert "agent model stopped, its trials of db-own stay pending: " in told
    assert "the account has no credits left" in told
    assert reasons(folder) == {"completed": 5, None: 15}
    assert len(endpoint.requests) == 5 + 1
    endpoint.bad = []
    exits(0, "resume", folder.name, cwd=folder)
    assert reasons(folder) == {"completed": 20}
