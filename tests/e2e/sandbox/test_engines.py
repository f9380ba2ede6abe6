"""Sandboxes on both engines, with real processes: the limits, and that nothing is left behind or harmed."""

import asyncio
import io
import json
import marshal
import os
import select
import socket
import subprocess
import sys
import tarfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import docker
import docker.errors
import psutil
import pytest

from proctor.environment import EnvironmentFault
from proctor.process_owner import Owner
from proctor.sandbox.base import Engine, Sandbox, SandboxLimits
from proctor.sandbox.docker_containers import OWNER_LABEL, Containers, is_podman
from proctor.sandbox.docker_engine import DockerEngine, DockerSandbox
from proctor.sandbox.namespaces.engine import NamespaceEngine, options
from proctor.sandbox.namespaces.init import COMMAND
from proctor.sandbox.shell import Shell
from tests.e2e.sandbox.engines import IMAGE, INTERRUPT_S, LIMITS, entered, make, output
from tests.pace import slowly, until
from tests.support import ROOT


@pytest.fixture(params=[pytest.param("docker", marks=pytest.mark.docker), "namespace"])
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    async with entered(make(request.param)) as engine:
        yield engine


@pytest.fixture
async def box(engine: Engine) -> AsyncIterator[Sandbox]:
    async with engine.sandbox() as box:
        yield box


@pytest.fixture
def shell(box: Sandbox) -> Shell:
    return Shell(box)


def start_worker(code: str) -> "subprocess.Popen[str]":
    """Another Python process, to be killed."""
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)


# Isolation and limits


async def test_a_fork_bomb_harms_only_its_own_sandbox(engine: Engine) -> None:
    async with engine.sandbox() as bombed, engine.sandbox() as other:
        with suppress(EnvironmentFault):
            await Shell(bombed).execute("f() { f | f & }; f", limit_s=slowly(2))
        assert (await Shell(other).execute("echo on")).output == b"on\n"


def host_state() -> tuple[list[str], bytes, str]:
    """What the test below tries to change."""
    pid_max = Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii")
    return sorted(os.listdir("/usr/bin")), Path("/etc/passwd").read_bytes(), pid_max


