"""`proctor slurm`: a plan as a job of SLURM."""

import math
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from eval_client.cli.common import MOST_PARTS, limit_option, output_option, report_usage_errors, set_option
from eval_client.cli.usage import FILE, UsageProblem
from eval_client.plan.load import load_plan
from eval_client.plan.plan import Plan
from eval_client.store.runs import checked_name, new_name

PORT = "{port}"
EARLY_S = 30
"""SLURM looks so often, and so gives notice up to so much earlier."""


def _array(_context: click.Context, _option: click.Parameter, given: str | None) -> int | None:
    if given is None:
        return None
    found = re.fullmatch(r"(?:1-)?([0-9]{1,5})", given)
    if found is None or not 1 <= int(found[1]) <= MOST_PARTS:
        raise UsageProblem(f"--array {given}: write K or 1-K, the number of parts, at most {MOST_PARTS}")
    return int(found[1])


def _one_line(_context: click.Context, option: click.Parameter, given: str | None) -> str | None:
    if given is not None and not given.isprintable():
        raise UsageProblem(f"--{str(option.name).replace('_', '-')}: write it in one line")
    return given


def _wall_time(_context: click.Context, _option: click.Parameter, given: str) -> str:
    if not re.fullmatch(r"(\d+-)?\d+(:\d+){0,2}|UNLIMITED|INFINITE", given, re.IGNORECASE | re.ASCII):
        raise UsageProblem(f"--time {given!a}: write minutes, H:MM:SS or D-H, such as 30, 4:00:00, 2-0")
    return given


def _seconds(time: str) -> float:
    """A wall time as sbatch reads it."""
    days, _, rest = time.rpartition("-")
    if rest.isalpha():
        return math.inf
    units = (3600, 60, 1) if days or rest.count(":") == 2 else (60, 1)
    counts = map(int, rest.split(":"))
    return int(days or 0) * 86_400 + sum(count * unit for count, unit in zip(counts, units, strict=False))


@dataclass(frozen=True)
class ModelServers:
    """The model servers of a job: a command for each, so many on a node, on the first `nodes` of its nodes."""

    command: str
    per_node: int
    nodes: int
    endpoint: int
    """The place of the plan's endpoint that they serve: names may have dots, which `--set` takes for fields."""

    @property
    def count(self) -> int:
        """How many URLs there are when all have loaded; a command with `{rank}` is one server over all its nodes."""
        return self.per_node * (1 if "{rank}" in self.command else self.nodes)


@click.command()
@click.argument("plan", type=FILE)
@click.argument("sbatch_options", nargs=-1, metavar="[-- SBATCH OPTIONS]", type=click.UNPROCESSED)
@click.option("--nodes", required=True, type=click.IntRange(min=1), help="Nodes of the job, of each job of an array.")
@click.option("--time", required=True, callback=_wall_time, help="Its wall time as sbatch takes it: 30, 4:00:00, 2-0.")
@click.option("--partition", callback=_one_line, help="The partition.")
@click.option("--gres", callback=_one_line, help="What it needs on each node, such as gpu:8.")
@click.option("--array", callback=_array, metavar="K", help="Play the plan in K parts, each a job and a run NAME.KofN.")
@click.option(
    "--model-command",
    callback=_one_line,
    metavar="COMMAND",
    help="Start a model server with this command, for the endpoint of the plan with `replicas_file`. Filled in are "
    "{port}, {key}, {gpu}, and for one model over several nodes {rank}, {nodes} and {head}. No shell reads it.",
)
@click.option(
    "--models-per-node", type=click.IntRange(1, 64), default=1, show_default=True, help="Model servers on a node."
)
@click.option(
    "--model-nodes", type=click.IntRange(min=1), help="Nodes with model servers, the first ones. Default: all."
)
@click.option(
    "--setup", type=FILE, help="A file of lines for the script: #SBATCH lines, modules, a virtual environment."
)
@click.option(
    "--notice",
    type=click.IntRange(10, 3600),
    default=120,
    show_default=True,
    help="Seconds before the end of the wall time at which the run drains; at half of them it stops at once.",
)
@click.option("--print", "prints", is_flag=True, help="Write and print the script, and submit nothing.")
@output_option
@click.option("--name", help="Name of the run; one that exists is resumed.")
@limit_option
@set_option
def slurm(
    plan: Path,
    sbatch_options: tuple[str, ...],
    nodes: int,
    time: str,
    partition: str | None,
    gres: str | None,
    array: int | None,
    model_command: str | None,
    models_per_node: int,
    model_nodes: int | None,
    setup: Path | None,
    notice: int,
    prints: bool,
    output: Path,
    name: str | None,
    limit: int | None,
    overrides: tuple[str, ...],
) -> None:
    """Play PLAN as a job of SLURM: a worker on every node, client and controller on the first.

    The run drains before the wall time is over, and goes on when the job is requeued. The job's script, logs and token
    are in the run's folder, in `slurm`; all nodes must see it. What follows `--` goes to sbatch.
    """
    with report_usage_errors():
        if _seconds(time) <= notice + EARLY_S:
            raise UsageProblem(f"--time {time}: SLURM would give notice at once; name a longer time, or --notice 10")
        loaded = load_plan(plan, overrides)
        folder = output.resolve() / checked_name(name or new_name(loaded.name)) / "slurm"
        models = _model_servers(plan, loaded, model_command, models_per_node, min(model_nodes or nodes, nodes))
        lines, code = _setup(setup)
        header = {
            "job-name": folder.parent.name,
            "nodes": nodes,
            "ntasks-per-node": 1,
            "time": time,
            "partition": partition,
            "gres": gres,
            "array": array and f"1-{array}",
            "signal": f"B:USR1@{notice}",
            "output": str(folder).replace("%", "%%") + ("/job-%A_%a.log" if array else "/job-%j.log"),
            "open-mode": "append",
        }
        given = [shlex.quote(f"--{option}={value}") for option, value in header.items() if value is not None]
        if not all(map(str.isprintable, sbatch_options)):
            raise UsageProblem("--: write each of sbatch's options in one line")
        loader = PackageLoader("proctor_slurm", "")
        jinja = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
        jinja.filters["q"] = lambda value: shlex.quote(str(value))
        text = jinja.get_template("job.sh.j2").render(
            name=folder.parent.name,
            header=[*given, "--requeue --no-kill", *lines, *([shlex.join(sbatch_options)] if sbatch_options else [])],
            python=sys.executable,
            setup=code,
            setup_file=setup,
            folder=folder,
            array=array,
            cwd=Path.cwd(),
            output=output.resolve(),
            models=0 if models is None else models.count,
            node_options=_node_options(loaded, models),
            client_options=_client_options(models, limit, array),
            notice=notice,
            drain=notice // 2,
        )
        _write_folder(folder, loaded, text, array)
    script = folder / "job.sh"
    if prints:
        click.echo(text, nl=False)
        click.echo(f"nothing is submitted; submit it with: sbatch {shlex.quote(str(script))}", err=True)
        return
    job = _submit(script)
    run = output / (f"{folder.parent.name}.1of{array}" if array else folder.parent.name)
    click.echo(f"job {job}: proctor status {run}, proctor stop {run}, scancel {job}; logs: {folder}")


