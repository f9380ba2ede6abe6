"""Reads the task.toml of each task in a folder with Harbor's own model, and prints a JSON line for each.

Into a second folder it writes each as Harbor writes it, and beside them the task `all`, which has all fields.
"""

import json
import shutil
import sys
import warnings
from pathlib import Path

from harbor.models.task.config import TaskConfig
from harbor.models.task.paths import TaskPaths

warnings.simplefilter("ignore", DeprecationWarning)
ALL = {
    "schema_version": "1.4",
    "task": {"name": "own/all", "version": "1", "authors": [{"name": "A", "email": "a@b"}], "keywords": ["k"]},
    "metadata": {"category": "c"},
    "source": "own",
    "artifacts": ["/app/out"],
    "agent": {"timeout_sec": 7.0, "user": "root", "network_mode": "no-network"},
    "verifier": {"timeout_sec": 8.0, "env": {"A": "${A:-b}"}, "user": 0, "environment_mode": "shared"},
    "solution": {"env": {"B": "c"}},
    "environment": {
        **{"build_timeout_sec": 9.0, "docker_image": "own:1", "os": "LINUX", "cpus": 1.5, "memory_mb": 99},
        **{"storage_mb": 77, "gpus": 0, "gpu_types": ["T4"], "env": {"C": "d"}, "skills_dir": "/skills"},
        **{"workdir": "/w", "network_mode": "no-network"},
    },
}

folder = Path(sys.argv[1])
for path in sorted(folder.glob("*/task.toml")):
    paths = TaskPaths(path.parent)
    assert paths.instruction_path.exists()
    assert paths.discovered_test_path
    assert paths.discovered_solve_path
    read = TaskConfig.model_validate_toml(path.read_text())
    print(json.dumps({**read.model_dump(mode="json"), "task": path.parent.name}))
    shutil.copytree(path.parent, Path(sys.argv[2]) / path.parent.name)
    (Path(sys.argv[2]) / path.parent.name / "task.toml").write_text(read.model_dump_toml())
shutil.copytree(path.parent, Path(sys.argv[2]) / "all")
(Path(sys.argv[2]) / "all" / "environment" / "Dockerfile").unlink()
for file in (Path(sys.argv[2]) / "all" / "environment").iterdir():
    file.unlink()
(Path(sys.argv[2]) / "all" / "task.toml").write_text(TaskConfig.model_validate(ALL).model_dump_toml())
