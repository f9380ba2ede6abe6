"""Admission of workers by address: sessions and tokens go to the announced address, so it must be the worker's own."""

import asyncio
import functools
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import urlsplit

from proctor.http import is_loopback
from task_server.wire.errors import BadRequest, Forbidden

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
LOOKUP_S = 2.0
MAX_HOSTS = 10_000
_is_loopback = functools.lru_cache(MAX_HOSTS)(is_loopback)

Admit = Callable[[str, str | None], Awaitable[bool]]
"""(a worker's announced URL, the address its connection comes from) -> whether the worker is verified to be at the URL.

False if the URL is allowed but not verified. Raises Forbidden or BadRequest if it is not allowed.
"""


async def loopback_only(url: str, peer: str | None) -> bool:
    """Admission for a controller without a token: any process could report, so only loopback addresses are allowed."""
    if not _is_loopback(_host(url)):
        raise Forbidden("url: a controller without a token accepts workers at loopback addresses only")
    return True


class WorkerAddresses:
    """Admits workers at the address that their connection comes from, or within the allowed ranges.

    Resolving for the controller's HTTP client, it returns only the addresses that were admitted for a host, even if the
    host's DNS records have changed since.
    """

    def __init__(
        self, allowed: Sequence[Network] = (), lookup: Callable[[str], Awaitable[Sequence[str]]] | None = None
    ):
        self._allowed = allowed
        self._lookup = lookup or _lookup
        self._admitted: dict[str, tuple[Address, ...]] = {}

    async def admit(self, url: str, peer: str | None) -> bool:
        """True if the worker's connection comes from the URL's address, False if that is only in an allowed range.

        Raises Forbidden, BadRequest.
        """
        host, speaker = _host(url), _address(peer or "")
        found = [address for address in map(_address, await self._addresses(host)) if address is not None]
        own = tuple(address for address in found if speaker is not None and _is_at(speaker, address))
        admitted = own or tuple(address for address in found if any(address in network for network in self._allowed))
        if not admitted:
            shown = ", ".join(map(str, found[:4])) or "no address"
            raise Forbidden(
                f"url: {host} is {shown}, but the worker's connection comes from {peer}; announce that address "
                "(--advertise), or allow the range at the controller (--allow-workers CIDR)"
            )
        if len(self._admitted) < MAX_HOSTS:
            self._admitted[host] = admitted
        return bool(own)

    def resolve(self, host: str) -> Sequence[Address]:
        """The admitted addresses of a host. Raises OSError if there are none."""
        if host not in self._admitted:
            raise OSError(None, f"no worker was admitted at {host}")
        return self._admitted[host]

    async def _addresses(self, host: str) -> Sequence[str]:
        if _address(host) is not None:
            return [host]
        try:
            async with asyncio.timeout(LOOKUP_S):
                return await self._lookup(host)
        except (OSError, UnicodeError, TimeoutError):  # without a name server, admitted workers stay admitted
            return list(map(str, self._admitted.get(host, ())))


def _is_at(speaker: Address, announced: Address) -> bool:
    """Whether a worker that connects from `speaker` may announce this address.

    It may announce the same address; a worker on this machine may announce any address of this machine.
    """
    if announced.is_link_local or announced.is_unspecified or announced.is_multicast:
        return False
    return announced == speaker or (speaker.is_loopback and _is_ours(announced))


def _is_ours(address: Address) -> bool:
    """Whether an address belongs to this machine: if so, a socket can be bound to it."""
    with socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(address), 0))
        except OSError:
            return False
    return True


async def _lookup(host: str) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(target[0]) for *_, target in found))


@functools.lru_cache(MAX_HOSTS)
def _host(url: str) -> str:
    try:
        host = urlsplit(url).hostname
    except ValueError as error:
        raise BadRequest(f"url: {error}") from error
    if not host:
        raise BadRequest("url: has no host")
    return host


@functools.lru_cache(MAX_HOSTS)
def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
