"""Who may see the viewer's pages: holders of a token, or, without a token, requests that no other web site made."""

import hashlib
import hmac
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie

from pydantic import SecretStr
from starlette.types import ASGIApp, Receive, Scope, Send

from proctor.http.origin_guard import rejection_reason

COOKIE = "proctor_view"
COOKIE_S = 12 * 3600
OPEN_PATHS = ("/healthz", "/login")
ASSETS = "/assets/"
TRIES, TRIES_S = 10, 60.0
"""Wrong logins within so many seconds, after which further ones wait."""
NO_LINKS = ("/api", "/events", "/login")
"""Paths that no link of another site opens."""

Refuse = Callable[[Scope, int, str], ASGIApp]
"""(request, status, reason) -> the answer."""


class ViewAccess:
    """The tokens that open the viewer; without any it is open to every program that reaches it."""

    def __init__(self, tokens: tuple[SecretStr, ...] = (), clock: Callable[[], float] = time.time) -> None:
        self._tokens = [token.get_secret_value().encode() for token in tokens]
        self._clock = clock
        self._ended: set[str] = set()
        self._wrong: deque[float] = deque(maxlen=TRIES)

    @property
    def closed(self) -> bool:
        """True where requests need a token."""
        return bool(self._tokens)

    def knows(self, _method: str, _path: str, authorization: bytes) -> bool:
        """Whether an Authorization header holds a token, compared in constant time; True where none is needed."""
        known = [hmac.compare_digest(authorization, b"Bearer " + token) for token in self._tokens]
        return any(known) or not known

    def admits(self, scope: Scope) -> bool:
        """Whether a request has a token or a valid cookie, or its path needs neither."""
        headers = dict(scope["headers"])
        if scope["path"] in OPEN_PATHS or scope["path"].startswith(ASSETS):
            return True
        return self.knows(scope["method"], scope["path"], headers.get(b"authorization", b"")) or self.is_valid(
            cookie_of(headers)
        )

    def log_in(self, token: str) -> str | None:
        """A cookie for a token; None where the token is wrong."""
        right = [hmac.compare_digest(token.encode(), known) for known in self._tokens]
        if any(right):
            self._wrong.clear()
            content = f"{int(self._clock()) + COOKIE_S}.{secrets.token_hex(8)}"
            return f"{content}.{self._sign(self._tokens[0], content)}"
        self._wrong.append(self._clock())
        return None

    def wait_s(self) -> float:
        """Seconds until the next login may be tried; 0 unless many were wrong of late."""
        if len(self._wrong) < TRIES:
            return 0.0
        return max(0.0, self._wrong[0] + TRIES_S - self._clock())

    def is_valid(self, cookie: str) -> bool:
        """Whether a cookie is one of ours that has neither expired nor been ended by a logout."""
        content, _, signature = cookie.rpartition(".")
        expires = content.partition(".")[0]
        if not self._tokens or cookie in self._ended or not _is_time(expires):
            return False
        signed = [hmac.compare_digest(signature.encode(), self._sign(key, content).encode()) for key in self._tokens]
        return any(signed) and self._clock() < int(expires)

    def log_out(self, cookie: str) -> None:
        """End a cookie; it is not accepted again while this process lives."""
        if self.is_valid(cookie):
            self._ended = {each for each in self._ended if self._clock() < int(each.partition(".")[0])} | {cookie}

    def _sign(self, token: bytes, content: str) -> str:
        return hmac.new(token, f"proctor view {content}".encode(), hashlib.sha256).hexdigest()


class ViewGuard:
    """Passes requests that may see what they ask for; `refuse` answers the others."""

    def __init__(self, app: ASGIApp, access: ViewAccess, refuse: Refuse) -> None:
        self._app, self._access, self._refuse = app, access, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http":
            if self._access.closed:
                if not self._access.admits(scope):
                    app = self._refuse(scope, 401, "this page needs a token")
            elif (cause := _foreign(scope)) is not None:
                app = self._refuse(scope, 403, f"{cause}, and this viewer has no token; set PROCTOR_VIEW_TOKEN")
        await app(scope, receive, send)


def cookie_of(headers: Mapping[bytes, bytes]) -> str:
    """The value of the viewer's cookie; empty where there is none."""
    try:
        found = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _is_time(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16


def _foreign(scope: Scope) -> str | None:
    """Why a request may come from another web site; None where it can't, or is a link to a page that was clicked."""
    headers = dict(scope["headers"])
    navigates = (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")) == (b"navigate", b"document")
    if navigates and scope["method"] == "GET" and not scope["path"].startswith(NO_LINKS):
        headers.pop(b"sec-fetch-site", None)
    return rejection_reason(headers)
