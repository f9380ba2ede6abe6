"""The acceptance list of the OS environment: one test per line of its specification, then its table of bad inputs.

Lines 4 and 11 are in test_gold.py, line 3 of the dev split in test_preflight.py, line 8 and what commands do to their
shell or to other sandboxes in ../../e2e/sandbox, line 10 in ../../conformance. What concerns no container is tested
in namespaces, for less CPU; the shipped samples are played on Docker in ../test_all_environments.py.
"""

import asyncio
import contextlib
import grp
import json
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import docker
import pytest
import pytest_asyncio

from environments.operating_system.environment import OperatingSystem
from environments.operating_system.observation import EMPTY, HEAD, TRUNCATED
from environments.operating_system.scoring import judge, run
from environments.operating_system.session import SessionRules, ShellSession
from proctor.environment import Agent, ContextLimitExceeded
from proctor.process_owner import Owner
from proctor.sandbox.base import SandboxLimits
from proctor.sandbox.docker_containers import OWNER_LABEL
from proctor.sandbox.docker_engine import DockerEngine
from proctor.session.play import PolicyAgent
from proctor.session.play import play_to_finish as play
from proctor.types import Action, Finish, FinishReason, Observation
from tests.pace import slowly
from tests.scripted_agent import Scripted
from tests.support import SHARED_DATA

DEV = SHARED_DATA / "os/data/dev.json"
TRAIN = SHARED_DATA / "os/data/train_first60.json"
IMAGE = os.environ.get("PROCTOR_OS_IMAGE", "proctor-os:latest")
COMPAT = SessionRules("compat", command_limit_s=30, check_limit_s=60, on_init_error="fail", strict_check="inside")

pytestmark = [pytest.mark.docker, pytest.mark.shared, pytest.mark.asyncio(loop_scope="module")]


def bash(code: str) -> str:
    """The reply that runs code."""
    return f"Think: go\n\nAct: bash\n\n```bash\n{code}\n```"


LIMIT_S = slowly(1.0)
"""For a command, where some are to be interrupted and the others not."""


class Parked(Agent):
    """Runs a command, then waits for ever at its n-th turn."""

    def __init__(self, turn: int) -> None:
        self._left, self.parked = turn, asyncio.Event()

    async def act(self, observation: Observation) -> Action:
        self._left -= 1
        if self._left <= 0:
            self.parked.set()
            await asyncio.Event().wait()
        return Action(content=bash("sleep 100 & echo on"))


def dev(**fields: Any) -> OperatingSystem:
    return OperatingSystem(**{"data": DEV, "image": IMAGE, "limits": SandboxLimits(file_mb=16), "pool": 0, **fields})


def light(**fields: Any) -> OperatingSystem:
    """The dev split in namespaces, where the host has what its set-ups need: root for several users, and Debian's
    group sudo. Elsewhere on Docker."""
    possible = os.geteuid() == 0 and "sudo" in {group.gr_name for group in grp.getgrall()}
    return dev(engine="namespace" if possible else "docker", **fields)


