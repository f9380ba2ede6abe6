"""The command `proctor`: a list of subcommands, each loaded only when it is called."""

import atexit
import gc
import importlib
import sys
from importlib.metadata import version
from types import ModuleType

import click

from eval_client.shadowed import shadowed
from eval_client.steps import say_start

COMMANDS = {
    "demo": ("demo", "Play every environment on its own samples with built-in agents: no key, no network."),
    "init": ("plans.init", "Write a commented plan, after three questions."),
    "run": ("run", "Play a plan, or models on environments: recorded turn by turn."),
    "resume": ("run", "Resume a run where it stopped; no model call is paid for twice."),
    "retry": ("run", "Play chosen trials of a run again; their earlier results are kept."),
    "join": ("join", "Add a client to a run in progress."),
    "status": ("results.inspect", "Show the progress of a run."),
    "report": ("results.inspect", "Show a run's scores with standard errors, coverage, validity, faults and costs."),
    "agentbench": ("results.inspect", "Print runs in the form of AgentBench's tables."),
    "show": ("results.show", "Show the conversation of one trial, with its score and the evidence."),
    "view": ("results.view", "Show runs in a browser: scores, trials, and every turn of a trial."),
    "compare": ("results.compare", "Compare two agents: by how much they differ, how sure that is, what is missing."),
    "ls": ("manage.ls", "List the runs."),
    "export": ("results.export", "Write a run as JSONL, CSV or Parquet, for Inspect or Harbor, or to train on."),
    "stop": ("manage.stop", "Stop a run from another terminal or host; it can be resumed."),
    "rescore": ("manage.rescore", "Score the answers of a run again, with other settings; no agent is asked."),
    "rm": ("manage.remove", "Remove runs."),
    "prune": ("manage.remove", "Remove runs that are older than an age."),
    "copy": ("manage.copy", "Copy a run to another store."),
    "doctor": ("doctor", "Check a machine or a plan for problems, and print a fix for each."),
    "plan": ("plan", "Check a plan, print it resolved, or print the JSON Schema of plans."),
    "envs": ("environments", "List the installed environments."),
    "play": ("person.command", "Play an environment yourself, at a terminal."),
    "check": ("environments", "Check that an environment meets the contract of environments."),
    "up": ("up", "Play a plan with its servers on the nodes of a Ray cluster."),
    "down": ("up", "Remove the servers and clients of `proctor up` from a Ray cluster."),
    "worker": ("servers.commands", "Start a worker: it serves tasks and runs their sessions."),
    "controller": ("servers.commands", "Start a controller: it places sessions on workers."),
    "agents": ("servers.commands", "Serve built-in agents through the OpenAI Chat Completions protocol."),
    "serve": ("servers.serve", "Let clients of other programs play tasks, by their own protocols."),
    "completion": ("manage.completion", "Print the script for completion in bash, zsh or fish."),
}
SERVERS = {"worker": "worker", "controller": "controller", "agents": "agent-server", "serve": "gateway"}
"""command -> the role of its process in logs and traces; other commands have the role `client`."""
CRASHED = 70
"""Exit code of a crash of Proctor. Python's own code would be 1, which means that trials are unscored."""


class Commands(click.Group):
    """Subcommands by name; only the module of the one called is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order that a new user needs them; the commands of environments come last."""
        from proctor import plugins

        return [*COMMANDS, *(name for name in plugins.names() if name not in COMMANDS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, or None."""
        if cmd_name in COMMANDS:
            command: click.Command = getattr(_module(cmd_name), cmd_name)
            return command
        from eval_client.cli.recorded import open_run
        from proctor import plugins

        ctx.obj = open_run
        return plugins.load(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])
        if of_environments := [name for name in self.list_commands(ctx) if name not in COMMANDS]:
            with formatter.section("Commands of environments"):
                formatter.write_dl([(name, f"See `proctor {name} --help`.") for name in of_environments])


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


def main() -> None:
    """Entry point. An error that the user can correct ends in one message and exit code 2."""
    if sys.platform == "win32":
        sys.exit(_refused("Proctor runs on Linux and macOS; on Windows, use it in WSL (Windows Subsystem for Linux)"))
    if (problem := shadowed()) is not None:
        sys.exit(_refused(problem))
    say_start()
    gc.disable()  # scanning what is being imported again and again would cost a tenth of the start
    atexit.register(gc.freeze)  # as would a search for dead cycles among all objects of a process that ends
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
