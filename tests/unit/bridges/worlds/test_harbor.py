"""Folders in Harbor's format: ids, digests, what can't be played and why, and rewards. No container is needed."""

import json
import shutil
from pathlib import Path

import pytest

from proctor.environment import EnvironmentFault
from proctor_bridges.worlds.harbor.environment import Harbor
from proctor_bridges.worlds.harbor.trial import read_rewards, score
from tests.support import ROOT

TASKS = ROOT / "tests" / "acceptance" / "harbor" / "tasks"
NO_NETWORK = 'network_mode = "no-network"\n'


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A copy of the task `files` beside one that can be played."""
    shutil.copytree(TASKS / "program", tmp_path / "tasks" / "program")
    return Path(shutil.copytree(TASKS / "files", tmp_path / "tasks" / "files"))


def with_toml(task: Path, old: str, new: str) -> None:
    file = task / "task.toml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))


def why(task: Path, **fields: object) -> str | None:
    return Harbor.model_validate({"data": task.parent, **fields}).tasks.left_out.get(task.name)


def test_ids_are_the_names_of_the_folders_and_one_task_may_be_named() -> None:
    names = sorted(folder.name for folder in TASKS.iterdir())
    assert list(Harbor(data=TASKS).samples()) == names
    assert list(Harbor(data=TASKS / "program").samples()) == ["program"]
    assert Harbor(data=TASKS).category("service") == "services"


def test_limits_are_those_of_the_file_in_both_spellings_else_those_of_the_plan() -> None:
    tasks = Harbor(data=TASKS).tasks.tasks
    limits = tasks["program"].limits
    assert (limits.cpus, limits.memory_mb, limits.disk_mb) == (1.0, 512, 1024)
    assert tasks["memory"].limits.memory_mb == 64
    assert tasks["time"].file.agent.timeout_sec == 3.0
    assert tasks["program"].file.verifier_s == 90.0
    assert tasks["service"].judging == {"WORD": "there"}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (NO_NETWORK, "", "its network is public"),
        (NO_NETWORK, "allow_internet = true\n", "its network is public"),
        (NO_NETWORK, 'network_mode = "allowlist"\nallowed_hosts = ["a.b"]\n', "it needs a network to some hosts only"),
        ("[agent]\n", '[agent]\nnetwork_mode = "public"\n', "in one phase only"),
        (NO_NETWORK, NO_NETWORK + "gpus = 1\n", "it needs a GPU"),
        (NO_NETWORK, NO_NETWORK + 'tpu = {type = "v6e", topology = "2x4"}\n', "it needs a GPU or TPU"),
        (NO_NETWORK, NO_NETWORK + 'mcp_servers = [{name = "a", url = "http://a"}]\n', "it needs MCP servers"),
        (NO_NETWORK, NO_NETWORK + 'os = "Windows"\n', "another system than Linux"),
        (NO_NETWORK, NO_NETWORK + 'healthcheck = {command = "true"}\n', "it needs a healthcheck"),
        (NO_NETWORK, NO_NETWORK + 'docker_image = "a:1"\nskills_dir = "/s"\n', None),
        ("[agent]\n", '[agent]\nuser = "nobody"\n', "another user than root"),
        ("[agent]\n", "[agent]\nuser = 0\n", None),
        ("[verifier]\n", '[verifier]\nenvironment_mode = "separate"\n', "a container of its own"),
        ("[verifier]\n", '[[steps]]\nname = "a"\n\n[verifier]\n', "several steps"),
        ("[verifier]\n", '[verifier]\nenv = {A = "${NOT_GIVEN}"}\n', "give NOT_GIVEN in the parameter `variables`"),
        ("[verifier]\n", '[verifier]\nenv = {A = "${GIVEN}", B = "${OTHER:-}"}\n', None),
        ("timeout_sec = 60.0", 'timeout_sec = "soon"', "task.toml: verifier.timeout_sec: "),
        ("memory_mb = 256", "memory_mb = 1", "memory_mb: "),
        ("[agent]", "[agent", "Expected"),
    ],
)
def test_a_task_that_can_not_be_played_is_left_out_with_its_reason(
    task: Path, old: str, new: str, reason: str | None
) -> None:
    with_toml(task, old, new)
    found = why(task, variables={"GIVEN": "x"})
    assert (found is None) if reason is None else (reason in str(found))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda task: (task / "environment/docker-compose.yaml").touch(), "several containers"),
        (lambda task: (task / "trajectory.json").touch(), "an earlier trajectory"),
        (lambda task: (task / "instruction.md").unlink(), "it has no instruction.md"),
        (lambda task: (task / "tests/test.sh").unlink(), "it has no tests/test.sh"),
        (lambda task: (task / "environment/Dockerfile").unlink(), "it has no environment/Dockerfile"),
    ],
)
def test_so_is_one_whose_files_tell(task: Path, change: object, reason: str) -> None:
    assert callable(change)
    change(task)
    assert reason in str(why(task))


def test_files_beside_a_published_image_are_not_forgotten(task: Path) -> None:
    with_toml(task, NO_NETWORK, NO_NETWORK + 'docker_image = "a:1"\n')
    (task / "environment" / "Dockerfile").unlink()
    assert why(task) == "it has files beside its docker_image"
    shutil.rmtree(task / "environment")
    assert why(task) is None


def test_a_public_network_is_granted_by_the_plan_and_none_to_who_wants_none(task: Path) -> None:
    with_toml(task, NO_NETWORK, "")
    tasks = Harbor(data=task.parent, network="bridge").tasks.tasks
    assert {name: each.network for name, each in tasks.items()} == {"files": "bridge", "program": "none"}


def test_what_is_left_out_and_unknown_is_told_before_a_run(task: Path) -> None:
    with_toml(task.parent / "program", "[agent]\n", 'colour = "red"\n[agent]\nhaste = 1\n')
    (task / "trajectory.json").touch()
    told = Harbor(data=task.parent).not_comparable_because()
    assert "; 1 of 2 tasks are left out: files: it goes on from an earlier trajectory" in told
    assert told.endswith("; unknown fields of task.toml are ignored: agent.haste")  # metadata may hold anything


def test_what_published_sets_write_is_known(task: Path) -> None:
    (task / "task.toml").write_text(
        'schema_version = "1.1"\nartifacts = []\nmulti_step_reward_mode = "mean"\n[task]\nname = "set/files"\n'
        '[[task.authors]]\nname = "A"\n[metadata.extra]\ncommit = "c"\n[verifier]\ntimeout_sec = 900\n'
        "[agent]\ntimeout_sec = 5400.0\n[environment]\nbuild_timeout_sec = 3600.0\n"
        "docker_image = \"a/b:1\"\ncpus = 4\nmemory = '4G'\nstorage = '10G'\ngpus = 0\nallow_internet = false\n"
        'mcp_servers = []\n[verifier.env]\n[environment.env]\nA = "1"\n[solution.env]\n'
    )
    found = Harbor(data=task.parent, network="relay").tasks
    assert (found.unknown, found.left_out, found.tasks["files"].limits.memory_mb) == ([], {}, 4096)


def test_a_folder_without_a_task_to_play_is_refused(task: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no task\.toml is in"):
        Harbor(data=tmp_path / "nowhere").samples()
    for each in task.parent.iterdir():
        (each / "trajectory.json").touch()
    with pytest.raises(ValueError, match="can be played: files, program: it goes on from an earlier trajectory"):
        Harbor(data=task.parent).samples()
    with pytest.raises(ValueError, match="program: it goes on"):
        Harbor(data=task.parent.parent / "tasks" / "program").category("program")


@pytest.mark.parametrize("name", ["tests/test.sh", "environment/.dockerignore", "solution/solve.sh", "task.toml"])
def test_the_digest_is_over_all_files_and_not_over_their_place(task: Path, tmp_path: Path, name: str) -> None:
    before = Harbor(data=task.parent).digest()
    shutil.copytree(task.parent, tmp_path / "elsewhere")
    assert Harbor(data=tmp_path / "elsewhere").digest() == before
    with (task / name).open("a") as file:
        file.write("\n# more")
    changed = Harbor(data=task.parent).digest()
    (task / name).chmod(0o755)
    assert len({before, changed, Harbor(data=task.parent).digest()}) == 3


def test_an_image_is_named_by_what_it_is_built_from(task: Path) -> None:
    before = Harbor(data=task).tasks.tasks["files"].image
    (task / "instruction.md").write_text("<!-- a canary of a benchmark -->\n# canary 1\n\nDo # canary 2.\n")
    after = Harbor(data=task).tasks.tasks["files"]
    assert after.image == before
    assert after.instruction == "Do # canary 2."
    (task / "environment" / "orders.csv").write_text("")
    assert Harbor(data=task).tasks.tasks["files"].image != before


@pytest.mark.parametrize(
    ("in_json", "in_text", "expected"),
    [
        (None, "1\n", {"reward": 1.0}),
        (None, "0.25", {"reward": 0.25}),
        ('{"reward": true}', None, {"reward": 1.0}),
        ('{"a": 0.5, "b": 2}', "1", {"a": 0.5, "b": 2.0}),
    ],
)
def test_rewards_are_those_of_the_json_before_that_of_the_text(
    in_json: str | None, in_text: str | None, expected: object
) -> None:
    contents = [None if each is None else each.encode() for each in (in_json, in_text)]
    assert read_rewards(*contents) == expected


@pytest.mark.parametrize(
    ("in_json", "in_text", "said"),
    [
        (None, None, "it left no reward"),
        (None, "", "reward.txt is no number"),
        (None, "nan", "reward.txt is no number"),
        (None, "passed", "reward.txt is no number"),
        ("", "1", "reward.json"),
        ("1", "1", "reward.json"),
        ("{}", None, "reward.json"),
        ('{"reward": "1"}', None, "reward.json"),
        ('{"reward": 1e999}', None, "reward.json"),
        (json.dumps({"reward": 10**400}), None, "reward.json"),
    ],
)
def test_other_rewards_are_refused(in_json: str | None, in_text: str | None, said: str) -> None:
    contents = [None if each is None else each.encode() for each in (in_json, in_text)]
    with pytest.raises(ValueError, match=said):
        read_rewards(*contents)


def test_the_score_is_the_reward_of_that_name_or_the_only_one_within_0_and_1() -> None:
    assert score({"other": 0.5}, None) == 0.5
    assert score({"other": 0.5, "reward": 0.75}, None) == 0.75
    assert score({"other": 0.5, "reward": 0.75}, "other") == 0.5
    assert (score({"reward": 7.0}, None), score({"reward": -7.0}, None), score({}, None)) == (1.0, 0.0, 0.0)
    for rewards, name in (({"a": 1.0, "b": 1.0}, None), ({"reward": 1.0}, "a")):
        with pytest.raises(EnvironmentFault, match="name one in the field `reward`"):
            score(rewards, name)
