"""The hosts of a run: started as detached actors, awaited, and removed."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from proctor_ray.connect import ClusterError
from proctor_ray.forward import Forwarder
from proctor_ray.host import Hosted, HostStatus, NodeHost, ServerHost, address_of
from proctor_ray.placement import CPU, Resources, WorkerHost, described, unplaced

ANSWER_S = 5.0
STOP_S = 45.0
"""How long to wait for servers to end their sessions."""
MORE_S = 5.0
"""How long to wait for further workers once each task has one."""

Say = Callable[[str], None]


def start(hosted: Hosted, asks: Resources, host: type[NodeHost] = ServerHost) -> Any:
    """Start a new host and return its actor.

    Ray places it on a node with the resources `asks` free, and restarts it when it dies.
    """
    asked = {name: amount for name, amount in asks.items() if name != CPU}
    return (
        ray.remote(host)
        .options(
            name=hosted.name,
            lifetime="detached",
            max_restarts=-1,
            max_task_retries=0,
            num_cpus=asks.get(CPU, 0.0),
            resources=asked,
            scheduling_strategy="SPREAD",
        )
        .remote(hosted)
    )


def await_server(name: str, actor: Any, patience_s: float, say: Say) -> None:
    """Wait until a server that needs no resources listens. Raises ClusterError."""
    reference = actor.status.remote()
    if not ray.wait([reference], timeout=patience_s)[0]:
        raise ClusterError(f"{name}: no node has started it within {patience_s:g} s; see `ray status`")
    _say_url(name, _status(name, reference), say)


def await_workers(hosts: Sequence[WorkerHost], actors: Sequence[Any], patience_s: float, say: Say) -> None:
    """Wait until every task has a worker, and at most MORE_S for the other workers. Raises ClusterError."""
    pending = {actor.status.remote(): host for host, actor in zip(hosts, actors, strict=True)}
    up: set[str] = set()
    ends = time.monotonic() + patience_s
    covered = False
    while pending and (left_s := ends - time.monotonic()) > 0:
        for reference in ray.wait(list(pending), timeout=left_s)[0]:
            name = pending.pop(reference).name
            _say_url(name, _status(name, reference), say)
            up.add(name)
        if not covered and not unplaced(hosts, up):
            covered, ends = True, min(ends, time.monotonic() + MORE_S)
    for host in pending.values():
        say(f"{host.name} has not started: perhaps no node has {described(host.asks)} free; it starts when one has")
    if tasks := unplaced(hosts, up):
        asks = described(next(iter(pending.values())).asks)
        raise ClusterError(
            f"tasks {', '.join(tasks)}: no worker within {patience_s:g} s; each needs a node with {asks} free: "
            "add a node, free one (`ray status` shows what is taken), or raise limits.patience_s"
        )


def _status(name: str, reference: object) -> HostStatus:
    try:
        status: HostStatus = ray.get(reference, timeout=ANSWER_S)
    except RayTaskError as error:
        raise ClusterError(f"{error.cause}") from error
    except (RayActorError, GetTimeoutError) as error:
        reason = next((line for line in reversed(str(error).splitlines()) if "Error" in line), str(error)).strip()
        raise ClusterError(
            f"{name}: Ray could not start it: {reason}; Proctor {version('proctor')} with the extra `ray` must be "
            "installed on every node, in the environment that `ray start` was called from"
        ) from error
    if status.version != version("proctor"):
        raise ClusterError(
            f"{name}: node {status.node} has Proctor {status.version}, this machine {version('proctor')}; "
            "install the same version on all"
        )
    return status


def _say_url(name: str, status: HostStatus, say: Say) -> None:
    say(f"{name}: {status.url} on node {status.node}")


def take_down(namespace: str) -> int:
    """Stop and remove all hosts of a run; returns their number."""
    named = [each["name"] for each in ray.util.list_named_actors(all_namespaces=True) if each["namespace"] == namespace]
    actors = [found for name in named if (found := _found(name, namespace)) is not None]
    alive = {actor.node.remote(): actor for actor in actors}
    answered = ray.wait(list(alive), num_returns=len(alive), timeout=ANSWER_S)[0] if alive else []
    stopping = [alive[reference].stop.remote() for reference in answered]
    if stopping:
        ray.wait(stopping, num_returns=len(stopping), timeout=STOP_S)
    for actor in actors:
        ray.kill(actor, no_restart=True)
    return len(actors)


def _found(name: str, namespace: str) -> Any:
    with contextlib.suppress(ValueError):  # ended meanwhile
        return ray.get_actor(name, namespace)
    return None


@contextlib.contextmanager
def addresses(namespace: str, names: Sequence[str]) -> Iterator[dict[str, str]]:
    """name -> a local base URL that forwards to the host's server, wherever that runs, while inside."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True, name="to the cluster")
    thread.start()

    async def opened() -> list[tuple[Forwarder, str]]:
        return [await address_of(name, namespace) for name in names]

    async def closed() -> None:
        await asyncio.gather(*(forwarder.close() for forwarder, _ in found))

    found: list[tuple[Forwarder, str]] = []
    try:
        found = asyncio.run_coroutine_threadsafe(opened(), loop).result()
        yield {name: url for name, (_, url) in zip(names, found, strict=True)}
    finally:
        asyncio.run_coroutine_threadsafe(closed(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
