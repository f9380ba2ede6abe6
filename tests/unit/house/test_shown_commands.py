"""Every command of ours that a page shows is one that `proctor` takes."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from eval_client.cli.main import proctor
from tools.docs.links import ROOT, all_pages


def shown(page: Path) -> Iterator[str]:
    """The commands of a page's code: in blocks one a line or several with `;`, in text between backticks."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```(?:sh|console|bash)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        lines = re.sub(r"\\\n\s*", "", block).splitlines()
        yield from (part for line in lines for part in re.split(r"; |\s# | && | \| | > ", line.removeprefix("$ ")))
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    yield from (re.sub(r"\s+", " ", code) for code in re.findall(r"`(proctor [^`]*)`", prose))


def refusal(command: str) -> str | None:
    """Why `proctor` does not take a command, or None; a page may leave out values of options, and what `...` is."""
    words = shlex.split(command.partition("...")[0].rstrip())[1:]
    context = click.Context(proctor)
    found: click.Command | None = proctor
    try:
        while words and isinstance(found, click.Group):
            if words[0] in ("--help", "--version"):
                return None
            found, words = found.get_command(context, words[0]), words[1:]
        if found is None:
            return "no such command"
        found.make_parser(context).parse_args(words)
    except click.BadOptionUsage:  # without its value
        return None
    except click.UsageError as error:
        return error.format_message()
    return None


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_is_one_that_proctor_takes(page: Path) -> None:
    commands = [command for part in shown(page) if re.match(r"proctor [a-z-][^│]*$", command := part.strip())]
    refused = {command: why for command in commands if (why := refusal(command)) is not None}
    assert refused == {}


@pytest.mark.parametrize("command", ["proctor rum plan.yaml", "proctor run --fast", "proctor plan draw"])
def test_a_command_of_no_kind_is_refused(command: str) -> None:
    assert refusal(command) is not None
