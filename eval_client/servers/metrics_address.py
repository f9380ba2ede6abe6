"""Where a client serves its metrics: the option `--metrics`, the ports for clients of `--shards`, and the tokens."""

import os
import re
import socket

from proctor.config.secrets import secret
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


def of_shard(number: int) -> dict[str, str]:
    """The environment variable for the nth client of `--shards`, from 1: each listens one port further."""
    where = os.environ.get(VARIABLE)
    if not where:
        return {}
    host, port = _parsed(where)
    return {VARIABLE: f"{f'[{host}]' if ':' in host else host}:{port + number - 1 if port else 0}"}


def metrics_access() -> Access:
    """The tokens for the metrics, the same as for the servers': PROCTOR_TOKEN and PROCTOR_METRICS_TOKEN."""
    token, metrics_token = secret("PROCTOR_TOKEN"), secret("PROCTOR_METRICS_TOKEN")
    shown = [each.get_secret_value() for each in (token, metrics_token) if each is not None]
    return Access(shown)


def _parsed(where: str) -> tuple[str, int]:
    found = _WHERE.fullmatch(where)
    if found is None or int(found["port"]) > 65535:
        raise ConfigError(f"--metrics: {where!r} is not [HOST:]PORT, such as 9464 or 0.0.0.0:9464")
    return (found["host"] or "127.0.0.1").strip("[]"), int(found["port"])
