"""A SPARQL 1.1 endpoint over HTTP: the full Freebase on Virtuoso, or any other."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlencode

from pydantic import BaseModel, Field, ValidationError

from environments.knowledge_graph.graphs import Graph
from proctor.environment import EnvironmentFault, ServiceAway
from proctor.http.client import (
    ConnectionFailed,
    DeadlineExceeded,
    HttpClient,
    HttpFailure,
    HttpReply,
    bounded_request,
    http_client,
)

MAX_BYTES = 64 << 20
_HEADERS = {"Accept": "application/sparql-results+json", "Content-Type": "application/x-www-form-urlencoded"}
_INCOMPLETE = ("x-sparql-maxrows", "x-sql-state")
"""Headers by which Virtuoso marks an incomplete reply: rows were left out, or a limit stopped the query."""
_SHOWN = 300
_PROBE = urlencode({"query": "SELECT ?x WHERE { ?x ?y ?z } LIMIT 1"}).encode()
_PROBE_S = 5.0


class _Head(BaseModel):
    vars: tuple[str, ...] = Field(min_length=1)


class _Term(BaseModel):
    value: str


class _Results(BaseModel):
    bindings: tuple[dict[str, _Term], ...]


class _QueryResult(BaseModel):
    """SPARQL 1.1 Query Results JSON Format."""

    head: _Head
    results: _Results


class EndpointGraph(Graph):
    """A graph behind an endpoint. Every failure of the endpoint is a fault, as is an incomplete reply."""

    def __init__(self, url: str, limit_s: float) -> None:
        self._url, self._limit_s = url, limit_s
        self._client: HttpClient | None = None

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        async with http_client() as self._client:
            yield

    async def column(self, query: str, max_rows: int) -> tuple[str, ...]:
        content = urlencode({"query": f"{query} LIMIT {max_rows}"}).encode()
        try:
            try:
                reply = await self._ask(content, self._limit_s)
            except (ConnectionFailed, DeadlineExceeded) as error:
                # The server has closed an idle connection, or stood still until now; a query is safe to repeat.
                if await self._is_away(error):
                    raise
                reply = await self._ask(content, self._limit_s)
        except HttpFailure as error:
            away = isinstance(error, ConnectionFailed) or await self._is_away(error)
            raise (ServiceAway if away else EnvironmentFault)(f"the SPARQL endpoint: {error}") from error
        if reply.status != 200:
            text = reply.body[:_SHOWN].decode(errors="replace")
            kind = ServiceAway if reply.status >= 500 else EnvironmentFault
            raise kind(f"the SPARQL endpoint {self._url} returned status {reply.status}: {text}")
        return self._read(reply, max_rows)

    async def _is_away(self, error: HttpFailure) -> bool:
        """Whether a query was late and the least one is not answered either; else the query itself is to blame."""
        if not isinstance(error, DeadlineExceeded):
            return False
        try:
            return (await self._ask(_PROBE, min(_PROBE_S, self._limit_s))).status >= 500
        except HttpFailure:
            return True

    async def _ask(self, content: bytes, limit_s: float) -> HttpReply:
        assert self._client is not None
        return await bounded_request(
            self._client,
            "POST",
            self._url,
            content=content,
            headers=_HEADERS,
            deadline_s=limit_s,
            max_bytes=MAX_BYTES,
        )

    def _read(self, reply: HttpReply, max_rows: int) -> tuple[str, ...]:
        try:
            result = _QueryResult.model_validate_json(reply.body)
        except ValidationError as error:
            text = reply.body[:_SHOWN].decode(errors="replace")
            raise EnvironmentFault(
                f"the SPARQL endpoint {self._url} returned no SPARQL results in JSON: {text}"
            ) from error
        rows = result.results.bindings
        headers = {name.lower(): value for name, value in reply.headers.items()}
        incomplete = [f"{header}: {headers[header]}" for header in _INCOMPLETE if header in headers]
        if incomplete and len(rows) < max_rows:
            raise EnvironmentFault(f"the SPARQL endpoint {self._url} left rows out ({incomplete[0]}); raise its limits")
        name = result.head.vars[0]
        return tuple(row[name].value for row in rows if name in row)
