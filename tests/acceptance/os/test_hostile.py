"""What an agent does to its own container never makes its sample unscored: on a real engine."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Iterator

import docker
import pytest
import pytest_asyncio

from environments.operating_system.environment import OperatingSystem
from environments.operating_system.observation import HEAD
from environments.operating_system.tampering import ROOTS
from proctor.environment import EnvironmentFault
from proctor.process_owner import Owner
from proctor.sandbox import docker_files
from proctor.sandbox.docker_containers import OWNER_LABEL
from proctor.sandbox.docker_engine import DockerSandbox
from proctor.session.play import play_to_finish as play
from proctor.types import Action, Finish, FinishReason, Observation
from tests.acceptance.os.test_acceptance import IMAGE, bash
from tests.acceptance.os.test_tampering import own
from tests.pace import slowly
from tests.scripted_agent import Scripted

pytestmark = [pytest.mark.docker, pytest.mark.shared, pytest.mark.asyncio(loop_scope="module")]

SAMPLE = "dev-dev-00000"
NEW_SHELL = "[the shell has ended; a new one was started in /]"
NO_SHELL = "[the shell has ended, and this system starts no new one]"
LONG_LINE = "head -c 200000 /dev/zero | tr '\\0' a"
LIBRARY = "echo 'void __attribute__((constructor)) f(void) { BODY; }' | gcc -x c -shared -fPIC -o /tmp/x.so -"
GOES_ON = {
    "exit in a profile": "echo exit >> ~/.bash_profile",
    "exit in the profile of all": "echo exit >> /etc/profile",
    "a profile that waits": "echo 'exec sleep 1000' >> ~/.profile",
    "a profile that prints": "echo 'exec yes 12' >> ~/.profile",
    "a profile without output": "echo 'exec 1>&- 2>&-' >> ~/.profile",
    "root renamed": "sed -i 's/^root/admin/' /etc/passwd",
    "root with another number": "sed -i 's/^root:x:0:0/root:x:1000:1000/' /etc/passwd",
    "no users": "rm /etc/passwd /etc/group",
    "an empty file of users": ": > /etc/passwd",
    "a link in a circle": "rm /etc/passwd; ln -s /etc/passwd /etc/passwd",
    "another /tmp": "rm -rf /tmp; echo > /tmp",
}
"""By what it is: mistakes and tricks after which a right answer still passes."""
ENDS = {
    "a folder in the place of the users": "rm /etc/passwd; mkdir /etc/passwd",
    "users in a long line": f"{LONG_LINE} > /etc/passwd",
    "no bash": "rm /bin/bash",
    "bash can't be run": "chmod 000 /bin/bash",
    "bash is no program": "cp /etc/hostname /tmp/b; chmod +x /tmp/b; mv /tmp/b /bin/bash",
    "bash is another program": "cp /bin/sleep /tmp/b; mv /tmp/b /bin/bash",
    "bash does nothing": "cp /bin/true /tmp/b; mv /tmp/b /bin/bash",
    "no libraries": "rm -rf /usr/lib",
    "a broken library": "f=$(readlink -f /lib/*/libc.so.6); head -c 1000 $f > /tmp/c; mv /tmp/c $f",
    "a library that crashes": f"{LIBRARY.replace('BODY', '__builtin_trap()')}; echo /tmp/x.so > /etc/ld.so.preload",
    "programs elsewhere": "rm /bin; ln -s /tmp /bin",
    "no devices": "rm -rf /dev/* 2>/dev/null",
    "nothing at all": "rm -rf --no-preserve-root / 2>/dev/null",
}
"""After which nothing starts any more, so that no check passes."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OperatingSystem]:
    environment = own(tmp_path_factory.mktemp("hostile")).model_copy(
        update={"command_limit_s": slowly(3), "check_limit_s": slowly(5)}
    )
    async with environment.lifespan():
        yield environment


async def told(world: OperatingSystem, command: str) -> tuple[Finish, list[str]]:
    """The finish and the observations of an agent that runs a command, leaves its shell, and answers rightly."""
    agent = Scripted(bash(f"{command}\nexit"), bash("echo on"), "Act: answer(3)")
    return await play(world, SAMPLE, agent), agent.told[1:]


@pytest.mark.parametrize("way", GOES_ON)
async def test_what_a_new_shell_can_do_without_costs_nothing(world: OperatingSystem, way: str) -> None:
    finish, (first, second) = await told(world, GOES_ON[way])
    assert (finish.reason, finish.score) == (FinishReason.COMPLETED, 1.0), finish
    assert (first.splitlines()[-1], second) == (NEW_SHELL, f"{HEAD}on")


