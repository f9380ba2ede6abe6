"""`environment: harbor` over eight tasks of our own: rewards, faults, tampering, images, and `proctor harbor check`.

The rewards stand here as Harbor's documentation has them: a trial's reward is what its tests wrote into reward.json, or
else into reward.txt; the oracle runs solution/solve.sh, and an agent that is late is judged by what it left.
"""

import asyncio
import contextlib
import io
import json
import secrets
import shutil
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import docker
import docker.errors
import pytest
import pytest_asyncio
from click.testing import CliRunner

from proctor.environment import Agent
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.tools import Protocol
from proctor.types import Finish, FinishReason
from proctor_bridges.worlds.harbor.commands import harbor
from proctor_bridges.worlds.harbor.environment import Harbor
from tests.pace import slowly
from tests.scripted_agent import Scripted

TASKS = Path(__file__).with_name("tasks")
SOLVED = {"files": 1.0, "processes": 1.0, "service": 1.0, "program": 1.0, "impossible": 0.0, "memory": 0.0, "time": 0.0}
"""The reward of the oracle; that of doing nothing is 0. The task `crash` gives no reward to anybody."""

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="module")]


def running(*commands: str) -> Scripted:
    """An agent that runs these commands, one a turn, then finishes."""
    return Scripted(*(f"Act: bash\n\n```bash\n{command}\n```" for command in commands), "Act: finish")


def world(data: Path = TASKS, **fields: object) -> Harbor:
    return Harbor.model_validate({"data": data, "time_factor": slowly(1), **fields})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tasks() -> AsyncIterator[Harbor]:
    played = world(protocol="text")
    async with played.lifespan():
        yield played


