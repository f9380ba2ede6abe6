"""What `proctor slurm` writes and refuses, without a cluster."""

import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

from proctor_slurm.node import gpus
from tests.e2e.proctor import exits

PLAN = """\
endpoints: [{name: e-1.5, replicas_file: servers}]
agents: [{name: model, endpoint: e-1.5, model: m}]
tasks: [{name: db, environment: db, parameters: {engine: sqlite}}]
"""
JOB = ("slurm", "plan.yaml", "--name", "r", "--nodes", "4", "--time", "4:00:00", "--print")
SETUP = "#!/bin/bash\n#SBATCH --account=lab --qos=long\nmodule load python\n#SBATCH --mem=8G\n"


@pytest.mark.smoke
def test_the_printed_script_has_the_lines_of_the_site_where_sbatch_reads_them_and_no_secret(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    (tmp_path / "site.sh").write_text(SETUP)
    model = "vllm serve 'a b' --port {port} --x '{\"n\": 1}'"
    options = (
        *["--setup", "site.sh", "--gres", "gpu:8", "--array", "1-3", "--model-nodes", "2", "--model-command"],
        model,
    )
    done = exits(0, *JOB, *options, "--models-per-node", "8", "--", "-C", "a b", cwd=tmp_path)
    folder = tmp_path / "runs" / "r" / "slurm"
    script = (folder / "job.sh").read_text()
    assert done.stdout == script
    assert "sbatch " in done.stderr
    subprocess.run(["bash", "-n", folder / "job.sh"], check=True)
    head, _, rest = script.partition("\n\n")
    for line in ("--nodes=4", "--time=4:00:00", "--gres=gpu:8", "--array=1-3", "--account=lab --qos=long", "-C 'a b'"):
        assert f"\n#SBATCH {line}" in head
    assert head.index("--mem=8G") < head.index("-C 'a b'"), "what follows -- comes last, and so wins"
    assert "#SBATCH" not in rest
    assert "\nmodule load python\n" in rest
    assert '--part "$SLURM_ARRAY_TASK_ID/3"' in rest
    assert "--models 16 " in rest
    for option in re.findall('--set "(endpoints[^"]+)"', rest):
        own = option.replace("$here", str(folder)).replace("$job", str(folder))
        exits(0, "plan", "check", str(folder / "plan.yaml"), "--set", own, cwd=tmp_path)
    for secret in ("token", "key"):
        assert stat.S_IMODE((folder / secret).stat().st_mode) == 0o600
        assert (folder / secret).read_text().strip() not in script
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    exits(0, *JOB, cwd=tmp_path)
    assert (folder / "job.sh").read_text() != script


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--set", "controller=http://127.0.0.1:1"), "controller: leave it out"),
        (("--model-command", "vllm serve m"), "write {port}"),
        (("--model-command", "serve '{port}"), "--model-command: No closing quotation"),
        (("--model-command", "serve\n{port}"), "--model-command: write it in one line"),
        (("--time", "1\nrm x"), "--time '1\\nrm x': write minutes, H:MM:SS or D-H"),
        (("--time", "2"), "--time 2: SLURM would give notice at once; name a longer time, or --notice 10"),
        (("--time", "0-1:00", "--notice", "3600"), "--time 0-1:00: SLURM would give notice at once"),
        (("--array", "2-4"), "--array 2-4: write K or 1-K"),
        (("--", "--comment=a\nrm x"), "in one line"),
        (("--setup", "none.sh"), "none.sh: No such file"),
        (("--set", "tasks.db.parameters.engine=nonsense"), "must be mariadb or sqlite"),
    ],
)
def test_what_can_not_be_a_job_is_refused_in_one_sentence(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    done = exits(2, *JOB, *options, cwd=tmp_path)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("given", "of_each"),
    [("0,1,2,3", ["0,1", "2,3"]), ("4,6,7", ["4", "6"]), ("5", ["5", "5"]), ("", ["0", "1"])],
)
def test_model_servers_of_a_node_get_devices_that_it_was_given(
    monkeypatch: pytest.MonkeyPatch, given: str, of_each: list[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    assert [gpus(server, 2) for server in range(2)] == of_each


def test_models_need_the_one_endpoint_that_is_to_list_them(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN.replace("replicas_file: servers", "base_url: 'http://127.0.0.1:1/v1'"))
    done = exits(2, *JOB, "--model-command", "serve {port}", cwd=tmp_path)
    assert "plan.yaml: endpoints: 0 of them have a `replicas_file`" in done.stderr


def test_without_sbatch_the_script_is_there_to_be_submitted_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    done = exits(2, *JOB[:-1], cwd=tmp_path, PATH=os.path.dirname("/nowhere/bin"))
    assert "no sbatch on PATH" in done.stderr
    assert (tmp_path / "runs" / "r" / "slurm" / "job.sh").exists()
