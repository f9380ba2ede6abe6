"""The packages of their own: without one, what needs it names its extra; with it, everything is there."""

import pytest

from tests.e2e.installed.conftest import Installed, User

BRIDGES = "is not installed; it is in a package of its own: pip install 'proctor[bridges]'"
RAY = "is not installed; it is in a package of its own: pip install 'proctor[ray]'"
SLURM = "is not installed; it is in a package of its own: pip install 'proctor[slurm]'"
DB = "tasks: [{name: db, environment: db, parameters: {engine: sqlite}}]\n"
NAIVE = "agents: [{name: naive, builtin: naive}]\n"
COMMAND = "agents: [{name: coder, kind: command, command: ['true', '{url}']}]\nlimits: {attempts: 1}\n"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("serve --openenv --tasks plan.yaml", f"`proctor serve` {BRIDGES}"),
        ("export r --as atif", f"--as atif {BRIDGES}"),
        ("export r --as sft --to rows.jsonl", f"--as sft {BRIDGES}"),
        ("export r --as every-eval-ever", f"--as every-eval-ever {BRIDGES}"),
        ("play db --mcp", f"--mcp {BRIDGES}"),
        ("run commands.yaml", f"agents.coder.kind: command {BRIDGES}"),
        ("run openenv.yaml", f"openenv.yaml:2: tasks.theirs.environment: environment 'openenv' {BRIDGES}"),
        ("up plan.yaml --ray auto", f"`proctor up` {RAY}"),
        ("down r --ray auto", f"`proctor down` {RAY}"),
        ("slurm plan.yaml --nodes 1 --time 1", f"`proctor slurm` {SLURM}"),
    ],
)
def test_what_needs_a_package_that_is_missing_names_its_extra(user: User, command: str, said: str) -> None:
    (user.folder / "plan.yaml").write_text(NAIVE + DB)
    (user.folder / "commands.yaml").write_text(COMMAND + DB)
    (user.folder / "openenv.yaml").write_text(NAIVE + "tasks: [{name: theirs, environment: openenv}]\n")
    told = user.types(f"proctor {command}", code=2)
    assert told.count("Error") == 1
    assert said in told


def test_a_run_that_was_played_with_bridges_opens_without_it(user: User, bridged: Installed) -> None:
    with_bridges = User(bridged, user.folder)
    (user.folder / "plan.yaml").write_text(COMMAND + DB)
    told = with_bridges.types("proctor run plan.yaml --limit 1 --name r", code=2)
    assert "true ended without having connected to the episode" in told
    assert "0 conversations: runs/r/sft.jsonl" in with_bridges.types("proctor export r --as sft")
    assert "1 trial in 1 file: runs/r/atif" in with_bridges.types("proctor export r --as atif")
    assert "coder" in user.types("proctor report r")
    told = user.types("proctor resume r", code=2)
    assert f"agents.coder.kind: command {BRIDGES}" in told


def test_with_bridges_their_environments_commands_and_wires_are_there(user: User, bridged: Installed) -> None:
    with_bridges = User(bridged, user.folder)
    listed = with_bridges.types("proctor envs")
    assert all(name in listed for name in ("agentbench_v02", "agentrl", "harbor", "openenv"))
    (user.folder / "plan.yaml").write_text(NAIVE + DB)
    assert "name a protocol to serve: --agentbench, --agentrl, --openenv" in with_bridges.types(
        "proctor serve --tasks plan.yaml", code=2
    )


def test_the_doctor_says_which_package_an_agent_lacks(user: User) -> None:
    (user.folder / "plan.yaml").write_text(COMMAND + DB)
    told = user.types("proctor doctor plan.yaml", code=1)
    assert "agent coder is a command: true; what plays it is missing" in told
    assert "pip install 'proctor[bridges]'" in told
