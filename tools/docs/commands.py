"""The reference of the command line, from the commands themselves."""

import inspect
from collections.abc import Iterator

import click

from eval_client.cli.main import proctor
from tools.docs.markdown import WIDTH, cell, markdown


def page() -> str:
    """docs/reference/cli.md."""
    parts = ["# Command line", *_paragraphs(inspect.cleandoc(proctor.help or ""))]
    for command, context in _commands(proctor, click.Context(proctor, info_name="proctor", max_content_width=WIDTH)):
        parts += _section(command, context)
    return markdown(parts)


def _commands(group: click.Group, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, max_content_width=WIDTH)
        yield command, inner
        if isinstance(command, click.Group):
            yield from _commands(command, inner)


def _section(command: click.Command, context: click.Context) -> Iterator[str]:
    depth = context.command_path.count(" ")
    yield f"{'#' * (depth + 1)} {context.command_path}"
    words = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    if not isinstance(command, click.Group):
        yield f"```\n{words}\n```"
    yield from _paragraphs(inspect.cleandoc(command.help or ""))
    options = [
        record
        for parameter in command.params
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(context))
    ]
    if options:
        rows = [f"| `{cell(names)}` | {cell(meaning)} |" for names, meaning in options]
        yield "\n".join(["| option | meaning |", "|---|---|", *rows])


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs as they are, examples as code."""
    for paragraph in text.replace("\f", "").split("\n\n"):
        plain = paragraph.removeprefix("\b\n")
        if plain != paragraph or plain.startswith("    "):
            yield f"```\n{inspect.cleandoc(plain)}\n```"
        else:
            yield plain
