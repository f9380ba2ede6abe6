"""Who may see the viewer's pages: holders of a token, or, without a token, requests that no other web site made."""

import hashlib
import hmac
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie

from starlette.types import Scope

from proctor.config.tokens import AccessTokens
from proctor.http.auth import Access, bearer

COOKIE = "proctor_view"
COOKIE_S = 12 * 3600
ASSETS = "/assets/"
TRIES, TRIES_S = 10, 60.0
"""Wrong logins within so many seconds, after which further ones wait."""
NO_LINKS = ("/api", "/login")
"""Paths that no link of another site opens."""


class ViewAccess(Access):
    """The tokens that open the viewer, and the cookies of logins; without tokens it is open to every process."""

    open_paths = frozenset({"/healthz", "/login"})

    def __init__(self, *tokens: AccessTokens, clock: Callable[[], float] = time.time) -> None:
        super().__init__(*tokens)
        self._clock = clock
        self._ended: set[str] = set()
        self._wrong: deque[float] = deque(maxlen=TRIES)

    def admits(self, scope: Scope) -> bool:
        """Whether a request has a token or a valid cookie, or its path needs neither."""
        if scope["path"].startswith(ASSETS) or super().admits(scope):
            return True
        return self.is_valid(cookie_of(dict(scope["headers"])))

    def knows(self, method: str, path: str, authorization: bytes) -> bool:
        """Whether a request has a token, or a valid cookie that was given in its place."""
        return super().knows(method, path, authorization) or self.is_valid(cookie_of({b"cookie": authorization}))

    def may_be_linked(self, scope: Scope) -> bool:
        """Whether a request is a link to a page that was clicked."""
        headers = dict(scope["headers"])
        navigates = (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")) == (b"navigate", b"document")
        return navigates and scope["method"] == "GET" and not scope["path"].startswith(NO_LINKS)

    def log_in(self, token: str) -> str | None:
        """A cookie for a token; None where the token is wrong."""
        if self._clients.find(bearer(token)) is not None:
            self._wrong.clear()
            content = f"{int(self._clock()) + COOKIE_S}.{secrets.token_hex(8)}"
            return f"{content}.{self._sign(token, content)}"
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
        if cookie in self._ended or not (expires.isascii() and expires.isdigit() and len(expires) < 16):
            return False
        keys = [token.text for tokens in self._tokens for token in tokens.all]
        signed = [hmac.compare_digest(signature.encode(), self._sign(key, content).encode()) for key in keys]
        return any(signed) and self._clock() < int(expires)

    def log_out(self, cookie: str) -> None:
        """End a cookie; it is not accepted again while this process lives."""
        if self.is_valid(cookie):
            self._ended = {each for each in self._ended if self._clock() < int(each.partition(".")[0])} | {cookie}

    def _sign(self, token: str, content: str) -> str:
        return hmac.new(token.encode(), f"proctor view {content}".encode(), hashlib.sha256).hexdigest()


def cookie_of(headers: Mapping[bytes, bytes]) -> str:
    """The value of the viewer's cookie; empty where there is none."""
    try:
        found = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value
