"""Harbor's own models and `environment: harbor` read each other's task.toml alike."""

from pathlib import Path
from typing import Any

from proctor_bridges.worlds.harbor.environment import Harbor
from proctor_bridges.worlds.harbor.tasks import HarborTask
from tests.interop.counterparts import run
from tests.support import ROOT

TASKS = ROOT / "tests" / "acceptance" / "harbor" / "tasks"


def read_here(task: HarborTask) -> dict[str, Any]:
    file, asked = task.file, task.file.environment
    return {
        "agent": file.agent.timeout_sec,
        "verifier": file.verifier_s,
        "resources": [asked.cpus, asked.memory_mb, asked.storage_mb, asked.gpus],
        "network": file.network,
        "variables": [asked.env, file.verifier.env, file.solution.env],
        "metadata": file.metadata,
    }


def read_there(config: dict[str, Any]) -> dict[str, Any]:
    asked = config["environment"]
    return {
        "agent": config["agent"]["timeout_sec"],
        "verifier": config["verifier"]["timeout_sec"],
        "resources": [asked["cpus"], asked["memory_mb"], asked["storage_mb"], asked["gpus"]],
        "network": asked["network_mode"],
        "variables": [asked["env"], config["verifier"]["env"], config["solution"]["env"]],
        "metadata": config["metadata"],
    }


def test_both_read_the_same_and_ours_reads_what_theirs_writes(tmp_path: Path) -> None:
    read = {each["task"]: read_there(each) for each in run("harbor", "read_tasks.py", TASKS, tmp_path)}
    ours, written = Harbor(data=TASKS).tasks, Harbor(data=tmp_path).tasks
    assert len(read) == 8
    assert {name: read_here(task) for name, task in ours.tasks.items()} == read
    assert {name: read_here(task) for name, task in written.tasks.items() if name != "all"} == read
    assert (dict(written.left_out), list(written.unknown)) == ({}, [])
    every = written.tasks["all"]
    assert (every.limits.cpus, every.limits.memory_mb, every.limits.disk_mb) == (1.5, 99, 77)
    assert (every.image, every.file.environment.workdir) == ("own:1", "/w")
    assert [every.variables, every.judging, every.solving] == [{"C": "d"}, {"A": "b"}, {"B": "c"}]
