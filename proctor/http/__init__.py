"""The HTTP client, and what all our HTTP servers share."""

import ipaddress


def is_loopback(host: str | None) -> bool:
    """True where a host names this machine only."""
    if host == "localhost":
        return True
    try:
        return host is not None and ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
