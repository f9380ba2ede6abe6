"""`proctor completion`."""

import click
from click.shell_completion import get_completion_class

HOW = {
    "bash": 'eval "$(proctor completion bash)"      in ~/.bashrc',
    "zsh": 'eval "$(proctor completion zsh)"       in ~/.zshrc',
    "fish": "proctor completion fish | source      in ~/.config/fish/config.fish",
}


@click.command(epilog="\b\n" + "\n".join(HOW.values()))
@click.argument("shell", type=click.Choice(list(HOW)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands and options of `proctor` in a shell. To have it in each new shell:"""
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(ctx.find_root().command, {}, "proctor", "_PROCTOR_COMPLETE").source())
