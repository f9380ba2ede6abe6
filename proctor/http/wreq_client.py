"""What our HTTP client needs of wreq: its settings, its thread, and what its replies and errors say."""

import functools
import os
import re
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import wreq

CONNECT_S = 10.0
KEEP_ALIVE_S = 30.0
LONGEST_S = 365 * 86_400.0
"""A longer deadline is none."""
MAX_HEAD_BYTES = 1 << 17
MAX_HEADERS = 1_000
NAME = re.compile(r"[A-Za-z0-9._-]+")
REASON = re.compile(r'(?:message|reason|error): "([^"]+)"|error: (\w+)|Error\((\w+(?:\(\w+\))?)\)|Some\((\w+)\)')
Address: TypeAlias = IPv4Address | IPv6Address
Hosts: TypeAlias = Mapping[str, Sequence[Address]]
Resolve: TypeAlias = Callable[[str], Sequence[Address]]


class ReplyHeaders(Mapping[str, str]):
    """A reply's headers. Each is decoded when it is looked up: hardly any are."""

    __slots__ = ("_headers",)

    def __init__(self, headers: "wreq.HeaderMap") -> None:
        self._headers = headers

    def __getitem__(self, name: str) -> str:
        value = self._headers.get(name)
        if value is None:
            raise KeyError(name)
        return str(value, "utf-8", "surrogateescape")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._headers.contains_key(name)

    def __iter__(self) -> Iterator[str]:
        return (str(name, "ascii") for name, _ in self._headers)

    def __len__(self) -> int:
        return self._headers.keys_len()


def wreq_client(tls: "wreq.ClientConfig", hosts: Hosts, proxied: bool, proxy: str | None) -> "wreq.Client":
    """A client with these settings beside those of all our clients; `hosts` are not looked up.

    `proxied`: variables name its proxy.
    """
    import wreq

    names = wreq.DnsOptions(system_dns=True)
    for host, addresses in hosts.items():
        names.add_resolve(host, addresses)
    settings: wreq.ClientConfig = {
        "runtime": _runtime(os.getpid()),
        "user_agent": "proctor",
        "redirect": wreq.redirect.Policy.none(),
        "cookie_store": False,
        "http1_only": True,
        "http1_options": wreq.Http1Options(max_buf_size=MAX_HEAD_BYTES, max_headers=MAX_HEADERS),
        "connect_timeout": timedelta(seconds=CONNECT_S),
        "pool_idle_timeout": timedelta(seconds=KEEP_ALIVE_S),
        "gzip": False,
        "brotli": False,
        "deflate": False,
        "zstd": False,
        "dns_options": names,
        **tls,
    }
    if proxy is not None:
        settings["proxies"] = [wreq.Proxy.all(proxy)]
    elif not proxied:
        settings["no_proxy"] = True
    return wreq.Client(**settings)


@functools.cache
def _runtime(process: int) -> "wreq.Runtime":
    """The thread that a process's requests run on; a forked process needs another."""
    import wreq

    return wreq.Runtime(workers=1, work_steal=False, thread_name="http")


@functools.lru_cache(maxsize=64)
def total_timeout(deadline_s: float) -> timedelta:
    """A deadline as wreq takes it; the same few are used again and again."""
    return timedelta(seconds=max(0.0, min(deadline_s, LONGEST_S)))


@functools.lru_cache(maxsize=1024)
def host_of(origin: str) -> tuple[str, str]:
    """The name of an origin's host, empty for an address, and the origin with the host in lower case. Raises OSError.

    OSError is for a name that wreq might spell differently.
    """
    parts, name = urlsplit(origin), urlsplit(origin).hostname or ""
    try:
        ip_address(name)
        name = ""
    except ValueError:
        if not NAME.fullmatch(name):
            raise OSError(None, f"{name!r} is no host name in plain ASCII") from None
    return name, parts._replace(netloc=parts.netloc.lower()).geturl()


@functools.cache
def wreq_errors() -> tuple[type[Exception], ...]:
    import wreq

    connecting = (wreq.ConnectionError, wreq.ProxyConnectionError, wreq.TlsError, wreq.TimeoutError)
    exchanging = (wreq.ConnectionResetError, wreq.BodyError, wreq.DecodingError, wreq.RequestError)
    return (*connecting, *exchanging, wreq.BuilderError)


def cause_of(error: Exception) -> OSError | None:
    """What callers tell apart: the system's error and a failure of TLS. The error itself would show the URL."""
    if system := re.search(r"\bOs \{ code: (\d+)", str(error)):
        return OSError(int(system[1]), reason_of(error))
    return ssl.SSLError(reason_of(error)) if 'library: "SSL routines"' in str(error) else None


def reason_of(error: Exception) -> str:
    """What wreq's error says, without its debug form, which shows the URL with its query."""
    said = REASON.search(str(error).partition("{")[2])
    text = type(error).__name__ if said is None else said[said.lastindex or 0]
    return text.replace("_", " ").lower() if text.isupper() else text
