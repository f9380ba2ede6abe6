"""Access to the gateway: a bearer token, or the same token in the path, for clients that can send no header."""

import hmac

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from proctor.http.origin_guard import OriginGuard
from task_server.http.access import OPEN_PATHS


class GatewayAccess:
    """The token of a gateway; without one it is open to every process that reaches it.

    A path `/t/TOKEN/rest` is `/rest` with the token.
    """

    def __init__(self, token: str | None) -> None:
        self._token = token
        self._prefix = f"/t/{token}"

    def knows(self, method: str, path: str, authorization: bytes) -> bool:
        """Whether a request has the token, compared in constant time; True if none is needed."""
        if self._token is None:
            return True
        return hmac.compare_digest(authorization, b"Bearer " + self._token.encode()) or self._in(path)

    def without_token(self, path: str) -> str:
        """The path of a request without the token in it."""
        return path.removeprefix(self._prefix) if self._in(path) else path

    def _in(self, path: str) -> bool:
        return hmac.compare_digest(path[: len(self._prefix) + 1].encode(), f"{self._prefix}/".encode())

    def guard(self, app: ASGIApp, announced: str | None) -> ASGIApp:
        """The app behind this access. `announced` is the host name that clients use."""
        return OriginGuard(app, _page_refused, announced) if self._token is None else _Door(app, self)


class _Door:
    """Passes on requests that have the token, without it in the path; others get 401."""

    def __init__(self, app: ASGIApp, access: GatewayAccess) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        shown = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        known = self._access.knows(scope.get("method", "GET"), scope["path"], shown)
        if known or scope["path"] in OPEN_PATHS:
            rest = self._access.without_token(scope["path"])
            await self._app({**scope, "path": rest, "raw_path": rest.encode()}, receive, send)
        else:
            text = "send `Authorization: Bearer TOKEN`, or begin the path with /t/TOKEN"
            refused = JSONResponse({"detail": text}, 401, {"www-authenticate": "Bearer", "connection": "close"})
            await refused(scope, receive, send)


def _page_refused(cause: str) -> ASGIApp:
    text = f"{cause}, and this server has no token; set PROCTOR_TOKEN"
    return JSONResponse({"detail": text}, 403, {"connection": "close"})