@pytest.mark.parametrize("way", ENDS)
async def test_what_can_not_start_fails_and_is_no_fault(world: OperatingSystem, way: str) -> None:
    finish, observations = await told(world, ENDS[way])
    assert (finish.reason, finish.score) == (FinishReason.COMPLETED, 0.0), finish
    assert [each.splitlines()[-1] for each in observations] == [NO_SHELL] * 2


async def test_a_container_that_its_own_memory_limit_ends_is_no_fault(world: OperatingSystem) -> None:
    """The kernel ends the process that offers itself; here the agent offers the container's first one."""
    eat = "echo 1000 > /proc/1/oom_score_adj; for i in 1 2 3 4; do tail /dev/zero & done; wait"
    finish, observations = await told(world, eat)
    assert (finish.reason, finish.score) == (FinishReason.COMPLETED, 0.0), finish
    assert observations[-1].splitlines()[-1] == NO_SHELL


async def test_several_ways_at_once_leave_the_sample_scored(world: OperatingSystem) -> None:
    """Twelve mixtures, in an order of a seeded chance."""
    chance = random.Random(37)
    every = [*GOES_ON.values(), *ENDS.values()]
    mixed = ["; ".join(chance.sample(every, 3)) for _ in range(12)]
    slots = asyncio.Semaphore(3)

    async def one(command: str) -> Finish:
        async with slots:
            return (await told(world, command))[0]

    finishes = await asyncio.gather(*map(one, mixed))
    assert [command for command, finish in zip(mixed, finishes, strict=True) if finish.score is None] == []


async def test_an_engine_that_starts_nothing_is_a_fault_whatever_the_agent_did(
    world: OperatingSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Breaking(Scripted):
        """Has the engine refuse, once the agent has broken its container."""

        async def act(self, observation: Observation) -> Action:
            async def refuse(self: DockerSandbox, *_: object, **__: object) -> None:
                raise EnvironmentFault("Docker: refused")

            monkeypatch.setattr(DockerSandbox, "spawn", refuse)
            return await super().act(observation)

    finish = await play(world, SAMPLE, Breaking(bash("rm /bin/bash; exit"), "Act: answer(3)"))
    assert (finish.reason, finish.score) == (FinishReason.TASK_ERROR, None)


# Tampering: what happens to a watched place, or to a place that it is in

_DELETE = """
def delete(path):
    if os.path.islink(path) or not os.path.isdir(path):
        return os.unlink(path)
    for name in os.listdir(path):
        delete(path + "/" + name)
    os.rmdir(path)
delete(path)
"""
_WORK = {
    "changed": "os.chmod(path, 0o711)",
    "deleted": _DELETE,
    "replaced": f"{_DELETE}\nos.mkdir('/srv/.x')\nos.symlink('/srv/.x', path)",
}
"""Python for one process, which goes on when its programs and libraries are gone."""


def in_image() -> Iterator[str]:
    """The watched places of the image, and all that they are in, but the root: that can only be changed."""
    with contextlib.closing(docker.from_env()) as client:
        container = client.containers.create(IMAGE, labels={OWNER_LABEL: Owner.current().label()})
        try:
            for path in sorted(ROOTS - {"/"}):
                if docker_files.fingerprint(client, str(container.id), path) is not None:
                    yield path
        finally:
            container.remove(force=True)


async def test_whatever_happens_to_a_watched_place_or_to_what_it_is_in_counts(world: OperatingSystem) -> None:
    slots = asyncio.Semaphore(3)

    async def one(path: str, way: str) -> str | None:
        async with slots:
            command = f"python3 - <<'END'\nimport os\npath = '{path}'\n{_WORK[way]}\nEND"
            finish = await play(world, SAMPLE, Scripted(bash(command), "Act: answer(3)"))
        return None if finish.score == 0.0 and finish.detail["tampered"] else f"{way} {path}: {finish.detail}"

    places = await asyncio.to_thread(lambda: list(in_image()))
    assert len(places) > 15
    links = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
    cases = [(path, way) for path in places for way in _WORK if way != "changed" or path not in links]
    unnoticed = await asyncio.gather(one("/", "changed"), *(one(*case) for case in cases))
    assert [each for each in unnoticed if each] == []
