"""Keeps web pages away from servers without a token: a browser on this machine sends what any page has it send.

A page from elsewhere reaches a server at loopback by its address, or by a name of its own that it lets stand for that
address (DNS rebinding). Browsers tell of it in `Host`, `Origin` and `Sec-Fetch-Site`, which no page can change.
"""

import functools
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from proctor.http.server import is_loopback

SHOWN = 100
"""Characters of a header that a refusal repeats."""


class OriginGuard:
    """Lets requests through that no web page from elsewhere sent. `refuse` makes the reply to others of their cause."""

    def __init__(self, app: ASGIApp, refuse: Callable[[str], ASGIApp], announced: str | None = None) -> None:
        self._app = app
        self._refuse = refuse
        self._announced = announced

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        cause = rejection_reason(dict(scope["headers"]), self._announced) if scope["type"] == "http" else None
        await (self._app if cause is None else self._refuse(cause))(scope, receive, send)


def rejection_reason(headers: Mapping[bytes, bytes], announced: str | None = None) -> str | None:
    """Why a request may come from a web page elsewhere, by its header's lower-case names; None where it can't.

    The server's hosts are the loopback ones and the announced one. A request without these headers is no browser's.
    """
    host = headers.get(b"host")
    if host is not None and not _is_own(host, announced):
        return f"Host: {_shown(host)} is no name of this server"
    origin = headers.get(b"origin")
    if origin is not None and origin.partition(b"://")[2] != host:
        return f"Origin: {_shown(origin)} is a web page elsewhere"
    site = headers.get(b"sec-fetch-site", b"none")
    if site not in (b"none", b"same-origin"):
        return f"Sec-Fetch-Site: {_shown(site)} is a web page elsewhere"
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
