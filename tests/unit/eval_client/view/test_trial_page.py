"""The page of one trial: conversations, histories sent anew, broken calls, stops and cuts; attempts and journals."""

import html
import re
from pathlib import Path

import httpx
import pytest

from eval_client.store.connection import connect, sqlite_url
from eval_client.store.journal import Cost, Journal
from eval_client.store.records import DIVERGED, Manifest, Trial, Turn
from eval_client.store.store import Store
from eval_client.store.tables import attempt_table
from eval_client.view.access import ViewAccess
from eval_client.view.app import build_app
from eval_client.view.runs import FolderRuns
from proctor.observability.redaction import visible
from proctor.types import Action, Finish, FinishReason, Message, Observation, Tool, ToolCall, Usage
from task_server.wire.messages import Act, Stop
from tests.unit.eval_client.view.conftest import ORIGIN, PLAN

BROKEN = ToolCall(id="c1", name="find", arguments='{"what": [1, ')
TOOLS = (Tool(name="find", description="Finds."), Tool(name="leave"))
CAUSE = "connection refused by worker-2"
LOST, SPLIT = 0, 1


def user(text: str) -> Message:
    return Message(role="user", content=text)


TURNS: tuple[tuple[Observation, Act | Stop, str | None], ...] = (
    (
        Observation(messages=(user("guess rules"), user("guess now")), tools=TOOLS, conversation="guess"),
        Act(action=Action(content="", tool_calls=(BROKEN,))),
        "tool_calls",
    ),
    (Observation(messages=(user("act rules"),), conversation="act"), Act(action=Action(content="first act")), "stop"),
    (
        Observation(
            messages=(Message(role="tool", content="found none", tool_call_id="c1"),), tools=TOOLS, conversation="guess"
        ),
        Act(action=Action(content="it is a")),
        "length",
    ),
    (
        Observation(messages=(user("act rules"), user("try again")), conversation="act", fresh=True),
        Act(action=Action(content="second act")),
        "stop",
    ),
    (
        Observation(messages=(user("guess more"),), tools=TOOLS, conversation="guess"),
        Stop(reason=FinishReason.CONTEXT_LIMIT),
        None,
    ),
)


@pytest.fixture
async def viewer(tmp_path: Path) -> httpx.AsyncClient:
    """A viewer of a run: trial 0 lost an attempt, trial 1 diverged and has two journals."""
    (tmp_path / "first").mkdir()
    store = Store(connect(sqlite_url(tmp_path / "first")), "first")
    trials = [Trial(id=n, agent="gpt", task="riddles", sample="s", epoch=n) for n in (LOST, SPLIT)]
    store.create(Manifest(version="1", plan_path="p", plan=PLAN, identity={}), trials)
    journal = Journal(store, store.take_over())
    for trial, outcome, cause in ((trials[0], "lost", CAUSE), (trials[1], DIVERGED, "another observation in turn 2")):
        await journal.begin(trial, 1, 0, "0" * 32)
        await journal.turn(trial, 0, _turn(1, *TURNS[0]))
        await journal.end(trial, 1, outcome, cause, "worker-2")
        newest = int(outcome == DIVERGED)
        await journal.begin(trial, 2, newest, "1" * 32)
        for number, each in enumerate(TURNS, 1):
            if newest or number > 1:
                await journal.turn(trial, newest, _turn(number, *each))
        finish = Finish(reason=FinishReason.CONTEXT_LIMIT, score=0.25, metrics={"found": 3.0, "rate": 0.125})
        finish = finish.model_copy(update={"detail": {"match": {"expected": 42, "said": "43"}, "steps": ["<a>", 1.5]}})
        await journal.finish(trial, 2, "worker-1", finish, Cost(5, Usage(10, 5), 1.0))
    await journal.close()
    with store.engine.begin() as connection:
        times = {"started_at": "2026-11-20T10:21:03+00:00", "ended_at": "2026-11-20T10:21:58+00:00"}
        connection.execute(attempt_table.update().where(attempt_table.c.number == 1).values(**times))
    store.engine.dispose()
    transport = httpx.ASGITransport(build_app(FolderRuns(tmp_path), ViewAccess()))
    return httpx.AsyncClient(transport=transport, base_url=ORIGIN)


def _turn(number: int, observation: Observation, reply: Act | Stop, stop: str | None) -> Turn:
    stored = observation.model_dump_json()
    return Turn(turn=number, digest=observation.digest(), observation=stored, reply=reply, stop=stop)


async def opened(viewer: httpx.AsyncClient, trial: int, query: str = "") -> str:
    """A trial's page."""
    answer = await viewer.get(f"/runs/first/trials/{trial}{query}")
    assert answer.status_code == 200, answer.text
    return answer.text


