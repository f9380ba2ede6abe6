"""The command `proctor`: a list of subcommands, each loaded only when it is called."""

import atexit
import gc
import importlib
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import click

COMMANDS = {
    "demo": ("demo", "Play every environment on its own samples with built-in agents: no key, no network."),
    "init": ("plans.plan_file", "Write a commented plan, after three questions."),
    "run": ("run", "Play a plan, or models on environments: recorded turn by turn."),
    "resume": ("run", "Resume a run where it stopped; no model call is paid for twice."),
    "extend": ("extend", "Add epochs, samples, agents or tasks to a run, and play what it lacks."),
    "status": ("results.status", "Show the progress of a run."),
    "report": ("results.report", "Show a run's scores with standard errors, coverage, validity, faults and costs."),
    "show": ("results.show", "Show the conversation of one trial, with its score and the evidence."),
    "view": ("results.view", "Show runs in a browser: scores, trials, and every turn of a trial."),
    "compare": ("results.compare", "Compare two agents: by how much they differ, how sure that is, what is missing."),
    "ls": ("manage.ls", "List the runs."),
    "note": ("manage.commands", "Add a note to a run, which its report shows."),
    "export": ("results.export", "Write a run as JSONL, CSV or Parquet, for Inspect or Harbor, to train on or share."),
    "stop": ("manage.commands", "Stop a run from another terminal or host; it can be resumed."),
    "rescore": ("manage.rescore", "Score the answers of a run again, with other settings; no agent is asked."),
    "rm": ("manage.commands", "Remove runs, by name or by age."),
    "doctor": ("doctor.command", "Check a machine or a plan for problems, and print a fix for each."),
    "plan": ("plans.plan_file", "Check a plan, print it resolved, or tell two apart; print the JSON Schema of plans."),
    "envs": ("environments", "List the installed environments."),
    "play": ("session", "Play an environment yourself, at a terminal."),
    "check": ("environments", "Check that an environment meets the contract of environments."),
    "worker": ("servers", "Start a worker: it serves tasks and runs their sessions."),
    "controller": ("servers", "Start a controller: it places sessions on workers."),
    "agents": ("servers", "Serve built-in agents through the OpenAI Chat Completions protocol."),
    "completion": ("manage.commands", "Print the script for completion in bash, zsh or fish."),
}
PARTS = (
    "a run has one client; `proctor run PLAN --name NAME --part K/N` plays a fixed part of the samples as a run of its "
    "own, on as many machines as you like, and `proctor report NAME` reads the parts as one run"
)
GONE = {
    "join": PARTS,
    "--shards": PARTS,
    "--no-pager": "`proctor show ... | cat` shows all at once",
    "copy": "copy the run's folder while no client plays it; of a database server take a dump",
    "retry": "it is `proctor resume RUN --retry SELECTION`",
    "agentbench": "it is `proctor report RUN... --form agentbench`",
    "prune": "it is `proctor rm --older-than AGE`",
    "plan schema": "it is `proctor plan print --schema`",
    "alfworld": "the shipped games are made by `python -m tools.datagen` in a checkout",
    "mind2web generate": "the shipped tasks are made by `python -m tools.datagen` in a checkout; `data` takes your own",
    "webshop generate": "the shipped catalogue is made by `python -m tools.datagen` in a checkout",
    "simulbench tasks": "the mode `generate` went with it; the mode `live` takes a file of your own tasks",
    "simulbench scripts": "the mode `extract` went with it; the mode `script` takes a file of your own scripts",
    "simulbench scores": "it is `proctor report RUN... --form simulbench`",
    "simulbench": "it is `proctor report --form simulbench`, or `proctor export --as simulbench-pairs` or `-dialogues`",
    "stss files": "it is `proctor export RUN --as stss-files`",
    "stss scenarios": "it is `proctor export RUN --as stss-scenarios`",
    "stss table": "it is `proctor report RUN... --form stss`",
    "webshop browse": "`proctor play webshop` shows the shop's pages at a terminal",
}
"""Commands and options of the version before, and what is said of each."""
SERVERS = {"worker": "worker", "controller": "controller", "agents": "agent-server", "serve": "gateway"}
"""command -> the role of its process in logs and traces; other commands have the role `client`."""
CRASHED = 70
"""Exit code of a crash of Proctor. Python's own code would be 1, which means that trials are unscored."""

OURS = ("agent_server", "environments", "eval_client", "proctor", "task_server")
STARTED = frozenset({"demo", "run", "resume", "extend", "join", "rescore", "doctor", "view", "up"})
"""The commands that say at once that they start; the others only print results."""


