"""What the pages of the references have in common."""

import textwrap
from collections.abc import Iterable
from functools import partial

NOTICE = "<!-- Made by `python -m tools.docs`. Change the code that it describes, not this file. -->"
WIDTH = 120


def markdown(parts: Iterable[str]) -> str:
    """A page of headings, tables, code and paragraphs, of which the last are wrapped."""
    return "\n\n".join([NOTICE, *(_wrapped(part) for part in parts if part)]) + "\n"


def cell(text: str) -> str:
    """A text in a table: one line, without what Markdown or HTML would read."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _wrapped(part: str) -> str:
    if part.startswith(("#", "|", "```")):
        return part
    indent = "  " if part.startswith("- ") else ""
    how = partial(textwrap.fill, width=WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(map(how, part.splitlines() if indent else [part]))
