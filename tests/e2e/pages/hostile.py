"""A folder with a run in which every text tries to be something else than text."""

import functools
import json
from pathlib import Path

import sqlalchemy as sa

from eval_client.store.connection import connect, sqlite_url
from eval_client.store.records import Manifest, TaskRecord, Trial
from eval_client.store.store import Store
from eval_client.store.tables import (
    attempt_table,
    reply_table,
    run_table,
    shard_table,
    trial_table,
    turn_table,
)
from proctor.types import Finish, FinishReason, Message, Observation, Summary, Tool, ToolCall

MARK = "<script>alert(1)</script>"
"""Part of every hostile text: to be read as it stands here on each page that shows one."""
PIECES = (
    MARK,
    "</script></textarea></svg></title></style></pre></select></template>-->]]>",
    "<img src=//evil.example/i.png onerror=alert(2)><svg onload=alert(3)><iframe src=https://evil.example/></iframe>",
    "<meta http-equiv=refresh content='0;url=https://evil.example/'><base href=https://evil.example/>",
    '<a href="javascript:alert(4)">x</a>" autofocus onfocus=alert(5) style="color:red" x="',
    "' onmouseover='alert(6)' javascript:alert(7)//https://evil.example/ ![x](https://evil.example/)",
    "{{7*7}}{%raw%}${7*7} \x1b[31m\x1b]0;title\x07\u202eevil\u202c\u2066\x9b",
    "\x1b]8;;https:evil.example\x07x\x1b]8;;\x1b\\ \x9d52;c;eA==\x9c \x1bP$q\x1b\\ \r\b\x7f\u061c",
    "[link=x]y[no such style]",
)
TEXT = " ".join(PIECES)
NUL = "\0"
SURROGATE = "\ud800"
"""What no column but those of JSON holds."""
LONG = " and so on" * 6_000
MEGABYTES = "5 MB of it " * 500_000
RUN = "<img src=x onerror=alert(8)>\"'{{7*7}}\u202e javascript:alert(9)"
"""The name of a folder: no slash, no NUL."""
TYPED = f"{MARK}\"' onerror=alert(1)\x1b[31m\u202e{{{{7*7}}}}"
"""What a filter takes: at most 255 characters."""
LATER = "later"
"""A second run, whose own names are harmless: so that the list has a run to go on with."""
FINE = "fine"
"""The task and agent that the plan names; those of the rows are hostile."""


def named(column: str) -> str:
    """A hostile text for a column."""
    return f"[{column}] {TEXT}"


AGENT, TASK, SAMPLE = named("agent"), named("task"), named("sample")


def hostile_folder(folder: Path) -> None:
    """Makes both runs in a folder."""
    for run in (LATER, RUN):
        (folder / run).mkdir()
        store = Store(connect(sqlite_url(folder / run)), run)
        fill(store)
        store.engine.dispose()


def fill(store: Store) -> None:
    """Writes a run's rows: two trials, one scored with three turns, one a fault."""
    trials = [
        Trial(id=n, agent=AGENT, task=TASK, sample=SAMPLE, epoch=n, cluster=named("cluster"), attempts=1)
        for n in range(2)
    ]
    plan = {"agents": [{"name": FINE, "builtin": "naive"}], "tasks": [{"name": FINE, "environment": "ltp"}]}
    record = TaskRecord(environment=named("environment"), digest="d", samples=2, comparable=named("comparable"))
    manifest = Manifest(
        version=named("version"),
        plan_path=named("plan_path"),
        plan=plan,
        overrides=(named("overrides"),),
        identity={},
        tasks={TASK: record, FINE: record},
    )
    store.create(manifest, trials)
    mine = {"run": store.run}
    with store.engine.begin() as connection:
        connection.execute(
            run_table.update().values(state=named("state"), levels=json.dumps({TEXT: 1}), notes=f"{TEXT}\n")
        )
        shard = {"shard": 1, "state": named("shard.state"), "beats": 0, "standing": json.dumps({TEXT: TEXT})}
        connection.execute(shard_table.insert(), {**mine, **shard})
        for trial, finish in enumerate((_finish(), _fault())):
            _end(connection, trial, finish)
        connection.execute(attempt_table.insert(), [{**mine, **_attempt(n)} for n in range(2)])
        connection.execute(turn_table.insert(), [{**mine, **_turn(n)} for n in range(1, 4)])
        connection.execute(reply_table.insert(), {**mine, **_reply()})
    store.write_summary(AGENT, TASK, 1, Summary(primary=named("primary"), metrics={named("primary"): 0.5}))


def _end(connection: sa.Connection, trial: int, finish: dict[str, object]) -> None:
    values = {
        "reason": finish["reason"],
        "score": finish["score"],
        "cause": named("cause") + NUL + LONG,
        "finish": json.dumps(finish),
        "turns": 3,
        "prompt_tokens": 7,
        "completion_tokens": 7,
        "seconds": 1.0,
        "ended_at": named("trial.ended_at"),
    }
    connection.execute(trial_table.update().where(trial_table.c.id == trial).values(values))


def _finish() -> dict[str, object]:
    made = Finish(reason=FinishReason.COMPLETED, score=0.5, metrics={named("metric"): 0.5})
    return {**made.model_dump(mode="json"), "detail": {named("detail"): TEXT + NUL + SURROGATE}}


@functools.cache
def _fault() -> dict[str, object]:
    return Finish.fault(FinishReason.TASK_ERROR, named("fault") + NUL + MEGABYTES).model_dump(mode="json")


def _attempt(number: int) -> dict[str, object]:
    outcome = named("outcome") if number == 0 else "finished"
    names = ("cause", "worker", "started_at", "digest", "version", "ended_at")
    return {
        **{name: named(f"attempt.{name}") + NUL for name in names},
        "trial": 0,
        "number": number,
        "journal": 0,
        "session": named("session"),
        "outcome": outcome,
    }


def _turn(number: int) -> dict[str, object]:
    """A turn of the first trial: a call of a function, an answer, and a message of 5 MB."""
    call = ToolCall(id=named("call.id"), name=named("call.name"), arguments='{"a": ' + named("arguments"))
    content = named("observation") + (MEGABYTES if number == 3 else "")
    messages = [Message(role="system", content=named("system")), Message(role="user", content=content)]
    if number == 2:
        messages = [Message(role="tool", content=named("result"), tool_call_id=call.id)]
    observation = Observation(
        messages=tuple(messages),
        tools=(Tool(name=named("tool"), description=named("description")),),
        conversation=named("conversation"),
    ).model_dump(mode="json")
    observation["messages"][-1]["content"] += NUL + SURROGATE
    calls = [call.model_dump(mode="json")] if number == 1 else []
    action = {"content": named("answer") + NUL + SURROGATE, "tool_calls": calls, "reasoning": named("reasoning")}
    return {
        "trial": 0,
        "journal": 0,
        "turn": number,
        "digest": named("digest"),
        "observation": json.dumps(observation),
        "reply": json.dumps({"kind": "action", "action": action}),
        "prompt_tokens": 7,
        "completion_tokens": 7,
        "model_seconds": 0.5,
        "tries": 2,
        "stop": named("stop"),
        "model": named("model"),
        "ended_at": named("turn.ended_at"),
    }


def _reply() -> dict[str, object]:
    names = {name: named(f"reply.{name}") for name in ("key", "model")}
    counts = {"prompt_tokens": 1, "completion_tokens": 1, "tries": 1, "bought": True, "usable": True}
    return {**names, **counts, "trial": 0, "number": 0, "text": json.dumps(TEXT + NUL + SURROGATE)}
