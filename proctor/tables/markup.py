"""Pure: tables as Markdown (GitHub's) and as LaTeX that needs no package."""

import re
from itertools import groupby

from proctor.tables.table import Entry, ResultTable, entry_lines
from proctor.tables.text import plain

_MARKDOWN = re.compile(r"[\\`*_{}\[\]<>#|~$&]")
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    "±": r"$\pm$",
    "†": r"$^{\dagger}$",
    "[": "{[}",  # after `\\` a bracket would begin an option, a star a variant
    "]": "{]}",
    "*": "{*}",
}


def markdown(table: ResultTable) -> str:
    """The table as Markdown, with its title above and its notes below."""
    bars = ["---" if column.left else "---:" for column in table.columns]
    rows = [[_markdown(" ".join(entry_lines(entry))) for entry in row.cells] for row in table.rows]
    heads = [_markdown(heading) for heading in table.headings()]
    lines = [f"**{_markdown(table.title)}**", ""] if table.title else []
    lines += [f"| {' | '.join(cells)} |" for cells in (heads, bars, *rows)]
    notes = [f"- {_markdown(note)}" for note in table.all_notes()]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def latex(table: ResultTable) -> str:
    """The table as a LaTeX `table`, with its title as caption and its notes below."""
    form = "".join("l" if column.left else "r" for column in table.columns)
    lines = [r"\begin{table}", r"\centering"]
    lines += [rf"\caption{{{_latex(table.title)}}}"] if table.title else []
    lines += [rf"\begin{{tabular}}{{{form}}}", r"\hline"]
    lines += [_latex_row(_latex_groups(table))] if any(column.group for column in table.columns) else []
    lines += [_latex_row([_latex(column.title) for column in table.columns]), r"\hline"]
    for row in table.rows:
        lines += [r"\hline"] if row.rule else []
        lines.append(_latex_row([_latex_cell(entry) for entry in row.cells]))
    lines += [r"\hline", r"\end{tabular}"]
    lines += [rf"\par\footnotesize {_latex(note)}" for note in table.all_notes()]
    return "\n".join([*lines, r"\end{table}"])


def _markdown(words: str) -> str:
    return _MARKDOWN.sub(lambda found: "\\" + found[0], plain(words))


def _latex(words: str) -> str:
    words = "".join(_LATEX.get(character, character) for character in plain(words))
    return words.replace("--", "-{}-")  # two would be a dash


def _latex_cell(entry: Entry) -> str:
    value, *others = map(_latex, entry_lines(entry))
    return f"{value} {{\\scriptsize {' '.join(others)}}}" if others else value


def _latex_groups(table: ResultTable) -> list[str]:
    cells = []
    for group, columns in groupby(table.columns, lambda column: column.group):
        count = len(list(columns))
        cells += [rf"\multicolumn{{{count}}}{{c}}{{{_latex(group)}}}"] if group else [""] * count
    return cells


def _latex_row(cells: list[str]) -> str:
    return f"{' & '.join(cells)} \\\\"