class Commands(click.Group):
    """Subcommands by name; only the module of the one called is imported. What they print controls no terminal."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the command."""
        from proctor.observability.output import clean_streams

        with clean_streams():
            return super().main(*arguments, **options)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Raises UsageError where an argument is no UTF-8 (stores and messages hold that), or a command is gone."""
        for each in args:
            if each.encode("utf-8", "replace").decode() != each:
                raise click.UsageError(f"{each}: not in UTF-8; rename the file or folder, or type it again")
        options = (each.partition("=")[0] for each in args if each.startswith("--"))
        for name in (" ".join(args[:2]), " ".join(args[:1]), *options):
            if name in GONE:
                raise click.UsageError(f"`{'' if name[:2] == '--' else 'proctor '}{name}` is gone: {GONE[name]}")
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order that a new user needs them; the commands of packages come last."""
        from proctor import registry  # it may be hidden by another package

        return [*COMMANDS, *(name for name in registry.names(registry.COMMANDS) if name not in COMMANDS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, or None. Raises UsageError where a package that it needs is missing."""
        if cmd_name in COMMANDS:
            command: click.Command = getattr(_module(cmd_name), cmd_name)
            return command
        try:
            from proctor import registry

            return registry.command(cmd_name)
        except ImportError as error:
            raise click.UsageError(str(error)) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])
        if added := [name for name in self.list_commands(ctx) if name not in COMMANDS]:
            with formatter.section("Commands of environments and packages"):
                formatter.write_dl([(name, f"See `proctor {name} --help`.") for name in added])


def _module(command: str) -> ModuleType:
    return importlib.import_module(f"eval_client.cli.{COMMANDS[command][0]}")


def _print_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"proctor {version('proctor')}")
        ctx.exit()


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=True)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
@click.pass_context
def proctor(ctx: click.Context) -> None:
    """Evaluate language-model agents on interactive tasks.

    Exit codes: 0 all trials scored, 1 finished with unscored trials or a failed gate, 2 usage error, 70 Proctor
    crashed, 130 interrupted.
    """
    from proctor.observability import logging, tracing

    role = SERVERS.get(ctx.invoked_subcommand or "", "client")
    try:
        logging.set_up(role)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    tracing.set_up(role)
    ctx.call_on_close(tracing.close)


def say_start() -> None:
    """Say that the command starts, before its modules are imported."""
    if sys.argv[1:2] and sys.argv[1] in STARTED and not {"-h", "--help"} & set(sys.argv):
        say_step(f"proctor {sys.argv[1]}: starting")


def say_step(text: str) -> None:
    """Print a step on standard error, if that is a terminal and the command is not to be quiet."""
    if sys.stderr.isatty() and not {"-q", "--quiet"} & set(sys.argv):
        print(f"{text} ...", file=sys.stderr, flush=True)


def shadowed() -> str | None:
    """What to tell the user where one of our packages can't be imported for another one of its name; None else."""
    here = Path(__file__).resolve().parents[2]
    for name in OURS:
        spec = find_spec(name)
        places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
        found = next((Path(place) for place in places if place), None)
        if found is None:
            continue
        folder = found.parent if found.name == "__init__.py" else found
        if folder.resolve().parent != here:
            return (
                f"{folder} shadows the package {name!r} of Proctor in {here}, which it needs; rename it, or take the "
                "folder that it is in off PYTHONPATH"
            )
    return None


def main() -> None:
    """Entry point. An error that the user can correct ends in one message and exit code 2."""
    if sys.platform == "win32":
        sys.exit(_refused("Proctor runs on Linux and macOS; on Windows, use it in WSL (Windows Subsystem for Linux)"))
    if (problem := shadowed()) is not None:
        sys.exit(_refused(problem))
    gc.disable()  # scanning what is being imported again and again would cost a tenth of the start
    atexit.register(gc.freeze)  # as would a search for dead cycles among all objects of a process that ends
    from proctor.observability.output import clean_streams  # it may have been hidden by another package

    with clean_streams():
        _main()


def _main() -> None:
    say_start()
    try:
        if sys.argv[1:2] and sys.argv[1] in COMMANDS:
            _module(sys.argv[1])
        gc.freeze()
        gc.set_threshold(10_000)
        gc.enable()
        proctor(prog_name="proctor", max_content_width=120)
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(CRASHED)


def _refused(why: str) -> int:
    click.echo(f"Error: {why}", err=True)
    return 2


if __name__ == "__main__":
    main()
