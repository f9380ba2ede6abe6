"""The one filter for everything that is printed, logged or stored about a failure: no secret passes.

Every secret that a process reads is remembered here (`proctor.config.secrets.secret` does it), so that it is found
in whatever form an error may repeat it.
"""

import base64
import json
import re
from urllib.parse import quote, quote_plus

SHORTEST = 8
"""Secrets of fewer characters are not looked for: they can't be told from words."""
HIDDEN = "***"
MAX_ESCAPES = 8
"""Backslashes before a character: JSON within JSON within JSON. A bound, so that no text takes long to look through."""

_USERINFO = re.compile(r"(?<=://)(?:[^\s/@:'\"]*:[^\s/'\"]*|[^\s/@:'\"]+)@(?=[^\s/])")
_KEY_LIKE = re.compile(
    r"\b(?:(?:sk-|(?:Bearer|Basic) )[A-Za-z0-9._~+/=*-]{6,}"
    r"|(?:gsk_|xai-|nvapi-|hf_|gh[opsu]_|github_pat_|glpat-|AIza|AKIA|r8_|pplx-|fw_|csk-|tgp_v1_)(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{12,})"
)
"""What providers' keys begin with."""
_QUERY_KEY = re.compile(r"(?i)(?<=[?&])([\w.-]*(?:key|token|secret|password|signature|sig|auth)=)[^&\s'\"#]+")
_RANDOM = re.compile(r"\b(?:[0-9a-fA-F]{32,}|(?=[A-Z0-9]*[a-z])(?=[a-z0-9]*[A-Z])(?=[A-Za-z]*\d)[A-Za-z0-9]{20,})\b")
"""A word that nobody made up: long, of hex digits, or of capitals, small letters and digits."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What commands a terminal, or makes a text read otherwise than it is; not line breaks and tabs."""

_forms: dict[str, None] = {}
"""Every known secret in every form, the longest first."""
_escaped: dict[str, re.Pattern[str]] = {}
"""Every known secret with any of its characters as a JSON escape, itself escaped again and again."""


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
    _escaped[secret] = re.compile("".join(map(_any_spelling, secret)))


def without(secret: str, text: str) -> str:
    """A text, such as a body in JSON, without a secret, however its characters are escaped there."""
    text = text.replace(secret, HIDDEN)
    return _pattern(secret).sub(HIDDEN, text) if _is_escaped(text) else text


def looks_secret(text: str) -> bool:
    """Whether a value that a user wrote may be a key, by its first characters or by how random it is."""
    return any(shape.search(text) for shape in (_KEY_LIKE, _QUERY_KEY, _RANDOM))


def redacted(text: str) -> str:
    """The text without any secret that is known, any user info in a URL, and anything that looks like a key.

    Control characters, with which a text could take hold of the terminal it is printed on, are shown as `\\x1b`.
    """
    for form in _forms:
        if form in text:
            text = text.replace(form, HIDDEN)
    if _is_escaped(text):
        for pattern in _escaped.values():
            text = pattern.sub(HIDDEN, text)
    text = _QUERY_KEY.sub(r"\1" + HIDDEN, _KEY_LIKE.sub(HIDDEN, _USERINFO.sub(HIDDEN + "@", text)))
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def _is_escaped(text: str) -> bool:
    """Whether characters of a key may stand there as JSON escapes."""
    return "\\u00" in text or "\\/" in text


def _pattern(secret: str) -> re.Pattern[str]:
    return _escaped.get(secret) or re.compile("".join(map(_any_spelling, secret)))


def _any_spelling(character: str) -> str:
    code = "".join(f"[{digit}{digit.upper()}]" for digit in f"{ord(character):04x}")
    return rf"\\{{0,{MAX_ESCAPES}}}+(?:{re.escape(character)}|(?<=\\)u{code})"


def _base64(secret: str, lead: int) -> tuple[str, str]:
    """What is the same in every base64 text that holds the secret after so many other bytes, in both alphabets."""
    data = b"\0" * lead + secret.encode()
    sure = slice((0, 2, 3)[lead], len(data) * 8 // 6)
    return base64.b64encode(data).decode()[sure], base64.urlsafe_b64encode(data).decode()[sure]
