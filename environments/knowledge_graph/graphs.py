"""The graphs that queries run on: an embedded store, or a SPARQL endpoint over HTTP (see `endpoint.py`)."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from environments.knowledge_graph.ontology import Ontology
from environments.knowledge_graph.programs import NAMESPACE
from environments.knowledge_graph.synthetic import Edge, distractors
from proctor.environment import EnvironmentFault

if TYPE_CHECKING:
    from pyoxigraph import Store

MISSING = "no package pyoxigraph for the embedded store; pip install 'proctor[kg]', or give the field `endpoint`"
_THREADS = 4
CHECKED = 10_000
"""How many statements of a file are read by `check_graph`."""
FIX = "give N-Quads or the folder of a pyoxigraph store"


def check_graph(path: Path) -> None:
    """Raises ValueError where the beginning of a file is no N-Quads, or a folder is no store."""
    if path.is_dir():
        if not (path / "CURRENT").is_file():
            raise ValueError(f"{path}: the folder holds no store; {FIX}")
    elif find_spec("pyoxigraph") is not None:  # else the start of the environment says so
        from pyoxigraph import RdfFormat, parse

        try:
            read = sum(1 for _ in islice(parse(path=path, format=RdfFormat.N_QUADS), CHECKED))
        except (OSError, SyntaxError, ValueError) as error:
            raise ValueError(f"{path}: {error}; {FIX}") from error
        if not read:
            raise ValueError(f"{path}: holds no statements; {FIX}")


class Graph(ABC):
    """A graph that SPARQL queries run on."""

    @abstractmethod
    async def column(self, query: str, max_rows: int) -> tuple[str, ...]:
        """The first variable's values, row by row: IRIs, or the text of literals; at most `max_rows` rows.

        Raises EnvironmentFault where the graph fails or does not answer in time.
        """

    @abstractmethod
    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Loads the graph or connects to it, and releases it at the end. Raises EnvironmentFault."""


class EmbeddedGraph(Graph):
    """A file of N-Quads in memory, or the folder of a pyoxigraph store, opened read-only."""

    def __init__(self, path: Path, limit_s: float, extra: int = 0, ontology: Ontology | None = None) -> None:
        self._path, self._limit_s, self._extra, self._ontology = path, limit_s, extra, ontology
        self._store: Store | None = None
        self._threads: ThreadPoolExecutor | None = None

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        if find_spec("pyoxigraph") is None:
            raise EnvironmentFault(MISSING)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="kg")
        try:
            self._store = await asyncio.to_thread(self._open)
            yield
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._store = None

    async def column(self, query: str, max_rows: int) -> tuple[str, ...]:
        limited = f"{query} LIMIT {max_rows}"
        loop = asyncio.get_running_loop()
        try:
            # A query that takes too long can't be stopped: its thread runs on.
            return await asyncio.wait_for(loop.run_in_executor(self._threads, self._column, limited), self._limit_s)
        except TimeoutError as error:
            raise EnvironmentFault(f"the embedded graph: no result within {self._limit_s:g} s") from error
        except (SyntaxError, ValueError, OSError) as error:
            raise EnvironmentFault(f"the embedded graph: {error}") from error

    def _column(self, query: str) -> tuple[str, ...]:
        from pyoxigraph import BlankNode, Literal, NamedNode, QuerySolutions

        assert self._store is not None
        solutions = self._store.query(query)
        assert isinstance(solutions, QuerySolutions)
        terms = (solution[0] for solution in solutions)
        return tuple(term.value for term in terms if isinstance(term, (NamedNode, Literal, BlankNode)))

    def _open(self) -> "Store":
        from pyoxigraph import RdfFormat, Store

        try:
            if self._path.is_dir():
                return Store.read_only(str(self._path))
            store = Store()
            store.bulk_load(path=self._path, format=RdfFormat.N_QUADS)
        except (OSError, SyntaxError, ValueError) as error:
            raise EnvironmentFault(f"{self._path}: {error}; {FIX}") from error
        if self._extra and self._ontology:
            _distract(store, self._extra, self._ontology)
        return store


def _distract(store: "Store", extra: int, ontology: Ontology) -> None:
    """Adds `extra` wrong relations for each type to each named graph."""
    from pyoxigraph import NamedNode, Quad

    for graph in sorted(store.named_graphs(), key=str):
        edges = [
            Edge(_name(quad.subject.value), _name(quad.predicate.value), _name(quad.object.value))
            for quad in store.quads_for_pattern(None, None, None, graph)
            if isinstance(quad.subject, NamedNode) and isinstance(quad.object, NamedNode)
        ]
        for edge in distractors(edges, ontology, extra, str(graph)):
            subject, predicate, wrong = (NamedNode(NAMESPACE + name) for name in edge)
            store.add(Quad(subject, predicate, wrong, graph))


def _name(iri: str) -> str:
    return iri.removeprefix(NAMESPACE)