def remaining() -> list[str]:
    """The containers of this process that are still there."""
    client = docker.from_env()
    label = f"{OWNER_LABEL}={Owner.current().label()}"
    found = [str(container["Id"]) for container in client.api.containers(all=True, filters={"label": label})]
    client.close()
    return found


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell of a busy machine takes longer to be heard after an interrupt."""
    monkeypatch.setattr("proctor.sandbox.shell.INTERRUPT_S", slowly(0.5))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def limited() -> AsyncIterator[OperatingSystem]:
    """The dev split with a time limit of about a second a command."""
    environment = dev(command_limit_s=LIMIT_S)
    async with environment.lifespan():
        yield environment


@pytest.fixture
def quick(limited: OperatingSystem) -> Iterator[OperatingSystem]:
    """The same, for a test that leaves no container behind."""
    yield limited
    assert remaining() == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lightly() -> AsyncIterator[OperatingSystem]:
    """The dev split where a session costs least, with the same time limit."""
    environment = light(command_limit_s=LIMIT_S)
    async with environment.lifespan():
        yield environment


async def play_all(environment: OperatingSystem, agents: dict[str, Agent], workers: int = 3) -> dict[str, Finish]:
    slots = asyncio.Semaphore(workers)

    async def one(sample: str) -> Finish:
        async with slots:
            return await play(environment, sample, agents[sample])

    async with environment.lifespan():
        return dict(zip(agents, await asyncio.gather(*map(one, agents)), strict=True))


def failed(finishes: dict[str, Finish]) -> list[str]:
    return [sample for sample, finish in finishes.items() if finish.score != 1.0]


def sample(number: int) -> str:
    return f"dev-dev-{number:05d}"


# The list of section 9


async def test_01_the_loader_returns_26_and_60_samples_with_one_warning() -> None:
    loaded, train = dev().dataset, OperatingSystem(data=TRAIN).dataset
    assert (len(loaded.records), len(train.records)) == (26, 60)
    assert [warning.split(":")[0] for warning in loaded.warnings + train.warnings] == [sample(10)]


async def test_02_the_kinds_are_as_counted() -> None:
    kinds = Counter(record.kind for record in dev().dataset.records.values())
    train = OperatingSystem(data=TRAIN).dataset.records.values()
    checkers = Counter(check.name for record in train for check in record.checks if check)
    assert kinds == {"match": 5, "check": 21}
    assert checkers == {"integer-match": 55, "string-match": 4, "size-match": 1}


class TrainPlay(NamedTuple):
    """What a sample gives first to an agent that always answers 0, and then to its own example."""

    zero: bool
    example: bool


_TRAIN: list[TrainPlay] = []


async def train() -> list[TrainPlay]:
    """All samples of the train extract, each in one container, since their checks only read; played at the first
    call."""
    if not _TRAIN:
        environment, slots = dev(data=TRAIN), asyncio.Semaphore(3)

        async def one(name: str) -> TrainPlay:
            record = environment.dataset.records[name]
            assert record.example is not None
            async with slots, engine.sandbox() as box:
                finish = await ShellSession(box, record, {"compat": record}, COMPAT).play(Scripted("Act: answer(0)"))
                printed = (await run(box, record.example, [], 30)).output.decode()
                answer = printed if None in record.checks else None
                return TrainPlay(finish.score == 1.0, (await judge(box, record, answer, "inside", 30)).passed)

        engine = DockerEngine(IMAGE, environment.limits, pool=0)
        async with engine.lifespan():
            _TRAIN.extend(await asyncio.gather(*map(one, environment.samples())))
    return _TRAIN


async def test_03_the_examples_of_the_train_extract_pass_the_check_pipeline() -> None:
    assert [played.example for played in await train()] == [True] * 60


@pytest.mark.parametrize(
    ("make", "replies", "passed", "reason"),
    [
        (dev, ["Act: answer(0)"], 1, FinishReason.COMPLETED),
        (light, ["Act: finish"], 0, FinishReason.COMPLETED),
        (light, [bash("true")], 0, FinishReason.TURN_LIMIT),
        (light, ["I would look around first."], 0, FinishReason.INVALID_FORMAT),
    ],
    ids=["always_zero", "finish_only", "echo", "garbage"],
)
async def test_05_the_floors_score_what_they_should(
    make: Callable[..., OperatingSystem], replies: Sequence[str], passed: int, reason: FinishReason
) -> None:
    environment = make()
    finishes = await play_all(environment, {s: Scripted(*replies) for s in environment.samples()})
    assert {finish.reason for finish in finishes.values()} == {reason}
    assert len(finishes) - len(failed(finishes)) == passed


async def test_05_always_zero_passes_11_of_the_train_extract() -> None:
    assert sum(played.zero for played in await train()) == 11


async def test_07_801_characters_are_cut_and_800_are_not(lightly: OperatingSystem) -> None:
    agent = Scripted(bash("printf %0800d 0"), bash("printf %0801d 0"), "Act: finish")
    await play(lightly, sample(13), agent)
    assert agent.told[1:] == [HEAD + "0" * 800, HEAD + "0" * 780 + "\n" + TRUNCATED]


async def test_09_no_container_is_left_after_50_samples_and_random_cancellation() -> None:
    environment = dev(pool=3)
    chance, slots = random.Random(9), asyncio.Semaphore(4)

    async def one(index: int) -> None:
        name, turn = environment.samples()[index % 26], chance.choice((0, 0, 1, 2, 3))
        agent = Parked(turn)
        async with slots:
            if turn == 0:
                await play(environment, name, PolicyAgent(environment.reference(name)))
                return
            playing = asyncio.ensure_future(play(environment, name, agent))
            parking = asyncio.ensure_future(agent.parked.wait())
            early = chance.choice((0.0, 0.05, 0.2, 30.0, 30.0))
            await asyncio.wait({playing, parking}, timeout=slowly(early), return_when=asyncio.FIRST_COMPLETED)
            playing.cancel()
            parking.cancel()
            await asyncio.wait({playing, parking})

    async with environment.lifespan():
        await asyncio.gather(*map(one, range(50)))
    assert remaining() == []


# The finish reasons of section 3.6 and the table of section 8


@pytest.mark.parametrize(
    ("agent", "reason", "status"),
    [
        (Scripted("Act: answer 5"), FinishReason.INVALID_ACTION, "agent invalid action"),
        (Scripted("Act: answer(a\0b)"), FinishReason.INVALID_ACTION, "agent invalid action"),
        (Scripted(f"Act: answer({'9' * (1 << 20)})"), FinishReason.INVALID_ACTION, "agent invalid action"),
        (Scripted("five"), FinishReason.INVALID_FORMAT, "agent invalid action"),
        (Scripted(bash("true")), FinishReason.TURN_LIMIT, "task limit reached"),
        (Scripted("Act: answer(\ud800)"), FinishReason.COMPLETED, "completed"),
        (Scripted(f"Act: answer({'9' * 60_000})"), FinishReason.COMPLETED, "completed"),
        (Scripted(ContextLimitExceeded()), FinishReason.CONTEXT_LIMIT, "agent context limit"),
    ],
)
async def test_what_the_agent_did_wrong_is_a_zero_with_its_reason(
    lightly: OperatingSystem, agent: Agent, reason: FinishReason, status: str
) -> None:
    finish = await play(lightly, sample(13), agent)
    assert (finish.reason, finish.score, finish.detail["upstream_status"]) == (reason, 0.0, status)


@pytest.mark.parametrize("fence", ["sh", ""])
async def test_a_block_with_another_fence_is_an_empty_command(lightly: OperatingSystem, fence: str) -> None:
    agent = Scripted(f"Act: bash\n```{fence}\necho no\n```", "Act: finish")
    await play(lightly, sample(13), agent)
    assert agent.told[1] == EMPTY


async def test_a_command_that_waits_is_interrupted_or_gets_no_input(lightly: OperatingSystem) -> None:
    agent = Scripted(bash("echo a; sleep 1000"), bash("cat"), bash("read x; echo got $x"), "Act: finish")
    await play(lightly, sample(13), agent)
    limit = f"[the command was interrupted after the time limit of {LIMIT_S:g} s]"
    assert agent.told[1:] == [f"{HEAD}a\n{limit}", EMPTY, f"{HEAD}got"]


async def test_killing_all_that_runs_costs_the_agent_its_shell_and_is_no_fault(quick: OperatingSystem) -> None:
    agent = Scripted(bash("kill -9 -1; sleep 5"), bash("echo on"), "Act: finish")
    finish = await play(quick, sample(13), agent)
    assert (finish.reason, finish.score) == (FinishReason.COMPLETED, 0.0)
    assert agent.told[2] == f"{HEAD}on"


async def test_a_container_that_dies_is_a_fault(quick: OperatingSystem) -> None:
    class Killer(Scripted):
        """Ends its own container from outside, as an operator or a host short of memory does."""

        async def act(self, observation: Observation) -> Action:
            with contextlib.closing(docker.from_env()) as engine:
                for container in engine.api.containers(filters={"label": OWNER_LABEL}):
                    if container["Labels"][OWNER_LABEL].split()[1] == str(os.getpid()):
                        engine.api.kill(container["Id"])
            return await super().act(observation)

    finish = await play(quick, sample(13), Killer(bash("true"), "Act: finish"))
    assert (finish.reason, finish.score) == (FinishReason.TASK_ERROR, None)
    assert str(finish.detail["cause"]).startswith("ServiceAway: ")


def written(folder: Path, **fields: object) -> Path:
    (folder / "own.json").write_text(json.dumps([{"description": "?", "evaluation": {"match": "x"}, **fields}]))
    return folder / "own.json"


async def test_a_missing_script_is_told_with_sample_and_path(tmp_path: Path) -> None:
    environment = dev(data=written(tmp_path, start={"file": "no.sh"}))
    with pytest.raises(ValueError, match=r"own-own-00000: file: script .*no\.sh"):
        environment.samples()


@pytest.mark.parametrize("fields", [{"create": {"init": "echo broken; exit 3"}}, {"start": "echo broken; false"}])
async def test_a_failing_set_up_is_a_fault_or_only_noted(tmp_path: Path, fields: dict[str, object]) -> None:
    for on_init_error, reason in (("fail", FinishReason.TASK_ERROR), ("continue", FinishReason.COMPLETED)):
        environment = light(data=written(tmp_path, **fields), on_init_error=on_init_error)
        async with environment.lifespan():
            finish = await play(environment, "own-own-00000", Scripted("Act: answer(x)"))
        assert finish.reason is reason
        assert "broken" in json.dumps(finish.detail)


async def test_every_language_runs(tmp_path: Path) -> None:
    c = '#include <stdio.h>\nint main(int n, char **v) { puts("six"); return n == 2 ? 0 : 1; }\n'
    check = [
        {"language": "c", "code": c},
        {"language": "python", "code": "import sys; sys.exit(sys.argv[2] != 'six\\n')"},
    ]
    check.append({"language": "bash", "code": '[ "$#" = 3 ] && [ "$1" = "a b" ]'})
    environment = dev(data=written(tmp_path, evaluation={"check": check}))
    async with environment.lifespan():
        finish = await play(environment, "own-own-00000", Scripted("Act: answer(a b)"))
    assert (finish.score, finish.detail["check_statuses"]) == (1.0, {"compat": [0, 0, 0], "errata": [0, 0, 0]})


@pytest.mark.parametrize(("strict", "score"), [("inside", 1.0), ("outside", 0.0)])
async def test_a_replaced_interpreter_fools_only_checkers_inside(strict: str, score: float) -> None:
    environment = dev(strict_check=strict)
    fake = bash("printf '#!/bin/sh\\nexit 0\\n' > /usr/bin/python3.11; chmod +x /usr/bin/python3.11")
    async with environment.lifespan():
        assert (await play(environment, sample(13), Scripted(fake, "Act: answer(987654)"))).score == score


async def test_a_host_side_check_accepts_what_is_right() -> None:
    environment = dev(strict_check="outside")
    agents: dict[str, Agent] = {s: PolicyAgent(environment.reference(s)) for s in map(sample, (6, 8, 13, 21))}
    finishes = await play_all(environment, agents)
    assert failed(finishes) == [sample(8)], finishes


async def test_a_finish_tells_the_expected_answer_where_tables_show_it_alone(lightly: OperatingSystem) -> None:
    finish = await play(lightly, sample(2), Scripted("Act: answer(wrong)"))
    assert ".plain.log" in str(finish.detail["expected"])
    rest = {name: value for name, value in finish.detail.items() if name != "expected"}
    assert ".plain.log" not in json.dumps([rest, finish.metrics])


# The shipped samples


async def test_the_shipped_samples_tell_reference_naive_and_random_apart_in_namespaces() -> None:
    environment = OperatingSystem(engine="namespace")
    assert len(environment.samples()) >= 16
    accuracies = []
    for policy in (environment.reference, environment.naive, environment.random):
        agents: dict[str, Agent] = {s: PolicyAgent(policy(s)) for s in environment.samples()}
        finishes = await play_all(environment, agents)
        assert not any(finish.reason.is_fault for finish in finishes.values())
        summary = environment.summarize(list(finishes.values()))
        assert not any("always answers 0" in note for note in summary.notes), "these samples have another floor"
        accuracies.append(summary.metrics["acc"])
    assert accuracies[0] == 1.0
    assert 0 < accuracies[1] < 0.3
    assert accuracies[2] < accuracies[0]
