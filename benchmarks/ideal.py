"""What a turn costs in a client and a worker of Proctor's libraries that do nothing else, and in Proctor beside them.

One kind of session, no features; each turn's row is committed before its action is sent. The floor, the ideal and
Proctor, over HTTP and with the task in the client's process, take turns: medians over these rounds.
"""

import asyncio
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator

import uvicorn
from fastapi import FastAPI, Request, Response
from pydantic import BaseModel

from benchmarks import floor, overhead
from benchmarks.echo import QUESTION
from benchmarks.measure import Figure, cpu_s, main, spread
from benchmarks.world import Process, World, process, world
from proctor import event_loop
from proctor.http.server import when_stdin_ends
from proctor.http.wreq_client import total_timeout, wreq_client

TURNS, IN_FLIGHT = overhead.BUDGETED.turns, overhead.BUDGETED.in_flight
TASKS = {overhead.BUDGETED.task(): {"turns": TURNS}}
KINDS = ("ideal", "over HTTP", "in process")
BUDGETS = {"ideal beside the floor": 2.3, "over HTTP beside the ideal": 1.6, "in process beside the ideal": 1.3}
PROGRAM = [sys.executable, "-m", "benchmarks.ideal"]
WORKER = [*PROGRAM, "worker"]
COLUMNS = "(session, number, said, tokens, PRIMARY KEY (session, number))"
KNOWN = "SELECT count(*) FROM turn WHERE session = ? AND number = ?"
Rows = asyncio.Queue[tuple[tuple[object, ...], asyncio.Future[None]]]


class Message(BaseModel):
    """One of a conversation."""

    role: str
    content: str


class Choice(BaseModel):
    """One answer of the model."""

    message: Message


class Completion(BaseModel):
    """The endpoint's reply."""

    choices: tuple[Choice, ...]
    usage: dict[str, int]


class Step(BaseModel):
    """The worker's reply: what is new in a session, or its score."""

    session: str
    turn: int
    messages: tuple[Message, ...] = ()
    score: float | None = None


async def serve() -> None:
    """The worker: its sessions ask one question TURNS times."""
    turns, news = dict[str, int](), (Message(role="user", content=QUESTION),)

    async def start(_: Request) -> Response:
        turns[session := f"s{len(turns)}"] = 1
        return Response(Step(session=session, turn=1, messages=news).model_dump_json())

    async def turn(request: Request) -> Response:
        session, _ = request.path_params["session"], Message.model_validate_json(await request.body())
        number = turns[session] = turns[session] + 1
        new, score = (news, None) if number <= TURNS else ((), 1.0)
        return Response(Step(session=session, turn=number, messages=new, score=score).model_dump_json())

    app = FastAPI()
    app.add_route("/sessions/{session}/turns", turn, ["POST"])
    app.add_route("/sessions", start, ["POST"])
    config = uvicorn.Config(app, http="httptools", ws="none", lifespan="off", log_config=None, access_log=False)
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        when_stdin_ends(lambda _: os._exit(0))
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        await uvicorn.Server(config).serve(sockets=[listener])


async def commit_all(database: sqlite3.Connection, rows: Rows) -> None:
    """Commit, in a thread, the rows that came while the last commit was under way."""

    def commit(group: list[tuple[object, ...]]) -> None:
        with database:
            database.executemany("INSERT INTO turn VALUES (?, ?, ?, ?)", group)

    while True:
        group = [await rows.get(), *(rows.get_nowait() for _ in range(rows.qsize()))]
        await asyncio.to_thread(commit, [row for row, _ in group])
        for _, durable in group:
            durable.set_result(None)


async def play(endpoint: str, worker: str, trials: str, file: str, look: str) -> None:
    """Play the sessions; print the CPU. `look`: another connection must see each row before its action is sent."""
    first, second = (sqlite3.connect(file, check_same_thread=False) for _ in range(2))
    first.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE turn {COLUMNS}")
    client, rows, left, limit = wreq_client({}, {}, False, None), Rows(), iter(range(int(trials))), total_timeout(60)

    async def ask(url: str, body: str) -> bytes:
        reply = await client.post(url, headers={"content-type": "application/json"}, body=body, timeout=limit)
        return bytes(await reply.bytes())

    async def write(*row: object) -> None:
        rows.put_nowait((row, durable := asyncio.get_running_loop().create_future()))
        await durable

    async def sessions() -> None:
        for _ in left:
            step, said = Step.model_validate_json(await ask(f"{worker}/sessions", "{}")), list[str]()
            while step.score is None:
                said += [message.model_dump_json() for message in step.messages]
                asked = f'{{"model":"echo","messages":[{",".join(said)}]}}'
                answer = Completion.model_validate_json(await ask(f"{endpoint}/0/v1/chat/completions", asked))
                said.append(action := answer.choices[0].message.model_dump_json())
                await write(step.session, step.turn, action, answer.usage["total_tokens"])
                assert not look or second.execute(KNOWN, (step.session, step.turn)).fetchone() == (1,)
                step = Step.model_validate_json(await ask(f"{worker}/sessions/{step.session}/turns", action))
            await write(step.session, step.turn, step.score, 0)

    begun = time.process_time()
    with event_loop.beside(commit_all(first, rows)):
        await asyncio.gather(*(sessions() for _ in range(IN_FLIGHT)))
    print(time.process_time() - begun)
    assert second.execute("SELECT count(*) FROM turn").fetchone() == (int(trials) * (TURNS + 1),)


def one_round(servers: World, worker: Process, turns: int, look: str = "") -> dict[str, float]:
    """Each in turn: ms of CPU per turn, and how many times what it stands beside."""
    least = next(each.value for each in floor.measure(True) if each.name == floor.BOTH)
    file, before = f"{servers.folder}/{time.monotonic_ns()}", cpu_s(worker.pid)
    order = [*PROGRAM, "client", servers.endpoint.url, worker.url, f"{turns // TURNS}", file, look]
    told = subprocess.run(order, env=servers.environment, stdout=subprocess.PIPE, check=True).stdout
    used = {"ideal: client": float(told), "ideal: worker": cpu_s(worker.pid) - before}
    posted, called = (overhead.play(servers, case, turns).cpu_s for case in (overhead.BUDGETED, overhead.IN_PROCESS))
    used |= {f"over HTTP: {part}": posted[part] for part in ("client", "worker", "controller")}
    figures = {name: 1000 * each / turns for name, each in (used | {"in process: client": called["client"]}).items()}
    ideal, *ours = (sum(each for name, each in figures.items() if name.startswith(kind)) for kind in KINDS)
    beside = zip(BUDGETS, (ideal / least, *(each / ideal for each in ours)), strict=True)
    return {floor.BOTH: least, **figures, **dict(beside)}


def measure(quick: bool) -> Iterator[Figure]:
    """Medians and ranges of the rounds."""
    turns = IN_FLIGHT * TURNS * (2 if quick else 8)
    with world(turns // TURNS, TASKS) as servers, process(WORKER, servers.folder, servers.environment) as worker:
        one_round(servers, worker, IN_FLIGHT * TURNS, "look")  # first calls warm the servers up
        rounds = [one_round(servers, worker, turns) for _ in range(2 if quick else 5)]
    for name in rounds[0]:
        unit = "times" if "beside" in name else "ms CPU/turn"
        yield spread(name, [each[name] for each in rounds], unit, at_most=BUDGETS.get(name))


if __name__ == "__main__":
    if sys.argv[1:2] in (["worker"], ["client"]):
        event_loop.run(serve() if sys.argv[1] == "worker" else play(*sys.argv[2:]))
    else:
        main(measure, __doc__)