async def test_the_host_is_not_changed_and_not_seen(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("my secret")
    before = host_state()
    seen = await shell.execute(f"cat {tmp_path}/mine; ls {ROOT}; ls /proc/{os.getpid()}/exe")
    assert b"my secret" not in seen.output
    assert seen.status != 0
    await shell.execute("touch /usr/bin/proctor-was-here; echo x:x:0:0::/:/bin/sh >> /etc/passwd")
    await shell.execute("echo 5000 > /proc/sys/kernel/pid_max")
    await shell.execute("rm -rf /etc /home /tmp /usr/bin", limit_s=slowly(20))
    assert host_state() == before
    assert (tmp_path / "mine").read_text() == "my secret"


async def test_two_sandboxes_share_nothing(engine: Engine) -> None:
    async with engine.sandbox() as one, engine.sandbox() as other:
        await output(one, "echo secret > /tmp/x; sleep 64 &")
        assert await output(other, "ls -A /tmp; ps ax | grep -c '[s]leep 64'") == "0\n"


async def test_closing_twice_is_fine_and_a_closed_sandbox_is_a_fault(engine: Engine) -> None:
    box = await engine.create()
    await box.close()
    await box.close()
    async with asyncio.timeout(slowly(30)):
        with pytest.raises(EnvironmentFault):
            await box.run(["/bin/true"])


# The namespace engine


async def test_a_namespace_sandbox_dies_with_its_worker() -> None:
    code = (
        "import asyncio, psutil\n"
        "from proctor.sandbox import shell\n"
        "from proctor.sandbox.base import SandboxLimits\n"
        "from proctor.sandbox.namespaces.engine import NamespaceEngine\n"
        "async def main():\n"
        "    engine = NamespaceEngine(SandboxLimits())\n"
        "    box = await engine.create()\n"
        "    print(*(process.pid for process in psutil.Process().children(recursive=True)), flush=True)\n"
        "    await shell.Shell(box).execute('sleep 100', limit_s=100)\n"
        "asyncio.run(main())\n"
    )
    async with entered(NamespaceEngine(LIMITS)):
        worker = start_worker(code)
        assert worker.stdout is not None
        processes = [os.pidfd_open(int(pid)) for pid in worker.stdout.readline().split()]
        assert len(processes) == 3, "the server, the sandbox's process outside of its namespaces, and its first inside"
        worker.kill()
        worker.wait()
        worker.stdout.close()
        for process in processes:
            assert select.select([process], [], [], slowly(20))[0], "the sandbox outlived its worker"
            os.close(process)


async def test_commands_can_be_interrupted_where_the_worker_was_started_deaf_to_signals() -> None:
    """As `nohup proctor worker &` in a script starts it: what is ignored is inherited."""
    code = (
        "import asyncio\n"
        "from proctor.sandbox import shell\n"
        "from proctor.sandbox.base import SandboxLimits\n"
        "from proctor.sandbox.namespaces.engine import NamespaceEngine\n"
        "async def main():\n"
        f"    shell.INTERRUPT_S = {INTERRUPT_S}\n"
        "    engine = NamespaceEngine(SandboxLimits())\n"
        "    async with engine.lifespan(), engine.sandbox() as box:\n"
        f"        result = await shell.Shell(box).execute('sleep 60', limit_s={INTERRUPT_S})\n"
        "        print(result.timed_out, result.restarted, flush=True)\n"
        "asyncio.run(main())\n"
    )
    async with entered(NamespaceEngine(LIMITS)):
        deaf = ["sh", "-c", 'trap "" INT HUP QUIT TERM; exec "$@"', "sh", sys.executable, "-c", code]
        done = await asyncio.to_thread(subprocess.run, deaf, cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout == "True False\n"


def server() -> psutil.Process:
    """The process that the sandboxes of this one are forked from."""
    (found,) = [child for child in psutil.Process().children() if COMMAND[3] in child.cmdline()]
    return found


def first_processes() -> list[psutil.Process]:
    """Those of the living sandboxes of this process."""
    return [inside for outside in server().children() for inside in outside.children()]


async def test_a_namespace_sandbox_that_dies_is_a_fault_at_once() -> None:
    async with entered(NamespaceEngine(LIMITS)) as engine, asyncio.timeout(slowly(20)), engine.sandbox() as box:
        shell = Shell(box)
        await shell.execute("true")
        (first,) = first_processes()
        first.kill()
        with pytest.raises(EnvironmentFault, match="namespace sandbox"):
            await shell.execute("sleep 100")


async def test_sandboxes_outlive_the_process_that_forked_them_and_another_is_started() -> None:
    async with entered(NamespaceEngine(LIMITS)) as engine, engine.sandbox() as before:
        killed = server()
        killed.kill()
        killed.wait()  # so that asyncio can't have noticed
        async with engine.sandbox() as after:
            assert await output(after, "echo on") == "on\n"
        assert await output(before, "echo on") == "on\n"


async def test_python_starts_once_for_all_namespace_sandboxes() -> None:
    async with entered(NamespaceEngine(LIMITS)) as engine, engine.sandbox() as one, engine.sandbox() as other:
        assert await output(one, "echo on") == await output(other, "echo on")
        assert len(first_processes()) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_plain_user_may_have_a_namespace_sandbox_too() -> None:
    allowed = subprocess.run(
        ["/usr/bin/python3", "-c", f"open({str(ROOT / 'proctor/sandbox/namespaces/init.py')!r})"],
        user=65534,
        group=65534,
        extra_groups=[],
        check=False,
    )
    if allowed.returncode != 0:
        pytest.skip("the user nobody has no Python that may read the checkout")
    requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours, control = socket.socketpair()
    ours.settimeout(slowly(20))
    with requests, theirs, ours, control:
        command = ["/usr/bin/python3", *COMMAND, str(theirs.fileno()), *options(LIMITS)]
        with subprocess.Popen(command, pass_fds=[theirs.fileno()], user=65534, group=65534, extra_groups=[]) as forking:
            theirs.close()
            socket.send_fds(requests, [b"1"], [control.fileno()])
            control.close()
            assert json.loads(ours.recv(1000)) == {"ready": True}
            body = marshal.dumps((0, ["/bin/bash", "-c", "touch /usr/x /tmp/y; id -u"], {}))
            read, write = os.pipe()
            socket.send_fds(ours, [len(body).to_bytes(4, "big")], [read, write])
            ours.sendall(body)
            os.close(write)
            with os.fdopen(read) as printed:
                assert printed.read().splitlines()[-1] == "0"
            requests.close()
            forking.wait(slowly(20))


# The Docker engine


@pytest.fixture
def client() -> Iterator[docker.DockerClient]:
    client = docker.from_env()
    yield client
    client.close()


def mine(client: docker.DockerClient) -> list[str]:
    """The containers of this process."""
    found = client.api.containers(all=True, filters={"label": f"{OWNER_LABEL}={Owner.current().label()}"})
    return [str(container["Id"]) for container in found]


@pytest.mark.docker
async def test_containers_are_made_ahead_and_never_used_twice(client: docker.DockerClient) -> None:
    engine = DockerEngine(IMAGE, LIMITS, pool=2)
    async with engine.lifespan():
        used = []
        for _ in range(3):
            async with engine.sandbox() as box:
                assert isinstance(box, DockerSandbox)
                used.append(box.container)
                assert await output(box, "ls -A /tmp; touch /tmp/dirty") == ""
        assert len(set(used)) == 3
    assert mine(client) == []


@pytest.mark.docker
@pytest.mark.parametrize(("sessions", "containers"), [(0, 0), (1, 1), (2, 3)])
async def test_no_container_is_made_ahead_before_a_second_session(
    monkeypatch: pytest.MonkeyPatch, sessions: int, containers: int
) -> None:
    made, create = list[str](), Containers.create

    def counted(self: Containers, image: str) -> str:
        made.append(create(self, image))
        return made[-1]

    monkeypatch.setattr(Containers, "create", counted)
    engine = DockerEngine(IMAGE, LIMITS, pool=2)
    async with engine.lifespan():
        for _ in range(sessions):
            async with engine.sandbox():
                pass
    assert len(made) == containers


@pytest.mark.docker
async def test_a_container_is_hardened(client: docker.DockerClient) -> None:
    async with entered(make("docker")) as engine, engine.sandbox() as box:
        assert isinstance(box, DockerSandbox)
        found = client.api.inspect_container(box.container)
        may = await output(box, "grep -E 'CapBnd|NoNewPrivs' /proc/self/status")
    assert may == "CapBnd:\t00000000000000eb\nNoNewPrivs:\t1\n"
    host, by_runc = found["HostConfig"], client.info()["DefaultRuntime"] == "runc"
    if not is_podman(client):  # which tells of it by the mode alone
        assert bool(found["Config"].get("NetworkDisabled")) is by_runc
    assert host["NetworkMode"] == "none"
    assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (256 << 20, 256 << 20, 64)
    assert (host["AutoRemove"], host["LogConfig"]["Type"], host["Binds"] or None) == (True, "none", None)
    assert host["NanoCpus"] == 10**9


@pytest.mark.docker
async def test_a_container_without_a_network_reaches_itself_by_name_and_knows_no_other_host() -> None:
    connect = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); "
        "c = socket.create_connection(('localhost', s.getsockname()[1])); print('connected')"
    )
    async with entered(make("docker")) as engine, engine.sandbox() as box:
        assert await output(box, f'python3 -c "{connect}"') == "connected\n"
        assert await output(box, "stat -c %a /etc/hosts /etc/resolv.conf; cat /etc/resolv.conf") == "644\n644\n"
        assert await output(box, "cat /etc/hostname; stat -c %a /etc/hostname") == "sandbox\n644\n"


