"""The tokens of workers."""

import hashlib
import hmac
from urllib.parse import urlsplit


def token_for(token: str, url: str) -> str:
    """The token of the worker at a URL, derived from the clients' token, which is never sent to a worker.

    64 hex digits of HMAC-SHA256 over the URL's origin. Neither the clients' token nor another worker's follows from it.
    """
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}".lower()
    return hmac.new(token.encode(), f"proctor worker {origin}".encode(), hashlib.sha256).hexdigest()
