"""Access to a task server: bearer tokens, and the routes that each opens."""

import hashlib
import hmac
from collections.abc import Iterable
from urllib.parse import urlsplit

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Paths that need no token."""


def token_for(token: str, url: str) -> str:
    """The token of the worker at a URL, derived from the clients' token, which is never sent to a worker.

    64 hex digits of HMAC-SHA256 over the URL's origin. Neither the clients' token nor another worker's follows from it.
    """
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}".lower()
    return hmac.new(token.encode(), f"proctor worker {origin}".encode(), hashlib.sha256).hexdigest()


class Access:
    """The tokens that a server accepts. Without a token for clients it is open to every process that reaches it."""

    def __init__(self, clients: Iterable[str] = (), *, workers: str | None = None, metrics: str | None = None) -> None:
        self.pending = False
        """True while the server waits for its token from the controller; until then only open paths work."""
        self._clients = [_shown(token) for token in clients]
        self._workers = [_shown(workers)] if workers is not None else self._clients
        self._metrics = [*self._clients, *([_shown(metrics)] if metrics is not None else [])]

    @property
    def closed(self) -> bool:
        """True if requests need a token."""
        return self.pending or bool(self._clients)

    def grant(self, token: str) -> None:
        """Accept one more token from clients."""
        self.pending = False
        if _shown(token) not in self._clients:
            self._clients.append(_shown(token))
            self._metrics.append(_shown(token))

    def admits(self, method: str, path: str, authorization: bytes) -> bool:
        """Whether a request with this Authorization header is allowed."""
        return path in OPEN_PATHS or self.knows(method, path, authorization)

    def knows(self, method: str, path: str, authorization: bytes) -> bool:
        """Whether a request has a token for its route, compared in constant time; True if no token is needed."""
        if not self.closed:
            return True
        known = self._clients
        if path == "/workers" and method == "POST":
            known = self._workers
        elif path == "/metrics":
            known = self._metrics
        return any(hmac.compare_digest(authorization, each) for each in known)


def worker_access(url: str, token: str | None, metrics: str | None = None) -> Access:
    """The tokens of the worker at a URL: the clients' own token, for a lone worker, and the one derived from it."""
    return Access([token, token_for(token, url)] if token is not None else [], metrics=metrics)


OPEN = Access()


def _shown(token: str) -> bytes:
    return b"Bearer " + token.encode()
