"""Shows trials on a terminal: some in a table, or one's Markdown, its headings as rules and labels."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from eval_client.report.task_environment import AnswerReader
from eval_client.report.trial_markdown import (
    Showing,
    answer_markdown,
    head_markdown,
    sent_markdown,
    trial_markdown,
    turn_markdown,
    turn_title,
)
from eval_client.report.trial_table import TrialColumn
from eval_client.store.trials.rows import TrialRow
from eval_client.store.trials.trajectory import ConversationTurn, Trajectory, conversation, first_difference
from proctor.tables.table import Entry, Figure, ResultTable, TableColumn, TableRow, entry_lines
from proctor.types import WORDS

ReadTrial = tuple[Trajectory, AnswerReader]
"""A trial, and how its answers are read."""
LEAST_WORDS = 14
"""Characters that a table shows at least of what was asked, expected and answered."""
STYLES = {"system": "magenta", "user": "cyan", "tool": "yellow", "assistant": "green", "answer": "bold green"}
"""How the label of a message is shown, by its first word."""
LABEL, TEXT = (0, 0, 0, 2), (0, 0, 0, 4)


def _refer(turn: int, part: str, words: str) -> str:
    """Where the terminal shows what it leaves out of a turn."""
    return f"({words}; {f'--turn {turn} shows them' if part == 'earlier' else '--json has it'})"


TERMINAL = Showing(_refer, cut=True)


def trial_text(trial: Trajectory, read: AnswerReader, turn: int | None = None) -> RenderableType:
    """A trial; of one turn alone with all that was sent in it."""
    return markdown_text(trial_markdown(trial, read, TERMINAL, turn))


def side_by_side(left: ReadTrial, right: ReadTrial) -> Iterator[RenderableType]:
    """Two trials from the first turn that differs; what both were shown stands once."""
    yield _columns(*(markdown_text(head_markdown(trial, TERMINAL)) for trial, _ in (left, right)))
    ours, theirs = (list(conversation(trial.turns)) for trial, _ in (left, right))
    first = first_difference(ours, theirs)
    if first is None:
        yield Rule("both were shown the same in every turn; the last one", style="dim")
        first = max(len(ours) - 1, 0)
    elif first:
        yield Rule(f"both were shown the same in turns 1 to {first}", style="dim")
        first -= 1  # the answers that led to the difference
    reads = left[1], right[1]
    for number, (a, b) in list(enumerate(zip_longest(ours, theirs), 1))[first:]:
        yield Rule(f"turn {number}", style="dim")
        if a is not None and b is not None and a.digest == b.digest:
            yield markdown_text(sent_markdown(a, TERMINAL))
            yield _columns(
                *(
                    markdown_text(answer_markdown(each, read, TERMINAL))
                    for each, read in zip((a, b), reads, strict=True)
                )
            )
        else:
            yield _columns(*(_turn_or_end(each, read) for each, read in zip((a, b), reads, strict=True)))


def _turn_or_end(turn: ConversationTurn | None, read: AnswerReader) -> RenderableType:
    return markdown_text(
        "the trial is over"
        if turn is None
        else f"## {turn_title(turn, TERMINAL)}\n\n" + turn_markdown(turn, read, TERMINAL)
    )


def markdown_text(markdown: str) -> Group:
    return Group(*_blocks(MarkdownIt("commonmark", {"html": False}).parse(markdown)))


def _columns(left: RenderableType, right: RenderableType) -> Table:
    table = Table.grid(expand=True, padding=(0, 2))
    table.add_column(ratio=1, overflow="fold")
    table.add_column(ratio=1, overflow="fold")
    table.add_row(left, right)
    return table


def _blocks(tokens: list[Token]) -> Iterator[RenderableType]:
    before, inside = "", False
    for token in tokens:
        if token.type == "fence":
            yield Padding(Text(token.content.removesuffix("\n")), TEXT)
        elif token.type == "hr":
            inside = False
            yield Rule(style="dim")
        elif token.type == "inline":
            inside = before in ("h4", "h5") or (inside and not before)
            yield _line(token, before, inside=inside)
        before = token.tag if token.type == "heading_open" else ""


def _line(inline: Token, heading: str, *, inside: bool) -> RenderableType:
    """A heading of this level, `h1` to `h5`, or a line of a paragraph or a list; `inside` a message."""
    words = _words(inline)
    if not heading and words.spans and (words.spans[0].start, words.spans[0].end) == (0, len(words)):
        words.stylize("red")  # trouble is all in bold
    if heading == "h1":
        words.stylize("bold")
        return words
    if heading == "h2":
        return Rule(words, align="left", style="dim")
    if heading:
        words.stylize(STYLES.get(inline.content.partition(" ")[0], "dim"))
        return Padding(words, LABEL)
    return Padding(words if inline.level == 1 else Text("- ") + words, TEXT if inside else LABEL)


def _words(inline: Token) -> Text:
    text, bold = Text(), False
    for each in inline.children or ():
        if each.type in ("strong_open", "strong_close"):
            bold = each.nesting > 0
        else:
            text.append(each.content, "bold" if bold else None)
    return text


def trials_table(title: str, rows: Sequence[TrialRow], columns: Sequence[TrialColumn], width: int) -> ResultTable:
    """The table of trials for a terminal: what was asked and answered is cut so that a row is one line."""
    cells = [[_cell(row, column) for column in columns] for row in rows]
    long = [place for place, column in enumerate(columns) if column.name in WORDS]
    taken = sum(
        2 + max(len(column.title), *(cell_len(entry_lines(line[place])[0]) for line in cells), 0)
        for place, column in enumerate(columns)
        if place not in long
    )
    most = max(LEAST_WORDS, (width - taken) // max(1, len(long)) - 2)
    for line in cells:
        for place in long:
            text = line[place]
            if isinstance(text, str) and cell_len(text) > most:
                line[place] = f"{set_cell_size(text, most - 1).rstrip()}…"
    heads = tuple(TableColumn(column.title, column.name, left=not column.form) for column in columns)
    return ResultTable(title, heads, tuple(TableRow(tuple(line)) for line in cells))


def _cell(row: TrialRow, column: TrialColumn) -> Entry:
    value = getattr(row, column.name)
    return Figure(value, column.form) if column.form else value
