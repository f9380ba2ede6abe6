"""Who may call a server: holders of a token; without tokens, everyone except web pages of other sites."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from proctor.config.tokens import AccessTokens, Token
from proctor.http.server import authorization, rejection_reason

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    Refuse = Callable[[Scope, int, str], Response]
    """(request, 401 or 403, why) -> the answer."""

METRICS = "/metrics"
NO_TOKENS = AccessTokens()


def as_it_is(token: Token) -> tuple[Token, ...]:
    """What a server accepts for a token, normally: that token."""
    return (token,)


class _Accepted:
    """Tokens, found by the hash of the header that shows one: a look-up tells nothing about a token by its time."""

    def __init__(self, *sources: AccessTokens, forms: Callable[[Token], Iterable[Token]] = as_it_is) -> None:
        self._sources, self._forms = sources, forms
        self._of: list[tuple[Token, ...]] = []
        self._by_hash: dict[bytes, Token] = {}
        self.named = False
        """Whether any has a name, as of the last look-up."""

    def find(self, authorization: bytes, *, look: bool = False) -> Token | None:
        """The token that an Authorization header shows, if it counts now; with `look` files are read again before."""
        if look:
            for tokens in self._sources:
                tokens.look()
        if self._of != (now := [tokens.all for tokens in self._sources]):
            accepted = [form for tokens in now for token in tokens for form in self._forms(token)]
            self._of, self._by_hash = now, {_hash(bearer(token.text)): token for token in reversed(accepted)}
            self.named = any(token.name for token in accepted)
        return self._by_hash.get(_hash(authorization))


class Access:
    """The tokens that a server accepts. Without a token for clients it is open to every process that reaches it.

    `metrics` open /metrics too. A route that has tokens in `only` is opened by those alone. `forms` gives what is
    accepted for each token of clients.
    """

    open_paths: ClassVar[frozenset[str]] = frozenset({"/healthz", "/readyz"})
    """Paths that need no token."""

    def __init__(
        self,
        *clients: AccessTokens,
        metrics: AccessTokens = NO_TOKENS,
        only: Mapping[tuple[str, str], AccessTokens] = MappingProxyType({}),
        forms: Callable[[Token], Iterable[Token]] = as_it_is,
    ) -> None:
        self.pending = False
        """True while the server waits for its tokens from a controller; until then only open paths work."""
        self._tokens, self._has_tokens = clients, any(clients)
        self._granted = _Accepted()
        self.accept(forms)
        self._grant: tuple[str, ...] = ()
        self._metrics = _Accepted(metrics)
        self._only = {route: _Accepted(tokens) for route, tokens in only.items() if tokens}

    @property
    def closed(self) -> bool:
        """True if requests need a token."""
        return self.pending or self._has_tokens

    def accept(self, forms: Callable[[Token], Iterable[Token]]) -> None:
        """Accept these forms of the clients' tokens from now on."""
        self._clients = _Accepted(*self._tokens, forms=forms)

    def grant(self, tokens: Iterable[str]) -> None:
        """Accept these tokens from clients too, and none any more that were granted before."""
        self.pending, self._has_tokens = False, True
        if (granted := tuple(tokens)) != self._grant:
            self._grant, self._granted = granted, _Accepted(AccessTokens(*granted))

    def users(self) -> list[Token]:
        """The tokens of clients that have a name."""
        return [token for tokens in self._tokens for token in tokens.all if token.name]

    def user(self, authorization: bytes) -> str:
        """Whose token an admitted request shows; empty where it has no name."""
        found = self._clients.find(authorization) if self._clients.named else None
        return "" if found is None else found.name

    def admits(self, scope: "Scope") -> bool:
        """Whether a request or a WebSocket has a token for its route, or needs none."""
        path, shown = scope["path"], authorization(scope["headers"])
        return path in self.open_paths or self.knows(scope.get("method", "GET"), path, shown)

    def knows(self, method: str, path: str, authorization: bytes) -> bool:
        """Whether a request has a token for its route; True if no token is needed."""
        if not self.closed:
            return True
        only = self._only.get((method, path))
        openers = (only,) if only else (self._clients, self._granted, *((self._metrics,) if path == METRICS else ()))
        if any(each.find(authorization) for each in openers):
            return True
        return bool(authorization) and any(each.find(authorization, look=True) for each in openers)

    def may_be_linked(self, scope: "Scope") -> bool:
        """Whether other sites may link to what this request asks for."""
        return False


class AccessGuard:
    """Passes requests and WebSockets that have access; `refuse` answers the others, whose bodies are not read.

    The app sees HEAD as GET: the server leaves the body out. `announced` is the host name that clients use.
    """

    def __init__(self, app: "ASGIApp", access: Access, refuse: "Refuse", announced: str | None = None) -> None:
        self._app, self._access, self._refuse, self._announced = app, access, refuse, announced

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        refused = self._refused(scope) if scope["type"] in ("http", "websocket") else None
        if refused is None:
            is_head = scope.get("method") == "HEAD"
            await self._app({**scope, "method": "GET"} if is_head else scope, receive, send)
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


def bearer(token: str) -> bytes:
    """A token as the Authorization header."""
    return b"Bearer " + token.encode()


def _hash(header: bytes) -> bytes:
    return hashlib.sha256(header).digest()
