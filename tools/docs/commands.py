"""The reference of the command line, from the commands themselves."""

import inspect
from collections import Counter
from collections.abc import Container, Iterator

import click

from eval_client.cli.main import proctor
from tools.docs.markdown import WIDTH, cell, markdown

SHARED = 3
"""An option that so many commands have, in the same words, stands once, before the commands."""


def page() -> str:
    """docs/reference/cli.md."""
    context = click.Context(proctor, info_name="proctor", max_content_width=WIDTH)
    commands = [*_commands(proctor, context)]
    counts = Counter(option for command, inner in commands for option in _options(command, inner))
    shared = [option for option, n in counts.items() if n >= SHARED]
    parts = ["# Command line", *_paragraphs(inspect.cleandoc(proctor.help or ""))]
    parts += ["`proctor COMMAND --help` says more.", "## Options of several commands", _lines(shared)]
    for command, inner in commands:
        parts += _section(command, inner, shared)
    return markdown(parts)


def _commands(group: click.Group, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, max_content_width=WIDTH)
        yield command, inner
        if isinstance(command, click.Group):
            yield from _commands(command, inner)


def _options(command: click.Command, context: click.Context) -> list[tuple[str, str]]:
    records = (each.get_help_record(context) for each in command.params if isinstance(each, click.Option))
    return [record for record in records if record]


def _section(command: click.Command, context: click.Context, shared: Container[tuple[str, str]]) -> Iterator[str]:
    depth = context.command_path.count(" ")
    yield f"{'#' * (depth + 1)} {context.command_path}"
    arguments = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    if arguments and not isinstance(command, click.Group):
        yield f"```\n{' '.join([context.command_path, '[OPTIONS]', *arguments])}\n```"
    meaning, *more = _paragraphs(inspect.cleandoc(command.help or ""))
    yield meaning
    yield from (paragraph for paragraph in more if paragraph.startswith("```"))
    options = _options(command, context)
    if own := [option for option in options if option not in shared]:
        yield _lines(own)
    if common := [f"`{names.split(' ')[0].rstrip(',')}`" for names, meaning in options if (names, meaning) in shared]:
        yield f"{'Also' if own else 'Options:'} {', '.join(common)}."


def _lines(options: list[tuple[str, str]]) -> str:
    return "\n".join(f"- `{names.replace(' RANGE', '')}`: {cell(meaning)}" for names, meaning in options)


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs as they are, examples as code."""
    for paragraph in text.replace("\f", "").split("\n\n"):
        plain = paragraph.removeprefix("\b\n")
        if plain != paragraph or plain.startswith("    "):
            yield f"```\n{inspect.cleandoc(plain)}\n```"
        else:
            yield plain
