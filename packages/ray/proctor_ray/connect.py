"""Connects to a Ray cluster and lists its nodes."""

import os
import socket

PROBE_S = 5.0


class ClusterError(ValueError):
    """The cluster can't be used as asked; the message names the fix."""


def namespace_of(run: str) -> str:
    """The Ray namespace of a run's actors."""
    return f"proctor-{run}"


def join(address: str, namespace: str, *, verbose: bool = False) -> None:
    """Connect to the cluster at `HOST:PORT`, or `auto`: the one that this machine belongs to. Raises ClusterError.

    `verbose` prints the output of hosts here.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL", "minor")
    try:
        import ray
        from ray.exceptions import RayError
    except ImportError as error:
        raise ClusterError("--ray: Ray is not installed here; pip install 'proctor[ray]'") from error
    if address != "auto":
        _probe(address)
    try:
        ray.init(address, namespace=namespace, log_to_driver=verbose, logging_level="INFO" if verbose else "ERROR")
    except (ConnectionError, RayError, RuntimeError, ValueError) as error:
        raise ClusterError(f"--ray {address}: {_trouble(error)}") from error


def _trouble(error: Exception) -> str:
    """Why Ray refuses the connection, and the fix."""
    if "Version mismatch" in str(error):
        same = "All nodes and this machine need the same Ray and the same minor version of Python."
        return f"{' '.join(str(error).split())} {same}"
    if "AuthenticationError" in f"{error!r} {error.__context__!r}":  # as text, where Ray tried several times
        return (
            "the cluster's token is not known here: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or ~/.ray/auth_token "
            "to the token of its nodes"
        )
    if isinstance(error, RuntimeError):
        return f"{_first_line(error)}; is this machine a node of the cluster?"
    return f"{_first_line(error)}; make this machine a node: ray start --address=HOST:PORT"


def _probe(address: str) -> None:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or "/" in address:
        raise ClusterError(
            f"--ray {address}: give HOST:PORT of the head node as `ray start` takes it, or `auto`; "
            "Ray's client (ray://) is not used: run this on a machine of the cluster"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), PROBE_S).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"--ray {address}: nothing answers there: {error}; start it: ray start --head") from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def nodes() -> list[dict[str, float]]:
    """The total resources of every live node."""
    import ray

    return [dict(node["Resources"]) for node in ray.nodes() if node["Alive"]]
