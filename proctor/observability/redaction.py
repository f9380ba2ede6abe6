"""Removes secrets from everything that is printed, logged or stored about a failure.

Every secret that a process reads is registered here (`proctor.config.secrets` does it), so that it is found in every
form in which an error may repeat it.
"""

import base64
import functools
import json
import re
from urllib.parse import quote, quote_plus

SHORTEST = 8
"""Secrets of fewer characters are not searched for: they can't be distinguished from words."""
HIDDEN = "***"
MAX_ESCAPES = 8
"""Backslashes before a character, as in JSON nested in JSON; limited, so that no search takes long."""

_USERINFO = re.compile(r"(?<=://)(?:[^\s/@:'\"]*:[^\s/'\"]*|[^\s/@:'\"]+)@(?=[^\s/])")
_KEY_LIKE = re.compile(
    r"\b(?:(?:sk-|(?:Bearer|Basic) )[A-Za-z0-9._~+/=*-]{6,}"
    r"|(?:gsk_|xai-|nvapi-|hf_|gh[opsu]_|github_pat_|glpat-|AIza|AKIA|r8_|pplx-|fw_|csk-|tgp_v1_)(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{12,})"
)
"""Text that begins like a provider's key."""
_QUERY_KEY = re.compile(r"(?i)(?<=[?&])([\w.-]*(?:key|token|secret|password|signature|sig|auth)=)[^&\s'\"#]+")
_RANDOM = re.compile(r"\b(?:[0-9a-fA-F]{32,}|(?=[A-Z0-9]*[a-z])(?=[a-z0-9]*[A-Z])(?=[A-Za-z]*\d)[A-Za-z0-9]{20,})\b")
"""A word that looks random: 32 or more hex digits, or 20 or more capitals, small letters and digits."""

_TOKEN = re.compile(r"[\w.~+/=:-]+", re.ASCII)
_PLACEHOLDER = re.compile(
    r"(?:(?:no|none|not|needed|required|necessary|needs|need|keys?|api|tokens?|dummy|fake|mock|tests?|testing|local"
    r"|host|placeholder|your|my|the|here|goes|empty|null|nothing|unused|any|thing|whatever|change|me|this|it|replace"
    r"|default|examples?|sample|demo|foo|bar|baz|password|pass|secret|sk|lm|studio|ollama|vllm|sglang|llama|cpp|openai"
    r"|model|auth|bearer|insert|put|with|without|for|is|x|abc|1234567890|123456789|12345678|1234567|123456|12345|1234|123"
    r"|0)[-_.:]*)+",
    re.IGNORECASE,
)

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that control a terminal or the direction of text; not line breaks and tabs."""

_forms: dict[str, None] = {}
"""Every registered secret in every form, the longest first."""
_secrets: dict[str, None] = {}
"""Every registered secret as it was read."""


def remember(secret: str) -> None:
    """Register a secret: `redacted` hides it from now on, also in its URL-quoted, base64, Python and JSON forms.

    Not one that is too short or a usual placeholder, such as `not-needed`.
    """
    if len(secret) < SHORTEST or secret in _forms or _PLACEHOLDER.fullmatch(secret):
        return
    written = {secret, repr(secret)[1:-1]}
    forms = {quote(secret), quote(secret, safe=""), quote_plus(secret)}
    forms |= written | {json.dumps(each)[1:-1] for each in written}
    forms |= {form for lead in range(3) for form in _base64(secret, lead)}
    known = sorted({*_forms, *(form for form in forms if len(form) >= SHORTEST)}, key=len, reverse=True)
    _forms.clear()
    _forms.update(dict.fromkeys(known))
    _secrets[secret] = None


def found_in(secret: str, text: str) -> bool:
    """Whether a secret stands in a text, such as a JSON body, however its characters are escaped."""
    return secret in text or (_is_escaped(text) and _pattern(secret).search(text) is not None)


def is_real_key(text: str) -> bool:
    """Whether a key may be one that a provider gave, and not what people set for servers that want none.

    Those are short, or one word, or of words such as `not-needed`, or no token at all, such as a piece of JSON.
    """
    one_word = text.isalpha() and len(text) < 2 * SHORTEST
    return (
        len(text) >= SHORTEST and _TOKEN.fullmatch(text) is not None and not (one_word or _PLACEHOLDER.fullmatch(text))
    )


def looks_secret(text: str) -> bool:
    """Whether a user's value may be a key, judged by its first characters and its randomness."""
    return any(shape.search(text) for shape in (_KEY_LIKE, _QUERY_KEY, _RANDOM))


def redacted(text: str) -> str:
    """The text with every registered secret, user info in URLs and anything that looks like a key hidden.

    Control characters, which could control the terminal, are replaced by escapes such as `\\x1b`.
    """
    for form in _forms:
        if form in text:
            text = text.replace(form, HIDDEN)
    if _is_escaped(text):
        for secret in _secrets:
            text = _pattern(secret).sub(HIDDEN, text)
    text = _QUERY_KEY.sub(r"\1" + HIDDEN, _KEY_LIKE.sub(HIDDEN, _USERINFO.sub(HIDDEN + "@", text)))
    return visible(text)


def visible(text: str) -> str:
    """The text with characters that control a terminal or the direction of text as escapes, such as `\\x1b`."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def _is_escaped(text: str) -> bool:
    """Whether a text may hold a key's characters as JSON escapes."""
    return "\\u00" in text or "\\/" in text


@functools.cache
def _pattern(secret: str) -> re.Pattern[str]:
    """Also matches its characters as JSON escapes, however often escaped."""
    return re.compile("".join(map(_any_spelling, secret)))


def _any_spelling(character: str) -> str:
    code = "".join(f"[{digit}{digit.upper()}]" for digit in f"{ord(character):04x}")
    return rf"\\{{0,{MAX_ESCAPES}}}+(?:{re.escape(character)}|(?<=\\)u{code})"


def _base64(secret: str, lead: int) -> tuple[str, str]:
    """The part of a base64 text that depends on the secret alone, `lead` bytes into a group; in both alphabets."""
    data = b"\0" * lead + secret.encode()
    sure = slice((0, 2, 3)[lead], len(data) * 8 // 6)
    return base64.b64encode(data).decode()[sure], base64.urlsafe_b64encode(data).decode()[sure]
