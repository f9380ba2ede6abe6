"""How an endpoint is reached, beside its URL: headers, query, key, proxy and TLS, as in plans and task files."""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from proctor.config.problems import FieldError
from proctor.config.wording import ENV_PROXY
from proctor.http import is_loopback
from proctor.observability.redaction import looks_secret
from proctor.types import Value

INSECURE_TLS = "PROCTOR_INSECURE_TLS"
CONVERSATION = "{conversation}"
KEPT_OUT = "keys stay out of files; write the NAME of a variable instead, as ${NAME}"
OWN_HEADERS = frozenset(
    {"accept-encoding", "connection", "content-encoding", "content-length", "content-type", "host", "transfer-encoding"}
)
PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")
VARIABLES = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SECRET_NAME = re.compile(
    r"(?:^|[-_.])(?:api-?key|apikey|key|auth|authorization|cookie|token|secret|password|sig)$", re.I
)


def _left_out(default: Any, **limits: Any) -> Any:
    """A field that dumps hold only where it is set, so that earlier ones stay equal."""
    return Field(default=default, exclude_if=lambda value: value == default, **limits)


def _template(name: str, text: str) -> None:
    """Raises FieldError where a value can't be sent, or may be a key."""
    rest = VARIABLES.sub("", text)
    if not (text.isascii() and text.isprintable()):
        raise FieldError((name,), "holds characters that can't be sent; use plain ASCII")
    if "${" in rest:
        raise FieldError((name,), "holds `${` without the name of a variable; write ${NAME}")
    if looks_secret(rest) or (rest == text and _SECRET_NAME.search(name) and CONVERSATION not in text):
        raise FieldError((name,), f"may hold a key; {KEPT_OUT}")


def _headers(headers: dict[str, str]) -> dict[str, str]:
    seen = set[str]()
    for name in headers:
        if not _TOKEN.fullmatch(name):
            raise FieldError((name,), "is no name of a header")
        if name.lower() in OWN_HEADERS:
            raise FieldError((name,), "is set by Proctor; remove it")
        if name.lower() in seen:
            raise FieldError((name,), "stands here twice; remove one of them")
        seen.add(name.lower())
    return _templates(headers)


def _templates(values: dict[str, str]) -> dict[str, str]:
    for name, text in values.items():
        _template(name, text)
    return values


def _words(words: tuple[str, ...]) -> tuple[str, ...]:
    if any(looks_secret(word) for word in words):
        raise ValueError(f"a word looks like a key; {KEPT_OUT}, or a program that prints the key")
    if words and not words[0].strip():
        raise ValueError("begins with an empty word; begin with a program")
    return words


def _proxy(proxy: str | None) -> str | None:
    if proxy is not None and proxy != ENV_PROXY and not VARIABLES.fullmatch(proxy):
        proxy_url(proxy)
        if urlsplit(proxy).username is not None:
            raise ValueError("must hold no user name and password; put the whole URL in a variable: ${NAME}")
    return proxy


def proxy_url(text: str, where: str = "") -> None:
    """Raises ValueError where a text is no proxy's URL; it is not repeated, since it may hold a password."""
    try:
        url = urlsplit(text)
        known = url.scheme in PROXY_SCHEMES and url.hostname and url.port != 0
    except ValueError:
        known = False
    if not known:
        hint = "must be a URL such as http://proxy.example:3128, the NAME of a variable as ${NAME}, or `env`"
        raise ValueError(where + hint)


class EndpointTls(Value):
    """TLS to an endpoint, beside the plan's own `tls`."""

    verify: bool = True
    """False: its certificate is not checked, so anybody on the way may read keys and change answers. Only for this
    machine itself, or where PROCTOR_INSECURE_TLS=1 is set; the report says so."""


UNVERIFIED = (
    f"false is only for an endpoint of this machine; name its authority in the plan's `tls.ca`, or set {INSECURE_TLS}=1"
)


def unverified(url: str | None) -> bool:
    """Whether a certificate may not go unverified at an endpoint."""
    return not (is_loopback(urlsplit(url).hostname if url else None) or os.environ.get(INSECURE_TLS) == "1")


class ConnectionFields(Value):
    """How an endpoint is reached, beside its URL."""

    headers: Annotated[dict[str, str], AfterValidator(_headers)] = _left_out({})
    """Headers to send; values may hold the NAME of a variable, `${NAME}`, and `{conversation}`, an id of the trial's
    attempt for routers that keep a conversation at one server (in `sampling` too, as in `prompt_cache_key`)."""
    query: Annotated[dict[str, str], AfterValidator(_templates)] = _left_out({})
    """Query parameters, such as Azure's `api-version`; values may hold the NAME of a variable, `${NAME}`."""
    api_key_file: Path | None = _left_out(None)
    """A file that holds the key, in place of `api_key_env`; read again when it changes."""
    api_key_command: Annotated[tuple[str, ...], AfterValidator(_words)] = _left_out(())
    """The words of a command that prints the key, in place of `api_key_env`; no shell reads them, and it may take 30 s.
    Asked again after `key_ttl_s`, and after a 401 or 403, then every 30 s at most. Only the plan at
    hand counts, never a stored one."""
    key_ttl_s: float = _left_out(3000.0, gt=0)
    """Seconds that a key printed by `api_key_command` is used."""
    api_key_header: Literal["authorization", "api-key", "x-api-key"] | None = _left_out(None)
    """The header of the key: `authorization` (as `Bearer`) if absent, with dialect `messages` `x-api-key`; Azure's is
    `api-key`."""
    proxy: Annotated[str | None, AfterValidator(_proxy)] = _left_out(None)
    """A proxy's URL, the NAME of a variable that holds one as `${NAME}`, or `env` for the variables HTTPS_PROXY,
    HTTP_PROXY and NO_PROXY, which count only then."""
    stream: bool = _left_out(False)
    """True: answers are streamed, for gateways that cut long ones, and put together before they are read."""
    tls: EndpointTls = _left_out(EndpointTls.model_construct())

    @model_validator(mode="after")
    def _one_source(self) -> "ConnectionFields":
        if self.api_key_file is not None and self.api_key_command:
            raise FieldError(("api_key_file",), "the key has a command too; remove one of them")
        return self

    def named_variables(self) -> list[str]:
        """The variables that headers, query and proxy name."""
        texts = (*self.headers.values(), *self.query.values(), self.proxy or "")
        return [name for text in texts for name in VARIABLES.findall(text)]

    def relative_to(self, folder: Path) -> Self:
        """A copy with the path of the key's file resolved against a folder, normally that of the plan."""
        return self.model_copy(update={"api_key_file": self.api_key_file and folder / self.api_key_file})
