"""Pure: tables as LaTeX in ASCII, that needs no package and compiles with every engine."""

import unicodedata
from collections.abc import Sequence
from itertools import groupby

from proctor.observability.redaction import plain
from proctor.tables.table import Entry, ResultTable, entry_lines

CHARACTERS = {
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
    "[": "{[}",  # after `\\` a bracket would begin an option, a star a variant
    "]": "{]}",
    "*": "{*}",
    "±": r"$\pm$",
    "†": r"$^{\dagger}$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "→": r"$\rightarrow$",
    "←": r"$\leftarrow$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≠": r"$\neq$",
    "≈": r"$\approx$",
    "−": "$-$",
    "°": r"$^{\circ}$",
    "µ": r"$\mu$",
    "μ": r"$\mu$",
    "…": r"\ldots{}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "‘": r"\textquoteleft{}",
    "’": r"\textquoteright{}",
    "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "ı": r"\i{}",
}
"""Characters that LaTeX reads as commands, and some that are not ASCII."""
ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r",
    "\u030b": "H",
    "\u030c": "v",
    "\u0327": "c",
}
"""combining character -> the command that sets it over or under a letter"""


MOST_FLOATS = 30
"""Tables after which a page is ended: LaTeX refuses some fifty that it has not placed yet."""


def latex_tables(tables: Sequence[ResultTable]) -> str:
    """The tables as LaTeX, one after the other."""
    groups = [tables[first : first + MOST_FLOATS] for first in range(0, len(tables), MOST_FLOATS)]
    return "\n\n\\clearpage\n\n".join("\n\n".join(map(latex, group)) for group in groups)


def latex(table: ResultTable) -> str:
    """The table as a LaTeX `table`, with its title as caption and its notes below."""
    form = "".join("l" if column.left else "r" for column in table.columns)
    lines = [r"\begin{table}", r"\centering"]
    lines += [rf"\caption{{{_words(table.title)}}}"] if table.title else []
    lines += [rf"\begin{{tabular}}{{{form}}}", r"\hline"]
    lines += [_row(_groups(table))] if any(column.group for column in table.columns) else []
    lines += [_row([_words(column.title) for column in table.columns]), r"\hline"]
    for row in table.rows:
        lines += [r"\hline"] if row.rule else []
        lines.append(_row([_cell(entry) for entry in row.cells]))
    lines += [r"\hline", r"\end{tabular}"]
    lines += [rf"\par\footnotesize {_words(note)}" for note in table.all_notes()]
    return "\n".join([*lines, r"\end{table}"])


def _words(words: str) -> str:
    text = "".join(map(_character, unicodedata.normalize("NFC", plain(words))))
    return text.replace("--", "-{}-").replace("''", "'{}'")  # two would be a dash, or a closing quotation mark


def _character(character: str) -> str:
    """A character as LaTeX; one that no package-free LaTeX can set by its number."""
    if character in CHARACTERS:
        return CHARACTERS[character]
    if character.isascii():
        return character
    parts = unicodedata.normalize("NFD", character)
    if len(parts) == 2 and parts[0].isascii() and parts[0].isalpha() and parts[1] in ACCENTS:
        return rf"\{ACCENTS[parts[1]]}{{{parts[0]}}}"
    return rf"{{\ttfamily U+{ord(character):04X}}}"


def _cell(entry: Entry) -> str:
    value, *others = map(_words, entry_lines(entry))
    return f"{value} {{\\scriptsize {' '.join(others)}}}" if others else value


def _groups(table: ResultTable) -> list[str]:
    cells = []
    for group, columns in groupby(table.columns, lambda column: column.group):
        count = len(list(columns))
        cells += [rf"\multicolumn{{{count}}}{{c}}{{{_words(group)}}}"] if group else [""] * count
    return cells


def _row(cells: list[str]) -> str:
    return f"{' & '.join(cells)} \\\\"
