"""The one filter for everything that is printed, logged or stored about a failure: no secret passes.

Every secret that a process reads is remembered here (`environments.chat.settings.secret` does it), so that it is found
in whatever form an error may repeat it.
"""

import base64
import json
import re
from urllib.parse import quote, quote_plus

SHORTEST = 8
"""Secrets of fewer characters are not looked for: they can't be told from words."""
HIDDEN = "***"

_USERINFO = re.compile(r"(?<=://)(?:[^\s/@:'\"]*:[^\s/'\"]*|[^\s/@:'\"]+)@(?=[^\s/])")
_KEY_LIKE = re.compile(r"\b(?:sk-|(?:Bearer|Basic) )[A-Za-z0-9._~+/=*-]{6,}")

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What commands a terminal, or makes a text read otherwise than it is; not line breaks and tabs."""

_forms: dict[str, None] = {}
"""Every known secret in every form, the longest first."""


def remember(secret: str) -> None:
    """From now on no text holds this secret, nor its URL-quoted, base64, Python or JSON form, once it was redacted."""
    if len(secret) < SHORTEST or secret in _forms:
        return
    written = {secret, repr(secret)[1:-1]}
    forms = {quote(secret), quote(secret, safe=""), quote_plus(secret)}
    forms |= written | {json.dumps(each)[1:-1] for each in written}
    forms |= {form for lead in range(3) for form in _base64(secret, lead)}
    known = sorted({*_forms, *(form for form in forms if len(form) >= SHORTEST)}, key=len, reverse=True)
    _forms.clear()
    _forms.update(dict.fromkeys(known))


def redacted(text: str) -> str:
    """The text without any secret that is known, any user info in a URL, and anything that looks like a key.

    Control characters, with which a text could take hold of the terminal it is printed on, are shown as `\\x1b`.
    """
    for form in _forms:
        if form in text:
            text = text.replace(form, HIDDEN)
    text = _KEY_LIKE.sub(HIDDEN, _USERINFO.sub(HIDDEN + "@", text))
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def _base64(secret: str, lead: int) -> tuple[str, str]:
    """What is the same in every base64 text that holds the secret after so many other bytes, in both alphabets."""
    data = b"\0" * lead + secret.encode()
    sure = slice((0, 2, 3)[lead], len(data) * 8 // 6)
    return base64.b64encode(data).decode()[sure], base64.urlsafe_b64encode(data).decode()[sure]
