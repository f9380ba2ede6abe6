"""The containers that this process owns on its Docker engine. Every call blocks, and raises what the SDK raises."""

import logging
import os
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

import docker
import docker.errors
import docker.types
import requests

from proctor.environment import EnvironmentFault
from proctor.process_owner import Owner
from proctor.sandbox.base import SandboxLimits
from proctor.sandbox.docker_disk import Disk, image_files, tmpfs_mounts, why_no_quota

_log = logging.getLogger(__name__)
Network = Literal["none", "bridge"] | str
"""The last: `container:ID`, whose network it shares."""
OWNER_LABEL = "proctor.sandbox.owner"
HOME_LABEL = "proctor.sandbox.home"
"""Id and start time of the container that the owner runs in, if any: the engine tells whether that still runs."""
_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETUID", "SETGID", "KILL"]
"""The capabilities that root needs inside to manage users and files; all others are dropped."""
CLOSE_S = 30.0
"""Seconds that the removal of a container may take."""
_AGAIN_S = 1.0
"""Seconds until the engine's events are followed again, where that broke off."""
_MAX_KNOWN = 4096
_OTHER_DISKS = "move Docker's data root to xfs with pquota, btrfs or zfs, raise limits.disk_mb, or set `disk: tmpfs`"
_MEGABYTE = 1 << 20
# PID 1 reaps orphans, as bash does, and ends at the container's maximum age. It survives `kill -9 -1`, which ends all
# other processes: so an agent can't turn its own sample into a fault.
_INIT = "while ((SECONDS < $0)); do sleep $(($0 - SECONDS)) & wait; done"
_ROOT = ("", "0", "0:0", "root", "root:root")
_HOSTNAME = "sandbox"
"""The same for all, so that a replayed session sees no difference."""
# What Docker leaves empty where it sets up no network, PID 1 fills; newer engines leave out /etc/hostname too, and
# Podman fills these files with the host's own.
_HOSTS = """127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
ff00::0\tip6-mcastprefix
ff02::1\tip6-allnodes
ff02::2\tip6-allrouters
"""
_FILL_FILES = (
    f"{{ printf '{_HOSTS}' >/etc/hosts; echo {_HOSTNAME} >/etc/hostname; : >/etc/resolv.conf;"
    " chmod 644 /etc/hosts /etc/hostname /etc/resolv.conf; } 2>/dev/null; "
)
BEGIN = 'echo; exec /bin/bash -c "$0" "$1"'
"""Prints a line, for the engine to wait for, and becomes the loop."""


class Deaths:
    """How our containers end: out of memory, or killed. The engine remembers only its last few hundred events."""

    def __init__(self, client: docker.DockerClient, owner: str) -> None:
        self._client = client
        self._filters = {"event": ["oom", "kill"], "label": f"{OWNER_LABEL}={owner}"}
        self._known: dict[str, set[str]] = {}
        self._stream: Any = None
        self._closed = False

    def follow(self) -> None:
        """Follow the engine's events in a thread, until `close`."""
        threading.Thread(target=self._follow, args=(int(time.time()),), daemon=True, name="docker events").start()

    def _follow(self, since: int) -> None:
        while not self._closed:
            with suppress(docker.errors.DockerException, requests.RequestException, OSError, ValueError):
                self._stream = self._client.api.events(since=since, filters=self._filters, decode=True)
                if self._closed:  # meanwhile
                    self.close()
                for event in self._stream:
                    self._add(event)
                    since = int(event["time"])
            if not self._closed:
                time.sleep(_AGAIN_S)

    def _add(self, event: Mapping[str, Any]) -> None:
        self._known.setdefault(str(event["id"]), set()).add(str(event["Action"]))
        if len(self._known) > _MAX_KNOWN:
            del self._known[next(iter(self._known))]

    def of(self, container: str) -> set[str]:
        """What happened to a container so far: `oom`, `kill`."""
        about = {"container": container, **self._filters}
        events = self._client.api.events(since=1, until=int(time.time()) + 1, filters=about, decode=True)
        return {event["Action"] for event in events} | self._known.get(container, set())

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        with suppress(docker.errors.DockerException, OSError):  # the first over SSH, where the thread ends with us
            if self._stream is not None:
                self._stream.close()


