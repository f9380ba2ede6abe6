"""Finds the address that others reach this process by, when `--advertise` is not given."""

import logging
import socket
import time
from urllib.parse import urlsplit

log = logging.getLogger(__name__)

RETRY_S = 1.0
ANYWHERE = {"0.0.0.0": socket.AF_INET, "::": socket.AF_INET6}
"""Hosts that mean all addresses of this machine."""


def address_towards(url: str, family: socket.AddressFamily) -> str:
    """The local address of this machine's route to a URL's host; nothing is sent. Raises OSError."""
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    kind = socket.SOCK_DGRAM  # connecting a datagram socket only chooses a route
    *_, target = socket.getaddrinfo(parts.hostname, port, family, kind)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(target)
        return str(probe.getsockname()[0])


def reached_by(host: str, controller: str) -> str:
    """The host to announce for a process that listens at `host`.

    If it listens at all addresses: the local address of the route to the controller, or the machine's name without a
    controller. This blocks until the controller's name resolves, as an orchestrator starts both at once.
    """
    if host not in ANYWHERE:
        return host
    if not controller:
        return socket.gethostname()
    warned = False
    while True:
        try:
            return address_towards(controller, ANYWHERE[host])
        except OSError as error:
            if not warned:
                log.warning("no route to the controller %s yet: %s", controller, error)
            warned = True
            time.sleep(RETRY_S)
