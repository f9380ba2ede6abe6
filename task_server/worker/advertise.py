"""The address by which others reach this process, where nobody told it."""

import logging
import socket
import time
from urllib.parse import urlsplit

log = logging.getLogger(__name__)

RETRY_S = 1.0
ANYWHERE = {"0.0.0.0": socket.AF_INET, "::": socket.AF_INET6}
"""Hosts that mean all addresses of this machine."""


def address_towards(url: str, family: socket.AddressFamily) -> str:
    """The address from which this machine speaks to a URL's host; nothing is sent. Raises OSError."""
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    kind = socket.SOCK_DGRAM  # connecting one only chooses a route
    *_, target = socket.getaddrinfo(parts.hostname, port, family, kind)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(target)
        return str(probe.getsockname()[0])


def reached_by(host: str, controller: str) -> str:
    """The host that a process announces which listens at `host` and reports to a controller.

    Where it listens at all addresses, that is the one on the way to the controller, waited for until the controller's
    name is known: an orchestrator starts both at once. Without a controller it is the machine's name.
    """
    if host not in ANYWHERE:
        return host
    if not controller:
        return socket.gethostname()
    said = False
    while True:
        try:
            return address_towards(controller, ANYWHERE[host])
        except OSError as error:
            if not said:
                log.warning("no way to the controller %s yet: %s", controller, error)
            said = True
            time.sleep(RETRY_S)
