"""What our HTTP servers share: socket, routes, bodies within limits, guard against web pages, the parent's end."""

import asyncio
import functools
import inspect
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from proctor.http import is_loopback

if TYPE_CHECKING:
    from fastapi import APIRouter
    from starlette.types import Receive

BACKLOG = 2048
BODY_S = 30.0
"""Longest time that receiving a body may take, where a server sets none of its own."""
SHOWN = 100
"""Characters of a header that a rejection quotes."""
PLACES = re.compile(r"{(\w+)}").findall
"""The names of a path's parameters."""
HUNG_S, LONGEST_END_S = 10.0, 60.0
"""An event loop that can't be told of anything for so long hangs; a server whose parent has ended ends within this."""


class ConfigError(ValueError):
    """The process can't start with its configuration; the message names the option and the fix."""


def rejection_reason(headers: Mapping[bytes, bytes], announced: str | None = None) -> str | None:
    """Why a request may come from a web page of another site; None where it can't. Header names are lower-case.

    A browser on this machine sends any request that a page makes. A page of another site reaches a server on loopback
    by its address, or by a host name that the site resolves to that address (DNS rebinding). Such a request has a
    foreign `Host`, `Origin` or `Sec-Fetch-Site`, which no page can change.

    The server's host names are the loopback ones and the announced one. A request with none of these headers does not
    come from a browser.
    """
    host = headers.get(b"host")
    if host is not None and not _is_own(host, announced):
        return f"Host: {_shown(host)} is not a name of this server"
    origin = headers.get(b"origin")
    if origin is not None and origin.partition(b"://")[2] != host:
        return f"Origin: {_shown(origin)} is another web site"
    site = headers.get(b"sec-fetch-site", b"none")
    if site not in (b"none", b"same-origin"):
        return f"Sec-Fetch-Site: {_shown(site)} marks a request of another web site"
    return None


@functools.lru_cache(1024)
def _is_own(host: bytes, announced: str | None) -> bool:
    try:
        name = urlsplit("//" + host.decode("latin-1")).hostname
    except ValueError:
        return False
    return name is not None and (name == announced or is_loopback(name))


def _shown(value: bytes) -> str:
    return value.decode("latin-1")[:SHOWN]


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 selects a free port. Raises ConfigError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigError(f"host, port: can't listen at {host}:{port}: {error}; choose others, or port 0") from error


def url_of(host: str, listener: socket.socket, scheme: str = "http") -> str:
    """The base URL of a listening socket, with this host name."""
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def http_app(title: str, description: str = "") -> dict[str, Any]:
    """The settings of every app of ours: an OpenAPI document at /openapi.json, no pages of it, no telemetry."""
    return {
        "title": title,
        "description": description,
        "docs_url": None,
        "redoc_url": None,
        "redirect_slashes": False,
        "telemetry": {"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    }


def add_route(routes: "APIRouter", method: str, path: str, handler: Callable[..., Any]) -> None:
    """Add a route that reads its request and writes its answer itself; its handler's docstring says what it is for."""
    from fastapi import Response

    purpose = inspect.getdoc(handler.func if isinstance(handler, functools.partial) else handler) or ""
    texts = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in PLACES(path)]
    routes.add_api_route(
        path,
        handler,
        methods=[method],
        summary=purpose.partition("\n\n")[0],
        description=purpose.partition("\n\n")[2],
        response_class=Response,
        openapi_extra={"parameters": texts} if texts else None,
    )


def when_stdin_ends(end: Callable[[Callable[[], object]], object]) -> None:
    """Call `end` in a new thread when standard input closes, which means that the parent process has ended.

    It is given what to call once the event loop knows. A process that hangs, then or in its end, is killed.
    """

    def wait() -> None:
        while os.read(0, 65536):
            pass
        heard = threading.Event()
        end(heard.set)
        if heard.wait(HUNG_S):
            time.sleep(LONGEST_END_S)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True, name="stdin").start()


class BodyError(Exception):
    """The body can't be read; `status` is that of the answer: 413 too large, 408 too slow, 400 broken off."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def authorization(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The Authorization header; empty where there is none."""
    return next((value for name, value in headers if name == b"authorization"), b"")


async def read_body(receive: "Receive", max_bytes: int, deadline_s: float | None = None) -> bytes:
    """The whole body; its size is checked while it arrives. Raises BodyError."""
    body = bytearray()
    deadline_s = BODY_S if deadline_s is None else deadline_s
    try:
        async with asyncio.timeout(deadline_s):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise BodyError(400, "the connection broke within the body")
                body += message.get("body", b"")
                if len(body) > max_bytes:
                    raise BodyError(413, f"the body is over {max_bytes} bytes")
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError as error:
        raise BodyError(408, f"the body took over {deadline_s:g} s") from error
