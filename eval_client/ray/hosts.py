"""The hosts of a run: brought up as detached actors, waited for, taken down again."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from eval_client.ray.connect import ClusterError
from eval_client.ray.forward import Forwarder
from eval_client.ray.host import Hosted, HostStatus, NodeHost, ServerHost, address_of
from eval_client.ray.placement import CPU, Resources, WorkerHost, described, unplaced

ANSWER_S = 5.0
STOP_S = 45.0
"""A server may take so long to end its sessions."""
MORE_S = 5.0
"""How long to wait for further workers once each task has one."""

Say = Callable[[str], None]


def start(hosted: Hosted, asks: Resources, host: type[NodeHost] = ServerHost) -> Any:
    """A host, anew: Ray starts it where there is room, and again wherever there is when it dies."""
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
    """Until a server listens that needs no place of its own. Raises ClusterError."""
    reference = actor.standing.remote()
    if not ray.wait([reference], timeout=patience_s)[0]:
        raise ClusterError(f"{name}: no node has started it within {patience_s:g} s; see `ray status`")
    _say_where(name, _standing(name, reference), say)


def await_workers(hosts: Sequence[WorkerHost], actors: Sequence[Any], patience_s: float, say: Say) -> None:
    """Until every task has a worker, and a little for the rest. Raises ClusterError."""
    pending = {actor.standing.remote(): host for host, actor in zip(hosts, actors, strict=True)}
    up: set[str] = set()
    ends = time.monotonic() + patience_s
    covered = False
    while pending and (left_s := ends - time.monotonic()) > 0:
        for reference in ray.wait(list(pending), timeout=left_s)[0]:
            name = pending.pop(reference).name
            _say_where(name, _standing(name, reference), say)
            up.add(name)
        if not covered and not unplaced(hosts, up):
            covered, ends = True, min(ends, time.monotonic() + MORE_S)
    for host in pending.values():
        say(f"{host.name} is not up: no node may have {described(host.asks)} free; it starts when one has")
    if tasks := unplaced(hosts, up):
        asks = described(next(iter(pending.values())).asks)
        raise ClusterError(
            f"tasks {', '.join(tasks)}: no worker within {patience_s:g} s; each needs a node with {asks} free: "
            "add a node, free one (`ray status` shows what is taken), or raise limits.patience_s"
        )


def _standing(name: str, reference: object) -> HostStatus:
    try:
        standing: HostStatus = ray.get(reference, timeout=ANSWER_S)
    except RayTaskError as error:
        raise ClusterError(f"{error.cause}") from error
    except (RayActorError, GetTimeoutError) as error:
        reason = next((line for line in reversed(str(error).splitlines()) if "Error" in line), str(error)).strip()
        raise ClusterError(
            f"{name}: Ray could not start it: {reason}; Proctor {version('proctor')} with the extra `ray` must be "
            "installed on every node, in the environment that `ray start` was called from"
        ) from error
    if standing.version != version("proctor"):
        raise ClusterError(
            f"{name}: node {standing.node} has Proctor {standing.version}, this machine {version('proctor')}; "
            "install the same on all"
        )
    return standing


def _say_where(name: str, standing: HostStatus, say: Say) -> None:
    say(f"{name}: {standing.url} on node {standing.node}")


def take_down(namespace: str) -> int:
    """End and remove all hosts of a run; how many there were."""
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
    with contextlib.suppress(ValueError):  # gone since
        return ray.get_actor(name, namespace)
    return None


@contextlib.contextmanager
def addresses(namespace: str, names: Sequence[str]) -> Iterator[dict[str, str]]:
    """Base URLs on this machine that lead to hosts' servers, wherever they are, while inside; by their names."""
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
