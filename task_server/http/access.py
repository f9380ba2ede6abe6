"""Who may do what at a task server: bearer tokens, and which routes each opens."""

import hashlib
import hmac
from collections.abc import Iterable
from urllib.parse import urlsplit

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Paths that need no token."""


def token_for(token: str, url: str) -> str:
    """The token that opens the worker at a URL: made from the clients' token, which no worker is ever shown.

    64 hex digits, the same for all URLs of one origin; from them neither the token nor another worker's can be found.
    """
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}".lower()
    return hmac.new(token.encode(), f"proctor worker {origin}".encode(), hashlib.sha256).hexdigest()


class Access:
    """The tokens of a server. Without any for its clients it is open to whoever reaches it."""

    def __init__(self, clients: Iterable[str] = (), *, workers: str | None = None, metrics: str | None = None) -> None:
        self.pending = False
        """True while it isn't known yet which token opens this server: nothing can be asked of it so far."""
        self._clients = [_shown(token) for token in clients]
        self._workers = [_shown(workers)] if workers is not None else self._clients
        self._metrics = [*self._clients, *([_shown(metrics)] if metrics is not None else [])]

    @property
    def closed(self) -> bool:
        """True where a token is asked for."""
        return self.pending or bool(self._clients)

    def grant(self, token: str) -> None:
        """From now on clients may show this token too."""
        self.pending = False
        if _shown(token) not in self._clients:
            self._clients.append(_shown(token))
            self._metrics.append(_shown(token))

    def admits(self, method: str, path: str, authorization: bytes) -> bool:
        """Whether a request with this Authorization header may pass."""
        return path in OPEN_PATHS or self.knows(method, path, authorization)

    def knows(self, method: str, path: str, authorization: bytes) -> bool:
        """Whether a request shows a token for its route, compared in constant time; True where none is asked for."""
        if not self.closed:
            return True
        known = self._clients
        if path == "/workers" and method == "POST":
            known = self._workers
        elif path == "/metrics":
            known = self._metrics
        return any(hmac.compare_digest(authorization, each) for each in known)


def worker_access(url: str, token: str | None, metrics: str | None = None) -> Access:
    """Of a worker at a URL that knows the clients' token: a client of a lone worker shows it, others what it makes."""
    return Access([token, token_for(token, url)] if token is not None else [], metrics=metrics)


OPEN = Access()


def _shown(token: str) -> bytes:
    return b"Bearer " + token.encode()
