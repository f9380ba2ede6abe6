"""Access to the gateway: a bearer token, or the same token in the path, for clients that can send no header."""

import hmac

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from proctor.http.auth import Access, AccessGuard


class GatewayAccess(Access):
    """The token of a gateway; without one it is open to every process that reaches it.

    A path `/t/TOKEN/rest` is `/rest` with the token.
    """

    def __init__(self, token: str | None) -> None:
        super().__init__([] if token is None else [token])
        self._prefix = f"/t/{token}"

    def knows(self, method: str, path: str, authorization: bytes) -> bool:
        """Whether a request has the token, compared in constant time; True if none is needed."""
        return super().knows(method, path, authorization) or self._in(path)

    def _in(self, path: str) -> bool:
        return hmac.compare_digest(path[: len(self._prefix) + 1].encode(), f"{self._prefix}/".encode())

    def guard(self, app: ASGIApp, announced: str | None) -> ASGIApp:
        """The app behind this access, without the token in its paths. `announced` is the host name that clients use."""

        async def without_token(scope: Scope, receive: Receive, send: Send) -> None:
            if self.closed and self._in(scope["path"]):
                rest = scope["path"].removeprefix(self._prefix)
                scope = {**scope, "path": rest, "raw_path": rest.encode()}
            await app(scope, receive, send)

        return AccessGuard(without_token, self, _refused, announced)


def _refused(_scope: Scope, status: int, cause: str) -> Response:
    if status == 403:
        text = f"{cause}, and this server has no token; set PROCTOR_TOKEN"
    else:
        text = "send `Authorization: Bearer TOKEN`, or begin the path with /t/TOKEN"
    return JSONResponse({"detail": text}, status)
