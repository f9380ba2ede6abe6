"""Removes secrets from everything that is printed, logged or stored about a failure.

Every secret that a process reads is registered here (`proctor.config.secrets` does it), so that it is found in every
form in which an error may repeat it.
"""

import base64
import functools
import re

SHORTEST = 8
"""Secrets of fewer characters are not searched for: they can't be distinguished from words."""
HIDDEN = "***"
MAX_ESCAPES = 8
"""How often a text may be escaped, as JSON in JSON in a URL; limited, so that no search takes long."""
LONGEST = 1 << 18
"""Characters up to which only the secret in a text is hidden where it is escaped; of more, the whole text."""

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
    r"[-_.:<>{}$*]*(?:(?:no|none|not|needed|required|necessary|needs|need|keys?|api|tokens?|dummy|fake|mock|tests?|testing|local"
    r"|host|placeholder|your|my|the|here|goes|empty|null|nothing|unused|any|thing|whatever|change|me|this|it|replace"
    r"|default|examples?|sample|demo|foo|bar|baz|password|pass|secret|sk|lm|studio|ollama|vllm|sglang|llama|cpp|openai"
    r"|model|auth|bearer|insert|put|with|without|for|is|x|abc|1234567890|123456789|12345678|1234567|123456|12345|1234|123"
    r"|0|undefined|blank|todo|paste|enter|some)[-_.:<>{}$*]*)*",
    re.IGNORECASE,
)

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that control a terminal or the direction of text, and halves of characters; not line breaks and tabs."""
_ESCAPE = re.compile(
    r"\\{1,8}(?:u(H{4})|x(H{2})|u\{0{0,4}(H{1,5})\}|U000(H{5})|([0-3][0-7]{2}))"
    r"|%(?:u(H{4})|(H{2}))|&(?:#[xX]?H{1,7};?|[a-zA-Z][a-zA-Z0-9]{1,30};)".replace("H", "[0-9a-fA-F]")
)
"""A character as JSON, programming languages, URLs and HTML write it."""
_OCTAL = 5
"""The group of `_ESCAPE` that is octal, of those with digits."""
_QUOTES = dict.fromkeys(map(ord, "\\'\"\r\n\t"))
_BETWEEN = re.compile(r"\\+(?:[rnt][ \t]*)?|[\r\n\t][ \t]*|['\"]")
"""What quotes, and breaks lines, between the characters of a text."""

_forms: dict[str, None] = {}
"""Every registered secret in every form, the longest first."""
Spans = list[tuple[int, int]]


def is_secret(text: str) -> bool:
    """Whether a text is hidden once it is registered: not one that is too short, or a placeholder as `not-needed`."""
    return len(text) >= SHORTEST and not _PLACEHOLDER.fullmatch(text)


def remember(secret: str) -> None:
    """Register a secret, if it is one: `redacted` hides it from now on, in whatever way its characters are escaped."""
    if secret not in _forms and is_secret(secret):
        known = sorted({*_forms, *_forms_of(secret)}, key=len, reverse=True)
        _forms.clear()
        _forms.update(dict.fromkeys(known))


def found_in(secret: str, text: str) -> bool:
    """Whether a secret stands in a text, such as a JSON body, however its characters are escaped."""
    if secret in text:
        return True
    return any(map(_bare(text).__contains__, _forms_of(secret)))


@functools.lru_cache(maxsize=256)
def is_real_key(text: str) -> bool:
    """Whether a key may be one that a provider gave, and not what people set for servers that want none.

    Those are short, or one word, or of words such as `not-needed`, or no token at all, such as a piece of JSON.
    """
    is_short = len(text) < (2 * SHORTEST if text.isalpha() else SHORTEST)
    return not is_short and _TOKEN.fullmatch(text) is not None and not _PLACEHOLDER.fullmatch(text)


def looks_secret(text: str) -> bool:
    """Whether a user's value may be a key, judged by its first characters and its randomness."""
    found = (match[0] for shape in (_KEY_LIKE, _QUERY_KEY, _RANDOM) for match in shape.finditer(text))
    return any(not _PLACEHOLDER.fullmatch(each) for each in found)


def redacted(text: str) -> str:
    """The text with its secrets hidden, and control characters, which could control the terminal, as escapes."""
    return visible(hidden(text))


