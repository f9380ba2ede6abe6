"""The command `proctor`: a list of subcommands, each loaded only when it is called."""

import gc
import importlib
import sys
from importlib.metadata import version

import click

from proctor import plugins

COMMANDS = {
    "demo": ("demo", "Play every environment on its own samples with built-in agents: no key, no network."),
    "run": ("run", "Play a plan: agents by tasks, recorded turn by turn."),
    "resume": ("run", "Go on with a run where it stopped, paying for nothing twice."),
    "join": ("join", "Work on a run beside the clients that work on it already."),
    "status": ("inspect", "How far a run is."),
    "report": ("inspect", "Scores with their errors, coverage, validity, faults and costs of a run."),
    "ls": ("inspect", "The runs there are."),
    "export": ("inspect", "A run's trials or turns as JSONL, CSV or Parquet."),
    "doctor": ("doctor", "Say what would go wrong before it does, each with its fix."),
    "plan": ("plan", "Check a plan, print it resolved, or its JSON Schema."),
    "envs": ("environments", "The environments that are installed."),
    "check": ("environments", "Hold an environment against what every environment promises."),
    "up": ("up", "Play a plan with its servers on the nodes of a Ray cluster."),
    "down": ("up", "Remove what `proctor up` has left on a Ray cluster."),
    "worker": ("servers", "Serve tasks: hold the sessions of environments."),
    "controller": ("servers", "Place sessions on workers."),
    "agents": ("servers", "Serve built-in agents through the OpenAI Chat Completions protocol."),
}
SERVERS = {"worker": "worker", "controller": "controller", "agents": "agent-server"}
"""The role of a process in logs and traces, by its command; of all others it is `client`."""
CRASHED = 70
"""Exit code where the fault is Proctor's own. Python's would be 1, which says that trials are unscored."""


class Commands(click.Group):
    """Subcommands by name; their modules are imported one at a time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order a newcomer needs them; those that environments bring along last."""
        return [*COMMANDS, *(name for name in plugins.names() if name not in COMMANDS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, or None."""
        if cmd_name not in COMMANDS:
            return self._of_environment(ctx, cmd_name)
        module = importlib.import_module(f"eval_client.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def _of_environment(self, ctx: click.Context, name: str) -> click.Command | None:
        from eval_client.cli.recorded import open_run

        ctx.obj = open_run
        return plugins.load(name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])
        if brought := [name for name in self.list_commands(ctx) if name not in COMMANDS]:
            with formatter.section("Commands of environments"):
                formatter.write_dl([(name, f"See `proctor {name} --help`.") for name in brought])


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

    Exit codes: 0 all scored, 1 finished with unscored trials, 2 usage, 70 Proctor crashed, 130 interrupted.
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
    """Entry point. Whatever the user can mend ends in one message and exit code 2."""
    gc.set_threshold(10_000)  # what is imported stays: to look at it again and again costs a tenth of a start
    try:
        proctor(prog_name="proctor", max_content_width=120)
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(CRASHED)


if __name__ == "__main__":
    main()
