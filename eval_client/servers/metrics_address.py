"""Where a client serves its metrics: the option `--metrics`, and the tokens."""

import re
import socket

from proctor.config.tokens import AccessTokens
from proctor.http.auth import Access
from proctor.http.server import ConfigError, is_loopback, listen

VARIABLE = "PROCTOR_METRICS"
_WHERE = re.compile(r"(?:(?P<host>[^\s:\[\]]+|\[[0-9A-Fa-f:.]+\]):)?(?P<port>[0-9]{1,5})")


def listener(where: str) -> socket.socket:
    """A socket at `[HOST:]PORT`, on loopback without a host.

    Raises ConfigError, and ValueError for a token that can't be used.
    """
    host, port = _parsed(where)
    if not (is_loopback(host) or metrics_access().closed):
        raise ConfigError(f"--metrics: {host} is open to other machines; set PROCTOR_TOKEN, or listen at 127.0.0.1")
    return listen(host, port)


def metrics_access() -> Access:
    """The tokens for the metrics, the same as for the servers': PROCTOR_TOKEN and PROCTOR_METRICS_TOKEN."""
    return Access(AccessTokens.of("PROCTOR_TOKEN"), AccessTokens.of("PROCTOR_METRICS_TOKEN"))


def _parsed(where: str) -> tuple[str, int]:
    found = _WHERE.fullmatch(where)
    if found is None or int(found["port"]) > 65535:
        raise ConfigError(f"--metrics: {where!r} is not [HOST:]PORT, such as 9464 or 0.0.0.0:9464")
    return (found["host"] or "127.0.0.1").strip("[]"), int(found["port"])