def hidden(text: str) -> str:
    """The text with every registered secret, user info in URLs and anything that looks like a key hidden.

    A JSON text stays one.
    """
    for form in _forms:
        if form in text:
            text = text.replace(form, HIDDEN)
    if _forms and (_ESCAPE.search(text) or _BETWEEN.search(text)):
        bare = _bare(text)
        if any(map(bare.__contains__, _forms)):
            text = _without_secrets(text)
    return _QUERY_KEY.sub(r"\1" + HIDDEN, _KEY_LIKE.sub(_hidden, _USERINFO.sub(HIDDEN + "@", text)))


def _hidden(like_a_key: re.Match[str]) -> str:
    return like_a_key[0] if _PLACEHOLDER.fullmatch(like_a_key[0]) else HIDDEN


def visible(text: str) -> str:
    """The text with characters that control a terminal or the direction of text as escapes, such as `\\x1b`.

    JSON stays JSON: those that may stand in it as they are get its own escapes, such as `\\u009b`.
    """
    return _CONTROL.sub(_escaped, text)


def _escaped(control: re.Match[str]) -> str:
    return ascii(control[0])[1:-1] if control[0] < "\x7f" else f"\\u{ord(control[0]):04x}"


def _without_secrets(text: str) -> str:
    """The text without the secrets that are escaped in it, with all that stands between their characters."""
    if len(text) > LONGEST:
        return HIDDEN
    spans = [(place, place + 1) for place in range(len(text))]
    bare = _bare(text, spans)
    hidden = [
        (spans[found.start()][0], spans[found.end() - 1][1])
        for form in _forms
        for found in re.finditer(re.escape(form), bare)
    ]
    kept, done = [], 0
    for start, end in sorted(hidden):
        kept += [text[done:start], HIDDEN] if start >= done else []
        done = max(done, end)
    return "".join([*kept, text[done:]])


def _bare(text: str, spans: Spans | None = None) -> str:
    """The text with its escapes decoded, without quotes, backslashes and line breaks.

    `spans` are where its characters stand in the text that was escaped; they are kept in step.
    """
    for _ in range(MAX_ESCAPES if "\\" in text or "%" in text or "&" in text else 0):
        decoded = _replaced(_ESCAPE, text, spans)
        if decoded == text:
            break
        text = decoded
    return _replaced(_BETWEEN, text, spans)


def _replaced(pattern: re.Pattern[str], text: str, spans: Spans | None) -> str:
    if spans is None and pattern is _BETWEEN:  # as below, for each reply of a model: ten times as fast
        text = text.replace(r"\n", "\n").replace(r"\r", "\r").replace(r"\t", "\t")
        return re.sub(r"[\r\n\t][ \t]+", "", text).translate(_QUOTES)
    if spans is None:
        return pattern.sub(_character, text)
    pieces: list[str] = []
    kept: Spans = []
    done = 0
    for found in pattern.finditer(text):
        start, end = found.span()
        new = "" if pattern is _BETWEEN else _character(found)
        pieces += [text[done:start], new]
        kept += [*spans[done:start], *[(spans[start][0], spans[end - 1][1])] * len(new)]
        done = end
    spans[:] = [*kept, *spans[done:]]
    return "".join([*pieces, text[done:]])


def _character(escape: re.Match[str]) -> str:
    if escape.lastindex is None:
        import html  # few texts need its names

        return html.unescape(escape[0])
    return chr(int(escape[escape.lastindex], 8 if escape.lastindex == _OCTAL else 16))


@functools.cache
def _forms_of(secret: str) -> tuple[str, ...]:
    """What of a secret may stand in a text without escapes."""
    data = secret.encode("utf-8", "surrogatepass")
    written = {secret, data.decode("latin-1")}
    forms = {data.hex(), data.hex().upper(), *written, *map(_bare, written)}
    forms |= {form.replace(" ", "+") for form in forms}
    forms |= {form for lead in range(3) for form in _base64(data, lead)}
    return tuple(form for form in forms if len(form) >= SHORTEST)


def _base64(data: bytes, lead: int) -> tuple[str, str]:
    """The part of a base64 text that depends on a secret alone, `lead` bytes into a group; in both alphabets."""
    sure = slice((0, 2, 3)[lead], (len(data) + lead) * 8 // 6)
    data = b"\0" * lead + data
    return base64.b64encode(data).decode()[sure], base64.urlsafe_b64encode(data).decode()[sure]


def plain(words: str) -> str:
    """A text on one line, without secrets and control characters."""
    return " ".join(redacted(words).split())
