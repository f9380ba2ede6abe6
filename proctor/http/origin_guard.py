"""Protects servers without a token from web pages: a browser on this machine sends any request that a page makes.

A page of another site reaches a server on loopback by its address, or by a host name that the site resolves to that
address (DNS rebinding). Such a request has a foreign `Host`, `Origin` or `Sec-Fetch-Site`, which no page can change.
"""

import functools
from collections.abc import Mapping
from urllib.parse import urlsplit

from proctor.http.server import is_loopback

SHOWN = 100
"""Characters of a header that the rejection quotes."""


def rejection_reason(headers: Mapping[bytes, bytes], announced: str | None = None) -> str | None:
    """Why a request may come from a web page of another site; None where it can't. Header names are lower-case.

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
