"""Processes, the persistent shell and limits, in one sandbox of each engine; what runs is killed between the tests."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from proctor.environment import EnvironmentFault
from proctor.sandbox.base import Engine, Sandbox
from proctor.sandbox.docker_engine import DockerSandbox
from proctor.sandbox.shell import Shell
from tests.e2e.sandbox.engines import LIMITS, entered, make, output
from tests.pace import slowly

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(
    params=[pytest.param("docker", marks=pytest.mark.docker), "namespace"], scope="module", loop_scope="module"
)
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    async with entered(make(request.param)) as engine:
        yield engine


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kept(engine: Engine) -> AsyncIterator[Sandbox]:
    async with engine.sandbox() as box:
        yield box


@pytest_asyncio.fixture(loop_scope="module")
async def box(kept: Sandbox) -> AsyncIterator[Sandbox]:
    yield kept
    await kept.run(["/bin/bash", "-c", "rm -rf /tmp/*; kill -KILL -1"])


@pytest.fixture
def shell(box: Sandbox) -> Shell:
    return Shell(box)


# A fresh process


PROCESSES: list[tuple[list[str], dict[str, Any], tuple[Any, ...]]] = [
    # command of bash with its arguments, options of `run`, (status, output, timed out, truncated)
    (['echo "$1"; exit 3', "--", "a b'\"$(id)"], {}, (3, b"a b'\"$(id)\n", False, False)),
    (["sleep 60 & echo on"], {}, (0, b"on\n", False, False)),  # a job in the background does not delay the end
    (["echo before; sleep 60"], {"limit_s": slowly(0.5)}, (124, b"before\n", True, False)),
    (["echo $NAME $HOME"], {"variables": {"NAME": "value"}}, (0, b"value /root\n", False, False)),
    (["head -c 300000 /dev/zero"], {"cap": 1000}, (0, bytes(1000), False, True)),
    (["exec /no/such/program 2>/dev/null"], {}, (127, b"", False, False)),
    # in a pipe, the shell's child for grep would have the shell's name for a moment
    (["found=$(ps ax -o args=); echo \"$found\" | grep -c 'mar[k]ed'; : marked"], {}, (0, b"1\n", False, False)),
]


@pytest.mark.parametrize(("command", "options", "expected"), PROCESSES)
async def test_a_process(box: Sandbox, command: list[str], options: dict[str, Any], expected: tuple[Any, ...]) -> None:
    async with asyncio.timeout(slowly(15)):
        result = await box.run(["/bin/bash", "-c", *command], **options)
    assert (result.status, result.output, result.timed_out, result.truncated) == expected


async def test_a_process_starts_in_the_root_with_nothing_of_our_environment_and_both_outputs_are_one(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_CANARY", "secret")
    assert await output(box, "pwd; echo $HOME; env | grep -c CANARY; cat") == "/\n/root\n0\n"
    assert sorted((await output(box, "echo out; echo err >&2")).split()) == ["err", "out"]
    assert (await box.run(["/no/such/program"])).status in (126, 127)


async def test_a_file_can_be_put_or_is_a_fault(box: Sandbox) -> None:
    content = bytes(range(256)) * 2000
    await box.put("/tmp/put", content)
    assert await output(box, "wc -c < /tmp/put; od -An -tu1 -N3 -j65 /tmp/put") == f"{len(content)}\n  65  66  67\n"
    with pytest.raises(EnvironmentFault, match="/no/such/folder/x"):
        await box.put("/no/such/folder/x", b"")


# The persistent shell


@pytest.mark.smoke
async def test_directory_variables_functions_jobs_and_the_status_last(shell: Shell) -> None:
    await shell.execute("cd /tmp; x=5; f() { echo from f; }; sleep 60 &")
    assert (await shell.execute("pwd; echo $x; f; jobs")).output.startswith(b"/tmp\n5\nfrom f\n[1]+  Running")
    assert (await shell.execute("(exit 7)")).status == 7
    assert (await shell.execute("echo $?")).output == b"7\n"


@pytest.mark.parametrize(
    "command", ["echo 'a", 'echo "a', "cat <<EOF\nopen", "if true", "echo $(", "{ echo", ")", "\\"]
)
async def test_an_unfinished_command_ends_with_its_text(shell: Shell, command: str) -> None:
    result = await shell.execute(command)
    assert not result.restarted
    assert ("EOF" in command) == (b"here-document" in result.output)
    assert (await shell.execute("echo on")).output == b"on\n"


@pytest.mark.parametrize("command", ["cat", "read x", "head -c 1", "python3 -"])
async def test_input_is_at_its_end_at_once(shell: Shell, command: str) -> None:
    result = await shell.execute(command, limit_s=slowly(10))
    assert not result.timed_out
    assert not result.restarted


@pytest.mark.parametrize("command", ["exit 3", "exec /bin/true", "kill -9 $$", "set -e; false"])
async def test_a_shell_that_ended_is_replaced_and_jobs_go_on(shell: Shell, command: str) -> None:
    await shell.execute("sleep 61 &")
    result = await shell.execute(f"cd /tmp; echo bye; {command}")
    assert (result.output, result.restarted, result.timed_out, result.status) == (b"bye\n", True, False, None)
    assert (await shell.execute("pwd; ps ax | grep -c '[s]leep 61'")).output == b"/\n1\n"


async def test_redirecting_the_shell_itself_hides_nothing_afterwards(shell: Shell) -> None:
    result = await shell.execute("exec >/tmp/log 2>&1 </dev/zero; echo logged", limit_s=slowly(10))
    assert (result.timed_out, result.restarted) == (False, False)
    assert (await shell.execute("cat /tmp/log; echo on; ls /no/file", limit_s=slowly(10))).output.startswith(
        b"logged\non\nls: "
    )


@pytest.mark.parametrize(
    "command", ["sleep 60", "while true; do :; done", "while true; do sleep 1; done", "sleep 60 | cat", "yes", "wait"]
)
async def test_a_command_beyond_its_limit_is_interrupted_and_the_shell_goes_on(shell: Shell, command: str) -> None:
    await shell.execute("x=5; sleep 62 &")
    result = await shell.execute(command, limit_s=slowly(0.5))
    assert (result.timed_out, result.restarted) == (True, False)
    assert (await shell.execute("echo $x; ps ax | grep -c '[s]leep 62'")).output.endswith(b"5\n1\n")


async def test_a_command_that_will_not_be_interrupted_is_killed_with_its_shell(shell: Shell) -> None:
    result = await shell.execute("trap '' INT; x=5; sleep 63", limit_s=slowly(0.5))
    assert (result.timed_out, result.restarted) == (True, True)
    assert (await shell.execute("echo $x; ps ax | grep -c '[s]leep 63'")).output == b"\n0\n"


async def test_a_job_that_holds_the_output_blocks_nothing_and_is_heard_later(shell: Shell) -> None:
    async with asyncio.timeout(slowly(20)):
        await shell.execute("mkfifo /tmp/go; (read x < /tmp/go; echo late; touch /tmp/said; sleep 60) &")
        heard = await shell.execute("echo > /tmp/go; until [ -e /tmp/said ]; do sleep 0.01; done", limit_s=slowly(15))
        assert (heard.output, heard.timed_out) == (b"late\n", False)


async def test_a_job_that_floods_the_output_blocks_nothing(shell: Shell) -> None:
    await shell.execute("yes &")
    result = await shell.execute("echo here; kill %1; wait; echo on", limit_s=slowly(20))
    assert not result.timed_out
    assert (await shell.execute("echo clean")).output == b"clean\n"


@pytest.mark.parametrize(("option", "shown"), [("-x", b"++ echo traced\ntraced\n"), ("-v", b"echo traced\ntraced\n")])
async def test_tracing_shows_the_commands_and_nothing_around_them(shell: Shell, option: str, shown: bytes) -> None:
    assert (await shell.execute(f"set {option}")).output == b""
    assert (await shell.execute("echo traced")).output == shown
    assert (await shell.execute("(exit 3)")).status == 3


async def test_tracing_shows_nothing_of_an_interrupt(shell: Shell) -> None:
    result = await shell.execute("set -x; sleep 60", limit_s=slowly(0.5))
    assert (result.timed_out, result.output) == (True, b"++ sleep 60\n")


async def test_output_is_what_was_printed(shell: Shell) -> None:
    token = "0123456789abcdef" * 2  # what looks like the mark changes nothing
    printed = await shell.execute(f"printf '\\n{token}:0;\\n'; echo behind")
    assert printed.output == f"\n{token}:0;\nbehind\n".encode()
    result = await shell.execute("head -c 5000000 /dev/urandom", cap=1000)
    assert (len(result.output), result.truncated, result.status) == (1000, True, 0)
    assert (await shell.execute("echo 'ä\ud800\0'")).output == "ä?\n".encode()


# Limits


async def test_there_is_no_network_and_privileges_are_few(box: Sandbox) -> None:
    assert await output(box, "tail -n +3 /proc/net/dev | grep -vc ' lo:'") == "0\n"
    status = await output(box, "grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status")
    assert status.split() == ["CapEff:", "00000000000000eb", "CapBnd:", "00000000000000eb", "NoNewPrivs:", "1"]
    refused = "mount -t tmpfs x /mnt || mknod /tmp/d b 8 0 || unshare -m true || echo 1 > /proc/sys/kernel/panic"
    assert (await box.run(["/bin/bash", "-c", refused])).status != 0


async def test_root_can_make_users_and_files_inside(box: Sandbox) -> None:
    if os.geteuid() != 0 and not isinstance(box, DockerSandbox):
        pytest.skip("as a plain user a namespace has one user only")
    assert (
        await output(box, "useradd -m -s /bin/bash -G root,sudo jack && su - jack -c 'id -un; pwd'")
        == "jack\n/home/jack\n"
    )


async def test_a_file_or_memory_beyond_its_limit_fails_the_command_and_not_the_shell(shell: Shell) -> None:
    assert (await shell.execute("head -c 20000000 /dev/zero > /tmp/large")).status != 0
    assert int((await shell.execute("stat -c %s /tmp/large")).output) <= LIMITS.file_mb << 20
    assert (await shell.execute("python3 -c 'x = bytearray(1 << 29)'")).status not in (0, None)
    assert (await shell.execute("echo on")).output == b"on\n"


async def test_every_sandbox_has_the_same_name_so_that_sessions_can_be_replayed(box: Sandbox) -> None:
    assert await output(box, "cat /etc/hostname; uname -n") == "sandbox\n" * 2
