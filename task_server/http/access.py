"""The tokens of workers."""

import functools
import hashlib
import hmac
from collections.abc import Callable
from urllib.parse import urlsplit

from proctor.config.tokens import AccessTokens, Token
from proctor.http.auth import NO_TOKENS, Access


@functools.lru_cache(maxsize=1 << 14)
def token_for(token: str, url: str) -> str:
    """The token of the worker at a URL, derived from the clients' token, which is never sent to a worker.

    64 hex digits of HMAC-SHA256 over the URL's origin. Neither the clients' token nor another worker's follows from it.
    """
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}".lower()
    return hmac.new(token.encode(), f"proctor worker {origin}".encode(), hashlib.sha256).hexdigest()


def worker_access(url: str, tokens: AccessTokens, metrics: AccessTokens = NO_TOKENS, *, lone: bool = True) -> Access:
    """The tokens of the worker at a URL: see `forms_at`."""
    return Access(tokens, metrics=metrics, forms=forms_at(url, lone=lone))


def forms_at(*urls: str, lone: bool) -> Callable[[Token], tuple[Token, ...]]:
    """What a worker at these URLs accepts for a token of clients: it, and what is derived from it for each.

    A controller sends a derived one for all users, so with one the user is whom it names.
    """

    def forms(token: Token) -> tuple[Token, ...]:
        derived = [token._replace(text=token_for(token.text, url)) for url in urls]
        return token, *(each if lone else each._replace(name="") for each in derived)

    return forms
