"""Pure: tables as Markdown (GitHub's)."""

import re

from proctor.tables.table import ResultTable, entry_lines
from proctor.tables.text import plain

_MARKDOWN = re.compile(r"[\\`*_{}\[\]<>#|~$&]")


def markdown(table: ResultTable) -> str:
    """The table as Markdown, with its title above and its notes below."""
    bars = ["---" if column.left else "---:" for column in table.columns]
    rows = [[_markdown(" ".join(entry_lines(entry))) for entry in row.cells] for row in table.rows]
    heads = [_markdown(heading) for heading in table.headings()]
    lines = [f"**{_markdown(table.title)}**", ""] if table.title else []
    lines += [f"| {' | '.join(cells)} |" for cells in (heads, bars, *rows)]
    notes = [f"- {_markdown(note)}" for note in table.all_notes()]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def _markdown(words: str) -> str:
    return _MARKDOWN.sub(lambda found: "\\" + found[0], plain(words))