async def played(folder: Path, agent: Agent, **fields: object) -> Finish:
    """One task of a folder of its own, by the text protocol."""
    one = world(folder, protocol="text", **fields)
    async with one.lifespan():
        return await play_to_finish(one, folder.name, agent)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A copy of the task `files`, to be changed."""
    return Path(shutil.copytree(TASKS / "files", tmp_path / "own"))


def with_toml(task: Path, old: str, new: str) -> None:
    file = task / "task.toml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


@pytest.mark.parametrize("name", SOLVED)
async def test_the_solution_gets_its_reward_and_nothing_gets_none(name: str, tasks: Harbor) -> None:
    solved = await play_to_finish(tasks, name, PolicyAgent(tasks.reference(name)))
    nothing = await play_to_finish(tasks, name, PolicyAgent(tasks.naive(name)))
    assert (solved.score, nothing.score) == (SOLVED[name], 0.0)
    assert solved.detail["tampered"] == nothing.detail["tampered"] == []
    late = name == "time"
    assert solved.reason is (FinishReason.TURN_LIMIT if late else FinishReason.COMPLETED)
    assert solved.metrics["late"] == float(late)


async def test_tests_that_give_no_reward_are_a_fault_of_the_task(tasks: Harbor) -> None:
    finish = await play_to_finish(tasks, "crash", PolicyAgent(tasks.naive("crash")))
    assert finish.reason is FinishReason.TASK_ERROR
    assert "tests/test.sh ended with status 3; it left no reward.txt or reward.json" in str(finish.detail["cause"])


@pytest.mark.parametrize("protocol", ["tools", "text"])
async def test_both_protocols_play_the_same(protocol: Protocol) -> None:
    one = world(TASKS / "program", protocol=protocol)
    async with one.lifespan():
        finish = await play_to_finish(one, "program", PolicyAgent(one.reference("program")))
    assert (finish.score, finish.metrics["reward"], finish.metrics["reward_cases"]) == (1.0, 1.0, 4.0)
    assert finish.metrics["steps"] == 3


async def test_a_part_of_the_cases_gets_a_part_of_the_reward(tasks: Harbor) -> None:
    code = 'int main() { return !printf("2\\n3\\n5\\n7\\n11\\n13\\n17\\n19\\n23\\n29\\n"); }'
    finish = await play_to_finish(tasks, "program", running(f"echo '{code}' >primes.c"))
    assert (finish.score, finish.metrics["reward_cases"]) == (0.25, 1.0)


async def test_an_agent_sees_outputs_up_to_the_limit_and_errors_of_its_replies(task: Path) -> None:
    agent = running("pwd; head -c 500 /dev/zero | tr '\\0' x", "exit 3", "echo again in $PWD")
    finish = await played(task, agent, output_characters=100)
    assert agent.told[0].startswith("`/app/orders.csv` has a line")
    assert agent.told[1] == f"The output of the OS:\n\n/app\n{'x' * 75}\n[truncated because the output is too long]"
    assert "a new one was started in /" in agent.told[2]
    assert agent.told[3] == "The output of the OS:\n\nagain in /"
    assert (finish.score, finish.metrics["steps"]) == (0.0, 4)
    finish = await played(task, Scripted("no action", "nor this one"), max_steps=2)
    assert (finish.reason, finish.metrics["unreadable_replies"]) == (FinishReason.INVALID_FORMAT, 2)


async def test_variables_and_the_folder_are_those_of_image_and_file(
    task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIVEN", "of this machine")
    with (task / "environment" / "Dockerfile").open("a") as dockerfile:
        dockerfile.write("ENV PATH=/opt/tools:$PATH IMAGE='of the image'\n")
    variables = (
        '\nworkdir = "/srv/work"\n[environment.env]\nPLAIN = "a b"\nASKED = "${GIVEN}"\n[verifier.env]\nKEY = "k"\n'
    )
    with_toml(task, "[verifier]\ntimeout_sec = 60.0\n", "")
    with (task / "task.toml").open("a") as file:
        file.write(variables)
    agent = running('echo "$PWD|$PLAIN|$ASKED|$IMAGE|${PATH%%:*}|$KEY|$GIVEN|$HOME"')
    (task / "tests" / "test.sh").write_text(
        '#!/bin/bash\n[ "$KEY$ASKED$PWD" = "kgiven/srv/work" ]; echo $((1 - $?)) >/logs/verifier/reward.txt\n'
    )
    finish = await played(task, agent, variables={"GIVEN": "given"})
    assert agent.told[1] == "The output of the OS:\n\n/srv/work|a b|given|of the image|/opt/tools|||/root"
    assert finish.score == 1.0


async def test_what_judges_and_was_changed_is_counted(tasks: Harbor, task: Path) -> None:
    cheat = "mv /usr/bin/diff /usr/bin/diff.real; printf '#!/bin/sh\\n' >/usr/bin/diff; chmod 755 /usr/bin/diff"
    finish = await play_to_finish(tasks, "files", running(cheat))
    assert (finish.score, finish.metrics["tampered"]) == (1.0, 1.0)
    assert "/usr/bin/diff" in str(finish.detail["tampered"])
    assert tasks.summarize([finish]).metrics["tampered"] == 1.0

    (task / "tests" / "expected").write_text("ann,12\n")
    (task / "tests" / "test.sh").write_text(
        "#!/bin/bash\ntouch /tests/begun\nuntil [ -e /tests/cheated ]; do sleep 0.1; done\n"
        "echo 1 >/logs/verifier/reward.txt\n"
    )
    job = "until [ -e /tests/begun ]; do sleep 0.1; done; echo bob >/tests/expected; touch /tests/cheated"
    finish = await played(task, running(f"({job}) >/dev/null 2>&1 &"))
    assert finish.detail["tampered"] == ["/tests/expected"]


async def test_an_agent_that_breaks_the_verifier_gets_0_and_makes_no_fault(tasks: Harbor) -> None:
    finish = await play_to_finish(tasks, "files", running("rm -f /usr/bin/dash /usr/bin/sh /bin/sh; echo done"))
    assert (finish.reason, finish.score, finish.metrics["spoiled"]) == (FinishReason.COMPLETED, 0.0, 1.0)
    assert finish.metrics["tampered"] == 1.0


async def test_what_lies_at_the_place_of_the_tests_does_not_stay(tasks: Harbor) -> None:
    cheat = "mkdir -p /tests /logs/verifier; echo 1 >/logs/verifier/reward.json; ln -s /tmp /tests/cases"
    finish = await play_to_finish(tasks, "files", running(cheat, "rm -rf /tests; ln -s /etc /tests"))
    assert (finish.score, finish.metrics["reward"]) == (0.0, 0.0)


async def test_an_image_is_built_once_and_an_own_one_is_taken(task: Path) -> None:
    (task / "environment" / "orders.csv").write_text(f"ann,12\nbob,30\ncid,5\n# {task}\n")
    one = world(task, protocol="text")
    async with one.lifespan():
        agents = [PolicyAgent(one.naive("own")) for _ in range(3)]
        finishes = await asyncio.gather(*(play_to_finish(one, "own", agent) for agent in agents))
    assert [finish.score for finish in finishes] == [0.0] * 3
    with contextlib.closing(docker.from_env()) as client:
        [image] = client.images.list(filters={"reference": one.tasks.tasks["own"].image})
        assert image.labels["proctor.harbor.task"] == "own"
        client.images.remove(image.tags[0])
    shutil.rmtree(task / "environment")
    with_toml(task, "[environment]\n", '[environment]\ndocker_image = "proctor-os:latest"\n')
    agent = running("pwd")
    assert (await played(task, agent)).score == 0.0
    assert agent.told[1] == "The output of the OS:\n\n/"


async def test_an_image_that_can_not_be_made_is_a_fault_with_its_reason(task: Path) -> None:
    (task / "environment" / "Dockerfile").write_text("FROM proctor-os:latest\nRUN echo so far; false\n")
    finish = await played(task, running())
    assert finish.reason is FinishReason.TASK_ERROR
    assert "so far" in str(finish.detail["cause"])
    (task / "environment" / "Dockerfile").write_text("FROM proctor-os:latest\nUSER nobody\n")
    finish = await played(task, running())
    assert "wants the user 'nobody'" in str(finish.detail["cause"])


def of_2020(client: docker.DockerClient, folder: Path) -> str:
    """An image as one that was built here in 2020; its name."""
    name = f"proctor-harbor:{secrets.token_hex(16)}"
    (folder / "Dockerfile").write_text(
        f"FROM scratch\nLABEL proctor.harbor.task=old\nENV A={name}\nCOPY Dockerfile /\n"
    )
    client.images.build(path=str(folder), tag=name, rm=True)
    image, old = b"".join(client.images.get(name).save(named=True)), io.BytesIO()
    client.images.remove(name)
    with tarfile.open(fileobj=io.BytesIO(image)) as source, tarfile.open(fileobj=old, mode="w") as target:
        for member in source:
            content = b"" if (file := source.extractfile(member)) is None else file.read()
            if b'"proctor.harbor.task"' in content:
                content = json.dumps(json.loads(content) | {"created": "2020-02-02T00:00:00Z"}).encode()
                member.size = len(content)
            target.addfile(member, io.BytesIO(content))
    client.images.load(old.getvalue())
    return name


async def test_old_images_are_removed_and_others_stay(task: Path, tmp_path: Path) -> None:
    with contextlib.closing(docker.from_env()) as client:
        old = of_2020(client, tmp_path)
        await played(task, running())
        with pytest.raises(docker.errors.ImageNotFound):
            client.images.get(old)
        assert client.images.get(world(task).tasks.tasks["own"].image)


@pytest.fixture
def checked(tmp_path: Path) -> Path:
    for name in ("files", "impossible", "crash"):
        shutil.copytree(TASKS / name, tmp_path / name)
    shutil.copytree(TASKS / "files", tmp_path / "public")
    with_toml(tmp_path / "public", 'network_mode = "no-network"\n', 'colour = "red"\n')
    with_toml(tmp_path / "files", '"no-network"\n', '"no-network"\ncolour = "red"\n')
    return tmp_path


async def test_check_tells_which_tasks_are_sound(checked: Path) -> None:
    told = await asyncio.to_thread(CliRunner().invoke, harbor, ["check", str(checked)])
    assert told.exit_code == 1
    lines = told.stdout.splitlines()
    [files] = [line for line in lines if " files: " in line]
    assert files.startswith("ok        files: nothing, with the image, 0 in ")
    assert "; solution 1 in " in files
    assert any(line.startswith("not sound impossible: ") and "; solution 0 in " in line for line in lines)
    assert any(
        line.startswith("not sound crash: ") and "solution EnvironmentFault: tests/test.sh ended" in line
        for line in lines
    )
    assert any(line.startswith("left out  public: its network is public") for line in lines)
    assert "unknown fields of task.toml: environment.colour" in lines
    assert lines[-1] == "1 of 3 tasks are sound; 1 left out"
    told = await asyncio.to_thread(CliRunner().invoke, harbor, ["check", str(checked / "files")])
    assert told.exit_code == 0