def words(page: str) -> str:
    """A page without tags, its blanks made one."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def section(page: str, turn: int) -> str:
    return words(page.partition(f'id="turn-{turn}"')[2].partition("</section>")[0])


async def test_11_each_turn_is_shown_as_what_it_is(viewer: httpx.AsyncClient) -> None:
    page = await opened(viewer, SPLIT)
    first, second, third, fourth, fifth = (section(page, number) for number in range(1, 6))
    assert "conversation guess" in first
    assert "functions: find, leave" in first
    assert 'call find c1 {"what": [1,' in first
    assert "conversation act" in second
    assert ("earlier" in second, "guess rules" in second) == (False, False), "the other conversation is not in it"
    assert "tool answers c1 found none" in third
    assert "3 earlier messages" in third
    assert "The endpoint cut this answer at max_tokens." in third
    assert page.count("cut this answer") == 1
    assert "history anew" in fourth
    assert ("1 earlier messages" in fourth, "try again" in fourth) == (True, True)
    assert "The agent stopped: context_limit" in fifth
    assert "5 earlier messages" in fifth
    unfolded = section(await opened(viewer, SPLIT, "?earlier=5"), 5)
    order = ["guess rules", "guess now", '{"what": [1,', "found none", "it is a", "guess more"]
    assert [unfolded.index(text) for text in order] == sorted(unfolded.index(text) for text in order)
    assert "act" not in unfolded.replace("character", "")


async def test_12_all_attempts_stand_with_cause_worker_and_times(viewer: httpx.AsyncClient) -> None:
    lost = words(await opened(viewer, LOST))
    assert f"lost on worker-2, begun 2026-11-20 10:21:03, ended 2026-11-20 10:21:58: {CAUSE}" in lost
    assert "finished on worker-1, begun 20" in lost
    told = (await viewer.get(f"/api/v1/runs/first/trials/{LOST}")).json()
    assert [(each["outcome"], each["cause"], each["worker"]) for each in told["attempts"]] == [
        ("lost", CAUSE, "worker-2"),
        ("finished", None, "worker-1"),
    ]
    assert told["attempts"][0]["ended_at"] == "2026-11-20T10:21:58+00:00"
    assert told["journals"] == [0]


async def test_12_the_turns_of_an_older_journal_are_a_link_away(viewer: httpx.AsyncClient) -> None:
    page = await opened(viewer, SPLIT)
    assert "diverged on worker-2" in words(page)
    assert "another observation in turn 2" in words(page)
    assert page.count('class="turn"') == 5
    older = re.search(r'href="/runs/first/trials/1\?(journal=0)"', page)
    assert older is not None
    before = await opened(viewer, SPLIT, f"?{older[1]}")
    assert before.count('class="turn"') == 1
    assert "journal=1" in before
    told = (await viewer.get(f"/api/v1/runs/first/trials/{SPLIT}?journal=0")).json()
    assert (told["journal"], told["journals"], len(told["turns"]["items"])) == (0, [0, 1], 1)


async def test_13_score_parts_and_evidence_show_all_of_a_finish(viewer: httpx.AsyncClient) -> None:
    page = await opened(viewer, LOST)
    parts = dict(re.findall(r'<div class="part"><dt>(\w+)</dt><dd><data value="([^"]+)">', page))
    assert parts == {"found": "3.0", "rate": "0.125"}
    evidence = html.unescape(page.partition('class="evidence"')[2].partition("</details>")[0])
    assert all(text in evidence for text in ('"expected": 42', '"said": "43"', '"<a>"', "1.5"))


@pytest.mark.parametrize(
    "text",
    [
        "````\n```text\n~~~\n# no heading\n---\n</pre></div>",
        "    indented\n\ttab\n\n\nend\n\n",
        "*a* _b_ `c` [d](javascript:e) ![f](/g) <h> &lt; &#60; \\* 1. - + > | ~~i~~",
        "<script>alert(1)</script>",
        "a  \nb\r\nc\x00\u2028\ufeff",
        "***",
        "**",
    ],
)
async def test_nothing_in_a_text_or_a_name_is_read_as_markdown(tmp_path: Path, text: str) -> None:
    """Of a message, an answer, a function that is called, and a sample; each text is shown as it is."""
    (tmp_path / "first").mkdir()
    store = Store(connect(sqlite_url(tmp_path / "first")), "first")
    trial = Trial(id=0, agent="gpt", task="riddles", sample=text.replace("\0", ""), epoch=0)
    store.create(Manifest(version="1", plan_path="p", plan=PLAN, identity={}), [trial])
    journal = Journal(store, store.take_over())
    await journal.begin(trial, 1, 0, "0" * 32)
    called = ToolCall(id=text, name=text, arguments=text)
    await journal.turn(
        trial,
        0,
        _turn(1, Observation(messages=(user(text),)), Act(action=Action(content=text, tool_calls=(called,))), "stop"),
    )
    await journal.end(trial, 1, "lost", text, "worker-2")
    await journal.close()
    store.engine.dispose()
    transport = httpx.ASGITransport(build_app(FolderRuns(tmp_path), ViewAccess()))
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as viewer:
        page = await opened(viewer, 0)
        told = (await viewer.get("/api/v1/runs/first/trials/0")).json()
    assert len(told["turns"]["items"]) == 1
    said = [html.unescape(each) for each in re.findall(r'<pre class="words">(.*?)</pre>', page, re.DOTALL)]
    assert said[:3] == [visible(text)] * 3
    one_line = " ".join(visible(text).split())
    attempt = words(page.partition('class="attempts"')[2].partition("</ul>")[0])
    assert attempt.endswith(f": {one_line}")
    assert f"call {one_line} {one_line}" in section(page, 1)
    main = page.partition("<main")[2].partition("</main>")[0]
    assert not re.search(
        r"<(script|em|code|img|h\d|h)>|javascript:[^e]|href=.javascript",
        main.replace("<h1>", "").replace("<h2>", "").replace("<h3>", "").replace("<h4>", ""),
    )