class Containers:
    """Makes and removes hardened containers; also removes those of owners that have ended."""

    def __init__(
        self,
        client: docker.DockerClient,
        image: str,
        limits: SandboxLimits,
        *,
        runtime: str | None = None,
        disk: Disk = "auto",
        network: Network = "none",
    ) -> None:
        self.client = client
        self._image, self._limits, self._runtime = image, limits, runtime
        self._disk, self._network = disk, network
        self._owner = Owner.current().label()
        self._home = ""
        self._default_runtime = ""
        """The engine's, once it was examined."""
        self._is_podman = self._quota = False
        self._deaths = Deaths(client, self._owner)
        self._files: dict[str, bytes] = {}
        self._users: dict[str, str] = {}

    def prepare(self) -> None:
        """Examine the engine, and remove the containers of processes that have ended.

        Raises EnvironmentFault where the image is missing, or a required disk quota is not possible.
        """
        self._require_image()
        info = self.client.info()
        self._default_runtime = str(info.get("DefaultRuntime"))
        self._is_podman = is_podman(self.client)
        if self._is_podman and self._disk == "tmpfs":
            raise EnvironmentFault("disk: tmpfs: Podman's archives lose files' owners; set `disk: quota` or `auto`")
        if lacking := unlimited(info):
            _log.warning("one agent can use all of the machine's %s: the engine can't limit it", " and ".join(lacking))
        self._home = self._find_home()
        self._reap()
        if self._disk != "tmpfs":
            trouble = why_no_quota(self.client, self._image, self._limits.disk_mb, self._labels())
            if trouble is not None and self._disk == "quota":
                raise EnvironmentFault(f"disk: quota: {trouble}; {_OTHER_DISKS}")
            if trouble is not None:
                _log.warning("one agent can fill the disk of all sandboxes: %s; %s", trouble, _OTHER_DISKS)
            self._quota = trouble is None
        self._deaths.follow()

    def close(self) -> None:
        """Follow the engine's events no longer."""
        self._deaths.close()

    def create(self, image: str) -> str:
        """Create a container, to be started, and return its id. Its first process prints a line when it is ready."""
        host = self.client.api.create_host_config(**self._host_options())
        return str(
            self.client.api.create_container(image, host_config=host, user=self._user_of(image), **self._options())[
                "Id"
            ]
        )

    def _options(self) -> dict[str, Any]:
        alone = self._needs_no_set_up()
        begin = _FILL_FILES + BEGIN if alone else BEGIN
        return {
            "command": ["/bin/bash", "-c", begin, _INIT, str(self._limits.max_age_s)],
            "entrypoint": [],
            "hostname": None if self._network.startswith("container:") else _HOSTNAME,
            "network_disabled": alone,
            "labels": self._labels(),
        }

    def _host_options(self) -> dict[str, Any]:
        memory = self._limits.memory_mb * _MEGABYTE
        file = self._limits.file_mb * _MEGABYTE
        return {
            "network_mode": self._network,
            "cap_drop": ["ALL"],
            "cap_add": _CAPABILITIES,
            "security_opt": ["no-new-privileges"],
            "pids_limit": self._limits.processes,
            "mem_limit": memory,
            "memswap_limit": memory,
            "nano_cpus": int(min(self._limits.cpus, os.cpu_count() or 1) * 1e9),
            "ulimits": [
                docker.types.Ulimit(name="fsize", soft=file, hard=file),
                docker.types.Ulimit(name="nofile", soft=4096, hard=4096),
                docker.types.Ulimit(name="core", soft=0, hard=0),
            ],
            "log_config": docker.types.LogConfig(type="none"),
            "auto_remove": True,
            "runtime": self._runtime,
            **self._disk_options(),
        }

    def _user_of(self, image: str) -> str:
        """The user of a container's processes, root: no user where that is the image's own.

        Then Docker itself looks into no file for the users of a process to be started. An agent may break those, or put
        a pipe in their place, which would block the engine.
        """
        if image not in self._users:
            own = self.client.images.get(image).attrs["Config"].get("User", "")
            self._users[image] = "" if own in _ROOT else "0:0"
        return self._users[image]

    def _needs_no_set_up(self) -> bool:
        """Whether Docker can be told to set up no network at all, which halves the CPU of a container's life.

        runc brings the loopback interface up itself, which other runtimes may not do. A tmpfs on /etc hides the files
        that Docker leaves there. Podman always sets up just that interface.
        """
        by_runc = (self._runtime or self._default_runtime) == "runc"
        return self._network == "none" and (by_runc or self._is_podman) and self._disk != "tmpfs"

    def _disk_options(self) -> dict[str, Any]:
        if self._disk == "tmpfs":
            return {"read_only": True, "tmpfs": tmpfs_mounts(self._limits.disk_mb)}
        return {"storage_opt": {"size": f"{self._limits.disk_mb}M"}} if self._quota else {}

    def _labels(self) -> dict[str, str]:
        return {OWNER_LABEL: self._owner, **({HOME_LABEL: self._home} if self._home else {})}

    def hidden_files(self, image: str) -> bytes | None:
        """The image's files that the tmpfs mounts hide, as a tar archive; None without such mounts."""
        if self._disk == "tmpfs" and image not in self._files:
            self._files[image] = image_files(self.client, image, self._labels())
        return self._files.get(image)

    def remove(self, container: str) -> None:
        """Remove a container, if it still exists."""
        with suppress(docker.errors.NotFound):
            try:
                self.client.api.remove_container(container, force=True)
            except docker.errors.APIError as error:
                if error.status_code != 409:
                    raise
                # The container has ended, and the engine is already removing it.
                self.client.api.wait(container, timeout=int(CLOSE_S), condition="removed")

    def is_running(self, container: str) -> bool:
        """Whether a container exists and runs. An inspection would wait for a process that an agent lets not start,
        and block the container's removal."""
        return bool(self.client.api.containers(filters={"id": container, "status": "running"}))

    def ran_out_of_memory(self, container: str) -> bool:
        """Whether the kernel ended processes of a container at its memory limit, which ends it if the first is one."""
        return self._deaths.of(container) == {"oom"}

    def _require_image(self) -> None:
        try:
            self.client.images.get(self._image)
        except docker.errors.ImageNotFound as error:
            raise EnvironmentFault(
                f"Docker has no image {self._image!r}; build it with `docker build -t {self._image} docker/os`"
            ) from error

    def _reap(self) -> None:
        """Remove the containers of processes that have ended."""
        for found in self.client.api.containers(all=True, filters={"label": OWNER_LABEL}):
            owner = Owner.from_label(found["Labels"][OWNER_LABEL])
            home = found["Labels"].get(HOME_LABEL)
            if (owner is not None and owner.is_dead()) or (home is not None and self._start_of(home) != home):
                try:
                    self.remove(found["Id"])
                except (docker.errors.DockerException, requests.RequestException) as error:
                    _log.warning("Docker: container %s of a worker that has ended stays: %s", found["Id"][:12], error)

    def _find_home(self) -> str:
        """The label of the container, on this engine, that this process runs in; empty where it runs in none."""
        name = socket.gethostname()  # in a container the beginning of its id, unless set otherwise
        home = self._start_of(name)
        return home if home.startswith(name) else ""

    def _start_of(self, container: str) -> str:
        """Id and start time of a running container, by its id or such a label; empty where it doesn't run."""
        try:
            found = self.client.api.inspect_container(container.partition(" ")[0])
        except docker.errors.NotFound:
            return ""
        return f"{found['Id']} {found['State']['StartedAt']}" if found["State"]["Running"] else ""


def is_podman(client: docker.DockerClient) -> bool:
    """Whether the engine is Podman, by its socket that speaks Docker's API."""
    return any(str(each.get("Name")).startswith("Podman") for each in client.version().get("Components") or ())


def unlimited(info: Mapping[str, Any]) -> list[str]:
    """What the engine can't limit, by what it says of itself: memory, processes; both without root before cgroup v2."""
    ignored = "name=rootless" in info.get("SecurityOptions", ()) and str(info.get("CgroupVersion")) == "1"
    limits = {"memory": "MemoryLimit", "processes": "PidsLimit"}
    return [what for what, name in limits.items() if ignored or info.get(name) is False]


def connect(timeout_s: float) -> docker.DockerClient:
    """A client of the engine that DOCKER_HOST names, after a first answer; `timeout_s` limits each call."""
    client = docker.from_env(timeout=max(1, int(timeout_s)))
    try:
        client.ping()
    except Exception:
        client.close()
        raise
    return client
