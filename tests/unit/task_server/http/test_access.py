"""Which token opens which route, and where a worker may be."""

import ipaddress
import socket
from collections.abc import Sequence

import pytest

from proctor.config.tokens import AccessTokens
from proctor.http.auth import Access
from task_server.controller.admission import WorkerAddresses, loopback_only
from task_server.http.access import token_for, worker_access
from task_server.wire.errors import BadRequest, Forbidden

CLIENT, WORKER, METRICS = "of-clients", "of-workers", "of-prometheus"
ROUTES = [
    ("GET", "/tasks"),
    ("POST", "/sessions"),
    ("POST", "/sessions/0/turns"),
    ("DELETE", "/sessions/0"),
    ("POST", "/leases"),
    ("GET", "/workers"),
    ("GET", "/openapi.json"),
    ("GET", "/nothing"),
    ("POST", "/workers/"),
    ("GET", "/metrics/"),
    ("POST", "/workers"),
    ("GET", "/metrics"),
]


def opened(access: Access, token: str) -> set[tuple[str, str]]:
    """The routes that a token opens."""
    return {route for route in ROUTES if access.knows(*route, b"Bearer " + token.encode())}


def test_each_role_opens_its_own_routes() -> None:
    access = Access(
        AccessTokens(CLIENT), metrics=AccessTokens(METRICS), only={("POST", "/workers"): AccessTokens(WORKER)}
    )
    assert opened(access, CLIENT) == {*ROUTES} - {("POST", "/workers")}
    assert opened(access, WORKER) == {("POST", "/workers")}
    assert opened(access, METRICS) == {("GET", "/metrics")}


def test_without_tokens_of_their_own_workers_show_the_clients() -> None:
    assert opened(Access(AccessTokens(CLIENT)), CLIENT) == {*ROUTES}


@pytest.mark.parametrize("shown", [b"", b"Bearer ", b"Bearer of-client", b"bearer of-clients", b"Bearer of-clients "])
def test_nearly_the_token_is_not_the_token(shown: bytes) -> None:
    access = Access(AccessTokens(CLIENT))
    scope = {"method": "GET", "headers": [(b"authorization", shown)]}
    assert [path for path in ("/tasks", "/healthz", "/readyz") if access.admits({**scope, "path": path})] == [
        "/healthz",
        "/readyz",
    ]


def test_a_worker_is_opened_by_its_own_token_and_by_no_other_workers() -> None:
    access = worker_access("https://w1:8001/base", AccessTokens(CLIENT))
    assert opened(access, token_for(CLIENT, "https://W1:8001")) == {*ROUTES}
    for other in ("https://w2:8001", "http://w1:8001", "https://w1:8002", "https://w1"):
        assert opened(access, token_for(CLIENT, other)) == set()


def test_a_worker_that_waits_to_be_told_its_token_is_closed_until_then() -> None:
    access = Access()
    access.pending = True
    assert opened(access, "") == set()
    access.grant([token_for(CLIENT, "http://w1")])
    assert not access.pending
    assert opened(access, token_for(CLIENT, "http://w1")) == {*ROUTES}
    assert opened(access, CLIENT) == set()


NAMES = {"worker": ["10.0.0.7", "10.1.0.7"], "metadata": ["169.254.169.254"], "mine": ["127.0.0.1"], "gone": []}


async def lookup(name: str) -> Sequence[str]:
    if name not in NAMES:
        raise socket.gaierror("no name server")
    return NAMES[name]


def addresses(*allowed: str) -> WorkerAddresses:
    return WorkerAddresses([ipaddress.ip_network(cidr) for cidr in allowed], lookup)


@pytest.mark.parametrize(
    ("host", "peer"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("worker", "10.0.0.7"),
        ("worker", "10.1.0.7"),
        ("10.0.0.7", "::ffff:10.0.0.7"),
        ("[fd00::7]", "fd00::7"),
        ("127.0.0.1", "127.0.0.1"),
        ("mine", "127.0.0.1"),
        ("127.8.8.8", "127.0.0.1"),
        ("[::1]", "::1"),
    ],
)
async def test_a_worker_is_where_it_speaks_from(host: str, peer: str) -> None:
    assert await addresses().admit(f"http://{host}:8001", peer)


@pytest.mark.parametrize(
    ("host", "peer"),
    [
        ("10.0.0.8", "10.0.0.7"),
        ("worker", "10.0.0.8"),
        ("127.0.0.1", "10.0.0.7"),
        ("mine", "10.0.0.7"),
        ("[::1]", "10.0.0.7"),
        ("10.0.0.7", "127.0.0.1"),
        ("metadata", "10.0.0.7"),
        ("169.254.169.254", "169.254.169.254"),
        ("[fe80::1]", "fe80::1"),
        ("0.0.0.0", "127.0.0.1"),
        ("[::]", "::1"),
        ("gone", "10.0.0.7"),
        ("10.0.0.7", None),
        ("10.0.0.7", "/a/socket"),
    ],
)
async def test_any_other_address_is_refused_with_the_options_that_help(host: str, peer: str | None) -> None:
    with pytest.raises(Forbidden, match=r"--advertise.*--allow-workers"):
        await addresses().admit(f"http://{host}:8001", peer)


async def test_an_allowed_range_admits_without_making_sure() -> None:
    some = addresses("10.1.0.0/16", "169.254.0.0/16")
    assert not await some.admit("http://worker:8001", "192.0.2.1")
    assert not await some.admit("http://169.254.1.1:8001", "192.0.2.1")
    assert list(map(str, some.resolve("worker"))) == ["10.1.0.7"]


async def test_a_name_stands_for_the_admitted_address_whatever_it_says_later(monkeypatch: pytest.MonkeyPatch) -> None:
    some = addresses()
    assert await some.admit("http://worker:8001", "10.0.0.7")
    monkeypatch.setitem(NAMES, "worker", ["127.0.0.1"])
    assert list(map(str, some.resolve("worker"))) == ["10.0.0.7"]
    with pytest.raises(Forbidden):
        await some.admit("http://worker:8001", "10.0.0.7")
    with pytest.raises(OSError, match="no worker was admitted"):
        some.resolve("elsewhere")


async def test_a_name_server_that_is_gone_takes_no_worker_away(monkeypatch: pytest.MonkeyPatch) -> None:
    some = addresses()
    assert await some.admit("http://worker:8001", "10.0.0.7")
    monkeypatch.delitem(NAMES, "worker")
    assert await some.admit("http://worker:8001", "10.0.0.7")
    with pytest.raises(Forbidden):
        await some.admit("http://worker:8001", "10.1.0.7")


async def test_without_a_token_workers_are_at_loopback() -> None:
    assert await loopback_only("http://127.0.0.1:1", "192.0.2.1")
    with pytest.raises(Forbidden):
        await loopback_only("http://192.0.2.1:1", "192.0.2.1")
    for url in ("http://[:::]", "http://"):
        with pytest.raises(BadRequest):
            await loopback_only(url, "127.0.0.1")
