"""Tables of the routes of servers that have no OpenAPI document, from their Starlette routes."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from tools.docs.markdown import cell

_RAISES = re.compile(r"\s*Raises\b.*", re.DOTALL)


def route_table(routes: Iterable[BaseRoute]) -> str:
    """Method, path and purpose of each route. Raises ValueError for a handler without a docstring."""
    rows = [f"| {method} | `{path}` | {cell(purpose)} |" for method, path, purpose in _rows(routes, "")]
    return "\n".join(["| method | path | purpose |", "|---|---|---|", *rows])


def _rows(routes: Iterable[BaseRoute], prefix: str) -> Iterator[tuple[str, str, str]]:
    for route in routes:
        match route:
            case Mount():
                yield from _rows(route.routes, prefix + route.path)
            case WebSocketRoute():
                yield "WebSocket", prefix + route.path, _purpose(route.endpoint)
            case Route():
                methods = sorted((route.methods or set()) - {"HEAD"})
                yield ", ".join(methods), prefix + route.path, _purpose(route.endpoint)


def _purpose(handler: Callable[..., Any]) -> str:
    """The first paragraph of the handler's docstring, without what it raises."""
    while isinstance(handler, partial):
        handler = handler.func
    text = inspect.getdoc(handler)
    if not text:
        raise ValueError(f"{handler.__qualname__} of {handler.__module__}: write a docstring, the route's purpose")
    return _RAISES.sub("", text.partition("\n\n")[0])
