"""Connections without a token hold no server: neither its memory, nor its connections, nor those with a token.

The floods are those of `../shared/attacks` and others of their kind, each played against every kind of server.
"""

import contextlib
import select
import socket
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import psutil
import pytest

from proctor.http.bounded_protocol import HEAD_S, MAX_UNAUTHORIZED
from tests.e2e.proctor import TOKEN, begin, ended, server
from tests.faults.parts.farm import KEY
from tests.pace import slowly, until
from tests.support import free_port

GROWTH_MIB, ANSWER_S, FLOOD_S = 10, slowly(2), 2.0
BEARER = f"Authorization: Bearer {TOKEN}\r\n".encode()
AGENTS = "token_env: PROCTOR_TOKEN\ntasks: [{name: puzzles, environment: ltp}]\nagents: [{name: naive, kind: naive}]\n"
TASKS = "tasks: [{name: puzzles, environment: ltp}]\n"
PLAN = TASKS + (
    "endpoints: [{name: gone, base_url: 'http://127.0.0.1:1/v1', max_retry_s: 3600}]\n"
    "agents: [{name: lost, endpoint: gone, model: none}]\n"
)


class Served(NamedTuple):
    port: int
    process: int
    known: bytes
    """A request with the token, that is answered as no other is."""
    cookie: bytes = b""
    """A header that is as good as the token, if there is one."""

    def memory_mib(self) -> float:
        return int(Path(f"/proc/{self.process}/statm").read_text().split()[1]) / 256

    def open(self, clients: Collection[socket.socket]) -> int:
        """How many connections of these clients to this port are left: a client that reads nothing is not told so."""
        theirs = {(self.port, each.getsockname()[1]) for each in clients}
        its = psutil.Process(self.process).net_connections()
        return sum(bool(each.raddr) and (each.laddr.port, each.raddr.port) in theirs for each in its)

    def ask(self, request: bytes) -> bytes:
        """The status of the answer, which comes in time."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=ANSWER_S) as newcomer:
            newcomer.sendall(request + b"Host: 127.0.0.1\r\nConnection: close\r\n\r\n")
            return newcomer.recv(99)[9:12]


@contextlib.contextmanager
def ours(folder: Path, kind: str) -> Iterator[Served]:
    """A server of a kind, in a process of its own."""
    known = b"GET /metrics HTTP/1.1\r\n" + BEARER
    for name, text in {"tasks": TASKS, "agents": AGENTS, "plan": PLAN}.items():
        (folder / f"{name}.yaml").write_text(text)
    commands = {
        "worker": ("worker", "--tasks=tasks.yaml"),
        "controller": ("controller",),
        "agents": ("agents", "--config=agents.yaml"),
        "gateway": ("serve", "--openenv", "--tasks=tasks.yaml"),
    }
    with contextlib.ExitStack() as stack:
        if kind in commands:
            running = stack.enter_context(server(*commands[kind], cwd=folder))
            yield Served(int(running.url.removesuffix("/v1").rpartition(":")[2]), running.process.pid, known)
            return
        stack.enter_context(ended())
        port = free_port()
        if kind == "view":
            process = begin("view", f"--port={port}", cwd=folder, PROCTOR_VIEW_TOKEN=TOKEN)
            known = b"GET / HTTP/1.1\r\n" + BEARER
        elif kind == "mcp":
            process = begin("play", "ltp", "--mcp", cwd=folder)
            assert process.stdout is not None
            url = next(line for line in process.stdout if line.startswith("Claude Code: ")).split()[-1]
            port, path = int(url.split(":")[2].partition("/")[0]), url.split("/", 3)[3]
            known = f"GET /{path} HTTP/1.1\r\n".encode()
        else:
            process = begin("run", "plan.yaml", "--name=r", "-q", f"--metrics={port}", cwd=folder, **KEY)
        served = Served(port, process.pid, known)
        until(lambda: answered(served))
        yield served._replace(cookie=logged_in(port)) if kind == "view" else served
        process.kill()
        process.communicate()


def logged_in(port: int) -> bytes:
    """The header with the cookie of a login."""
    reply = httpx.post(f"http://127.0.0.1:{port}/login", data={"token": TOKEN}, timeout=ANSWER_S)
    assert reply.cookies, reply.text
    return f"Cookie: {'; '.join(f'{name}={value}' for name, value in reply.cookies.items())}\r\n".encode()


def answered(served: Served) -> bool:
    with contextlib.suppress(OSError):
        return served.ask(served.known) != b""
    return False


@pytest.fixture(scope="module", params=["worker", "controller", "agents", "gateway", "view", "mcp", "metrics"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Each kind of server, with a token."""
    with ours(tmp_path_factory.mktemp(request.param), request.param) as running:
        for one in (b"GET /healthz HTTP/1.1\r\n", running.known) * 50:  # imports, and memory that Python keeps
            assert running.ask(one)
        yield running


class Flood(NamedTuple):
    connections: int
    sent: Callable[[Served], bytes]
    """What each sends once; then the last part of it over and over, if `repeated`."""
    repeated: bytes = b""
    all_end: bool = True
    """Whether no connection is left; else at least those beyond the limit end."""


GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
POST = b"POST /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n" + bytes(1000)
PADDED = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nx: " + b"y" * 2000 + b"\r\n\r\n"
CHUNKED = b"POST /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
UPGRADE = (
    b"GET /openenv/puzzles/ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
FLOODS = {
    "one that pipelines and never reads": Flood(1, lambda _: b"", GET * 6000),
    "one with bodies": Flood(1, lambda _: b"", POST * 250),
    "one with chunked bodies": Flood(1, lambda _: b"", (CHUNKED + b"3e8\r\n" + bytes(1000) + b"\r\n0\r\n\r\n") * 250),
    "one with large heads": Flood(1, lambda _: b"", PADDED * 100),
    "one that showed the token": Flood(1, lambda served: served.known + b"Host: 127.0.0.1\r\n\r\n", GET * 6000),
    "a chunked body without end": Flood(1, lambda _: CHUNKED, b"3e8\r\n" + bytes(1000) + b"\r\n", all_end=False),
    "the cap, busy": Flood(300, lambda _: GET * 3000),
    "the cap, with a few requests each": Flood(300, lambda _: GET * 12, all_end=False),
    "the cap, with a few bodies each": Flood(300, lambda _: POST * 12, all_end=False),
    "the cap, within a large body": Flood(
        300, lambda _: b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n" + bytes(200_000), all_end=False
    ),
    "the cap, with upgrades": Flood(300, lambda _: UPGRADE, UPGRADE * 10, all_end=False),
    "the cap, refused": Flood(300, lambda _: b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 12, all_end=False),
}


class Attacker:
    """A connection that sends as fast as it can and reads nothing."""

    def __init__(self, served: Served, flood: Flood) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        self.socket.settimeout(ANSWER_S)
        self.socket.connect(("127.0.0.1", served.port))
        self.socket.setblocking(False)
        self._left, self._repeated = flood.sent(served), flood.repeated
        self.send()

    def send(self) -> None:
        with contextlib.suppress(OSError):
            for _ in range(20):
                self._left = self._left or self._repeated
                self._left = self._left[self.socket.send(self._left) if self._left else 0 :]


def has_ended(connection: socket.socket) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    return bool(poll.poll(0))


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_a_flood_costs_its_sender_alone(served: Served, flood: Flood, capsys: pytest.CaptureFixture[str]) -> None:
    asks = ((b"GET /healthz HTTP/1.1\r\n", b""), (served.known, b"401"))
    for request, _ in asks:
        served.ask(request)  # what a server makes at its first requests is no cost of the flood
    before, most, slowest = served.memory_mib(), 0.0, 0.0
    attackers: list[Attacker] = []
    give_up = time.monotonic() + FLOOD_S
    try:
        while len(attackers) < flood.connections or time.monotonic() < give_up:
            for _ in range(min(50, flood.connections - len(attackers))):
                attackers.append(Attacker(served, flood))
            for each in attackers:
                each.send()
            most = max(most, served.memory_mib() - before)
            for request, refused in asks:
                asked = time.monotonic()
                assert served.ask(request) not in (b"", refused)
                slowest = max(slowest, time.monotonic() - asked)
            if len(attackers) == flood.connections and not served.open([each.socket for each in attackers]):
                break
        left = served.open([each.socket for each in attackers])
    finally:
        for each in attackers:
            each.socket.close()
    with capsys.disabled():
        print(f"+{most:.1f} MiB, newcomers within {slowest:.2f} s, {left} of {flood.connections} connections left")
    assert most < GROWTH_MIB
    assert left <= (0 if flood.all_end else MAX_UNAUTHORIZED)


def test_a_connection_that_showed_the_token_is_kept(served: Served) -> None:
    with contextlib.ExitStack() as stack:
        there = [stack.enter_context(socket.create_connection(("127.0.0.1", served.port))) for _ in range(2)]
        for known, header in zip(there, (BEARER, served.cookie or BEARER), strict=True):
            request = served.known.replace(BEARER, header) + b"Host: 127.0.0.1\r\n\r\n"
            known.settimeout(ANSWER_S)
            known.sendall(request)
            assert known.recv(1 << 20)[9:12] in (b"200", b"405")
        for _ in range(MAX_UNAUTHORIZED + 44):
            stack.enter_context(socket.create_connection(("127.0.0.1", served.port))).sendall(GET)
        for known in there:
            assert not has_ended(known)


def test_a_request_that_is_not_whole_in_time_ends_its_connection(served: Served) -> None:
    begun = {
        "nothing": b"",
        "a head": b"GET /healthz HTTP/1.1\r\nx: ",
        "a body": b"POST /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n",
        "a chunk": CHUNKED + b"3e8\r\n",
        "a second body": GET + b"POST /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n",
    }
    with contextlib.ExitStack() as stack:
        there = {}
        for name, data in begun.items():
            there[name] = stack.enter_context(socket.create_connection(("127.0.0.1", served.port)))
            there[name].sendall(data)

        def trickled() -> bool:
            time.sleep(0.5)  # the load under test
            for name, each in there.items():
                with contextlib.suppress(OSError):
                    each.sendall(b"x" if name != "nothing" else b"")
            return all(has_ended(each) for each in there.values())

        until(trickled, HEAD_S + 10, lambda: [name for name, each in there.items() if not has_ended(each)])
