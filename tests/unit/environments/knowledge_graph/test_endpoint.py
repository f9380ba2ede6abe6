"""Every way in which an endpoint can fail is a fault, told from a dead or slow or lying one."""

import json
from urllib.parse import parse_qs

import pytest

from environments.knowledge_graph.endpoint import EndpointGraph
from proctor.environment import EnvironmentFault, ServiceAway
from tests.pace import slowly
from tests.scripted_server import Script, drip, raw, reply, scripted_server, silence


def results(*values: str) -> bytes:
    rows = [{"x": {"type": "uri", "value": value}} for value in values]
    return json.dumps({"head": {"vars": ["x"]}, "results": {"bindings": rows}}).encode()


async def ask(*scripts: Script, limit_s: float = slowly(20), requests: list[bytes] | None = None) -> tuple[str, ...]:
    async with scripted_server(*scripts, requests=requests) as url:
        graph = EndpointGraph(f"{url}/sparql", limit_s)
        async with graph.lifespan():
            return await graph.column("SELECT ?x", 3)


async def test_the_first_variables_values_come_row_by_row() -> None:
    requests: list[bytes] = []
    assert await ask(reply(results("urn:a", "urn:b")), requests=requests) == ("urn:a", "urn:b")
    assert parse_qs(requests[0].decode()) == {"query": ["SELECT ?x LIMIT 3"]}


async def test_a_row_without_the_variable_is_passed_over() -> None:
    body = {"head": {"vars": ["x"]}, "results": {"bindings": [{}, {"x": {"type": "literal", "value": "4"}}]}}
    assert await ask(reply(json.dumps(body).encode())) == ("4",)


@pytest.mark.parametrize(
    ("script", "cause", "away"),
    [
        (
            reply(b"Virtuoso 42000 Error", "500 Internal Server Error"),
            "returned status 500: Virtuoso 42000 Error",
            True,
        ),
        (reply(b"busy", "503 Service Unavailable"), "returned status 503: busy", True),
        (reply(b"syntax error", "400 Bad Request"), "returned status 400", False),
        (reply(b"", "302 Found", ["Location: /elsewhere"]), "returned status 302", False),
        (reply(b"<html>busy</html>"), "returned no SPARQL results in JSON: <html>", False),
        (reply(b'{"head": {"vars": []}, "results": {"bindings": []}}'), "returned no SPARQL results", False),
        (reply(b'{"head": {}, "boolean": true}'), "returned no SPARQL results", False),
        (reply(results("urn:a"), headers=["X-SPARQL-MaxRows: 1"]), "left rows out (x-sparql-maxrows: 1)", False),
        (reply(results(), headers=["X-SQL-State: S1TAT"]), "left rows out (x-sql-state: S1TAT)", False),
        (raw(), "the SPARQL endpoint: POST", True),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), "the SPARQL endpoint: POST", True),
        (raw(b"not HTTP\r\n\r\n"), "the SPARQL endpoint: POST", True),
    ],
)
async def test_what_is_wrong_with_an_endpoint_is_a_fault_that_says_so_and_whether_it_may_be_back(
    script: Script, cause: str, away: bool
) -> None:
    with pytest.raises(EnvironmentFault) as raised:
        await ask(script, script)
    assert cause in str(raised.value)
    assert isinstance(raised.value, ServiceAway) is away


@pytest.mark.parametrize("script", [silence, drip])
async def test_an_endpoint_too_slow_is_a_fault(script: Script) -> None:
    with pytest.raises(EnvironmentFault, match=r"no whole reply within 0\.2 s"):
        await ask(script, limit_s=0.2)


WELL = reply(results())


@pytest.mark.parametrize(
    ("then", "away"),
    [
        ((reply(b"", "503 Busy"),), True),
        ((silence,), True),
        ((WELL, silence, WELL), False),
        ((WELL, silence, silence), True),
    ],
)
async def test_a_query_that_takes_too_long_is_told_from_an_endpoint_that_stands_still(
    then: tuple[Script, ...], away: bool
) -> None:
    with pytest.raises(EnvironmentFault) as raised:
        await ask(silence, *then, limit_s=slowly(1))
    assert isinstance(raised.value, ServiceAway) is away


async def test_a_query_that_was_late_as_the_endpoint_stood_still_is_asked_again() -> None:
    assert await ask(silence, WELL, WELL, limit_s=slowly(1)) == await ask(WELL)


async def test_a_dead_endpoint_is_a_fault() -> None:
    async with scripted_server(silence) as url:
        pass
    graph = EndpointGraph(url, slowly(5))
    async with graph.lifespan():
        with pytest.raises(EnvironmentFault, match="the SPARQL endpoint"):
            await graph.column("SELECT ?x", 3)


async def test_our_own_limit_is_no_fault() -> None:
    values = ("urn:a", "urn:b", "urn:c")
    assert await ask(reply(results(*values), headers=["X-SPARQL-MaxRows: 3"])) == values


async def test_a_connection_that_breaks_is_tried_once_more() -> None:
    assert await ask(raw(), reply(results("urn:a"))) == ("urn:a",)