@pytest.mark.docker
async def test_a_container_whose_first_process_ends_at_once_is_a_fault(
    client: docker.DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.sandbox.docker_containers.BEGIN", "exit 3")
    async with entered(make("docker")) as engine:
        with pytest.raises(EnvironmentFault, match="first process, /bin/bash, ended at once"):
            async with engine.sandbox():
                pass


@pytest.mark.docker
async def test_a_container_without_an_owner_ends_by_itself(client: docker.DockerClient) -> None:
    short = SandboxLimits.model_construct(**{**LIMITS.model_dump(), "max_age_s": 1})
    async with entered(make("docker", short)) as engine:
        box = await engine.create()
        assert isinstance(box, DockerSandbox)
        with suppress(docker.errors.NotFound):
            client.api.wait(box.container, timeout=int(slowly(20)), condition="removed")
        with pytest.raises(docker.errors.NotFound):
            client.api.inspect_container(box.container)


@pytest.mark.docker
async def test_containers_of_a_killed_worker_are_removed_by_the_next(client: docker.DockerClient) -> None:
    code = (
        "import asyncio\n"
        "from proctor.sandbox.base import SandboxLimits\n"
        "from proctor.sandbox.docker_engine import DockerEngine\n"
        "async def main():\n"
        f"    engine = DockerEngine({IMAGE!r}, SandboxLimits(), pool=0)\n"
        "    async with engine.lifespan():\n"
        "        print((await engine.create()).container, flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    with start_worker(code) as worker:
        assert worker.stdout is not None
        left = worker.stdout.readline().strip()
        assert client.api.inspect_container(left)["State"]["Running"]
        worker.kill()  # from now on the engine of any test may be the next
    async with entered(make("docker")) as engine, engine.sandbox() as alive:
        with pytest.raises(docker.errors.NotFound):
            client.api.inspect_container(left)
        async with entered(make("docker")):  # a living owner's container is not touched
            assert await output(alive, "echo on") == "on\n"


@pytest.mark.docker
async def test_a_container_that_dies_is_a_fault_within_seconds(client: docker.DockerClient) -> None:
    async with entered(make("docker")) as engine, asyncio.timeout(slowly(20)), engine.sandbox() as box:
        assert isinstance(box, DockerSandbox)
        shell = Shell(box)
        await shell.execute("true")
        waiting = asyncio.ensure_future(shell.execute("sleep 100", limit_s=100))
        await asyncio.sleep(0)
        client.api.kill(box.container)
        with pytest.raises(EnvironmentFault, match="Docker"):
            await waiting
    assert mine(client) == []


@pytest.mark.docker
async def test_a_container_out_of_memory_is_known_as_that_whatever_else_the_engine_tells(
    client: docker.DockerClient,
) -> None:
    """The engine remembers its last 256 events, and other sandboxes make hundreds a second."""
    async with entered(make("docker")) as engine, engine.sandbox() as box:
        assert isinstance(box, DockerSandbox)
        eat = "echo 1000 > /proc/1/oom_score_adj; for i in 1 2 3 4; do tail /dev/zero & done; wait"
        with suppress(EnvironmentFault):
            await box.run(["/bin/bash", "-c", eat], limit_s=slowly(30))
        gone = asyncio.to_thread(until, lambda: box.container not in [each.id for each in client.containers.list()])
        await gone
        for number in range(300):
            image = client.images.get(IMAGE)
            await asyncio.to_thread(image.tag, "proctor-events", str(number % 2))
        for number in range(2):
            client.images.remove(f"proctor-events:{number}")
        assert not await box.ended_from_outside()


@pytest.mark.docker
@pytest.mark.parametrize("steps", [0, 1, 2, 5, 20])
async def test_creating_can_be_cancelled_without_leaving_a_container(client: docker.DockerClient, steps: int) -> None:
    async with entered(DockerEngine(IMAGE, LIMITS, pool=1)) as engine:
        creating = asyncio.ensure_future(engine.create())
        for _ in range(steps):
            await asyncio.sleep(0)
        creating.cancel()
        await asyncio.wait({creating})
    assert mine(client) == []


async def test_an_engine_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    with pytest.raises(EnvironmentFault, match=r"Docker: no engine answers at unix://.*/no\.sock"):
        async with make("docker").lifespan():
            pass


async def test_an_engine_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/s")
        async with asyncio.timeout(slowly(10)):
            with pytest.raises(EnvironmentFault):
                async with DockerEngine(IMAGE, LIMITS, call_limit_s=1.0).lifespan():
                    pass
        # The library forgets a socket that is refused: it has to be given up while somebody listens.
        await asyncio.to_thread(until, lambda: "docker" not in {each.name[:6] for each in threading.enumerate()})


@pytest.mark.docker
async def test_a_missing_image_is_named_with_its_fix() -> None:
    with pytest.raises(EnvironmentFault, match="no image 'proctor-none:1'; build it with `docker build"):
        async with DockerEngine("proctor-none:1", LIMITS).lifespan():
            pass


@pytest.mark.docker
async def test_a_container_that_cannot_start_says_why_and_is_gone(client: docker.DockerClient) -> None:
    empty, image = io.BytesIO(), f"proctor-empty-{os.getpid()}"
    tarfile.open(fileobj=empty, mode="w").close()
    client.api.import_image_from_data(empty.getvalue(), repository=image)
    try:
        async with entered(DockerEngine(image, LIMITS, pool=0)) as engine:
            with pytest.raises(EnvironmentFault, match="/bin/bash"):
                await engine.create()
        assert mine(client) == []
    finally:
        client.images.remove(image)


@pytest.mark.docker
async def test_a_process_that_is_killed_with_its_container_is_a_fault_and_no_status(
    client: docker.DockerClient,
) -> None:
    async with entered(make("docker")) as engine, engine.sandbox() as box:
        assert isinstance(box, DockerSandbox)
        assert (await box.run(["/bin/bash", "-c", "kill -9 $$"])).status == 137
        running = asyncio.ensure_future(box.run(["/bin/bash", "-c", "touch /tmp/here; sleep 100"], limit_s=100))
        while (await box.run(["/usr/bin/test", "-e", "/tmp/here"])).status != 0:
            pass
        client.api.kill(box.container)
        with pytest.raises(EnvironmentFault):
            await running