def _model_servers(file: Path, plan: Plan, command: str | None, per_node: int, nodes: int) -> ModelServers | None:
    if plan.controller != "local":
        raise UsageProblem(f"{file}: controller: leave it out; the job has one of its own")
    if command is None:
        return None
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageProblem(f"--model-command: {error}") from error
    if not any(PORT in word for word in words):
        raise UsageProblem(f"--model-command: write {PORT} where the server's port stands; nodes are shared")
    serving = [place for place, endpoint in enumerate(plan.endpoints) if endpoint.replicas_file is not None]
    if len(serving) != 1:
        fix = "write `replicas_file: servers` into the one whose models the job serves, in place of `base_url`"
        raise UsageProblem(f"{file}: endpoints: {len(serving)} of them have a `replicas_file`; {fix}")
    endpoint = plan.endpoints[serving[0]]
    if endpoint.api_key_command:
        raise UsageProblem(f"{file}: endpoints.{endpoint.name}.api_key_command: leave it out; the job makes the key")
    return ModelServers(command, per_node, nodes, serving[0])


def _node_options(plan: Plan, models: ModelServers | None) -> str:
    """What the script gives each node's step, as text of the script."""
    given = "" if plan.local.workers == 1 else f" --workers {plan.local.workers}"
    if models is None:
        return given
    where = f" --models {models.per_node} --model-nodes {models.nodes}"
    return f"{given}{where} \\\n    --model-command {shlex.quote(models.command)}"


def _client_options(models: ModelServers | None, limit: int | None, array: int | None) -> str:
    """The client's own options, as text of the script."""
    given = "" if limit is None else f" --limit {limit}"
    if array is not None:
        given += f' --part "$SLURM_ARRAY_TASK_ID/{array}"'
    if models is not None:
        at = f"endpoints.{models.endpoint}"
        given += f' \\\n    --set "{at}.replicas_file=$here/replicas" --set "{at}.api_key_file=$job/key"'
    return given


def _setup(file: Path | None) -> tuple[list[str], str]:
    """The `#SBATCH` options of a set-up file, which stand before all commands, and its other lines."""
    if file is None:
        return [], ""
    lines = file.read_text().splitlines()
    options = [line.removeprefix("#SBATCH").strip() for line in lines if line.startswith("#SBATCH")]
    return options, "\n".join(line for line in lines if not line.startswith(("#SBATCH", "#!"))).strip()


def _write_folder(folder: Path, plan: Plan, script: str, array: int | None) -> None:
    """The job's folder: the plan as it is now, the script, the token and the model servers' key."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    for number in range(1, (array or 0) + 1):
        (folder / f"part-{number}").mkdir(exist_ok=True)
    own = plan.model_dump(mode="json", exclude_unset=True, exclude={"token_env"})
    (folder / "plan.yaml").write_text(yaml.safe_dump(own, sort_keys=False))
    (folder / "job.sh").write_text(script)
    for name in ("token", "key"):  # a job that is under way has read those that are there
        if not (folder / name).exists():
            with os.fdopen(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(f"{secrets.token_hex(32)}\n")


def _submit(script: Path) -> str:
    """Submit the script; the job's id. Raises UsageProblem with what sbatch says."""
    if shutil.which("sbatch") is None:
        raise UsageProblem(f"no sbatch on PATH: call this on a machine that submits jobs; the script is {script}")
    done = subprocess.run(["sbatch", "--parsable", script], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UsageProblem(f"sbatch: {done.stderr.strip() or done.returncode}; the script is {script}")
    return done.stdout.strip().partition(";")[0]
