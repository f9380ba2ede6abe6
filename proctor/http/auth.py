"""Who may call a server: holders of a token; without tokens, everyone except web pages of other sites."""

import hmac
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from proctor.http.origin_guard import rejection_reason

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    Refuse = Callable[[Scope, int, str], Response]
    """(request, 401 or 403, why) -> the answer."""

METRICS = "/metrics"


class Access:
    """The tokens that a server accepts. Without a token for clients it is open to every process that reaches it.

    `metrics` opens /metrics too. A route that has a token in `only` is opened by that one alone.
    """

    open_paths: ClassVar[frozenset[str]] = frozenset({"/healthz", "/readyz"})
    """Paths that need no token."""

    def __init__(
        self,
        clients: Iterable[str] = (),
        *,
        metrics: str | None = None,
        only: Mapping[tuple[str, str], str | None] = MappingProxyType({}),
    ) -> None:
        self.pending = False
        """True while the server waits for its token from a controller; until then only open paths work."""
        self._clients = [bearer(token) for token in clients]
        self._metrics = [] if metrics is None else [bearer(metrics)]
        self._only = {route: [bearer(token)] for route, token in only.items() if token is not None}

    @property
    def closed(self) -> bool:
        """True if requests need a token."""
        return self.pending or bool(self._clients)

    def grant(self, token: str) -> None:
        """Accept one more token from clients."""
        self.pending = False
        if bearer(token) not in self._clients:
            self._clients.append(bearer(token))

    def admits(self, scope: "Scope") -> bool:
        """Whether a request or a WebSocket has a token for its route, or needs none."""
        path, shown = scope["path"], authorization(scope["headers"])
        return path in self.open_paths or self.knows(scope.get("method", "GET"), path, shown)

    def knows(self, method: str, path: str, authorization: bytes) -> bool:
        """Whether a request has a token for its route, compared in constant time; True if no token is needed."""
        if not self.closed:
            return True
        known = self._only.get((method, path), self._clients)
        matches = [hmac.compare_digest(authorization, each) for each in known]
        if path == METRICS:
            matches += [hmac.compare_digest(authorization, each) for each in self._metrics]
        return any(matches)

    def may_be_linked(self, scope: "Scope") -> bool:
        """Whether other sites may link to what this request asks for."""
        return False


class AccessGuard:
    """Passes requests and WebSockets that have access; `refuse` answers the others, whose bodies are not read.

    `announced` is the host name that clients use.
    """

    def __init__(self, app: "ASGIApp", access: Access, refuse: "Refuse", announced: str | None = None) -> None:
        self._app, self._access, self._refuse, self._announced = app, access, refuse, announced

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        refused = self._refused(scope) if scope["type"] in ("http", "websocket") else None
        if refused is None:
            await self._app(scope, receive, send)
            return
        refused.headers["connection"] = "close"
        if refused.status_code == 401:
            refused.headers["www-authenticate"] = "Bearer"
        await refused(scope, receive, send)

    def _refused(self, scope: "Scope") -> "Response | None":
        if self._access.closed:
            return None if self._access.admits(scope) else self._refuse(scope, 401, "no valid token")
        headers = dict(scope["headers"])
        if self._access.may_be_linked(scope):
            headers.pop(b"sec-fetch-site", None)
        cause = rejection_reason(headers, self._announced)
        return None if cause is None else self._refuse(scope, 403, cause)


def authorization(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The Authorization header; empty where there is none."""
    return next((value for name, value in headers if name == b"authorization"), b"")


def bearer(token: str) -> bytes:
    """A token as the Authorization header."""
    return b"Bearer " + token.encode()
