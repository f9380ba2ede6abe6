"""Tables as LaTeX: what they hold can be read back, and every table compiles."""

import re
import subprocess
from pathlib import Path

import pytest

from environments.simulbench.table import verdicts_table
from eval_client.report.agentbench import agent_rows, scores_table, validity_table
from eval_client.report.pair_report import RunReport
from eval_client.report.run_tables import pairs_table, report_tables
from proctor.tables.command import rendered
from proctor.tables.latex import ACCENTS, CHARACTERS
from proctor.tables.table import Figure, ResultTable, TableColumn, TableRow
from tests.database_servers import program
from tests.unit.eval_client.report.pairs import pair
from tests.unit.eval_client.report.test_agentbench import played

ASCII = "".join(map(chr, range(0x20, 0x7F)))
SPECIAL = "".join(CHARACTERS)
LETTERS = "áèîñāăċüåőçŻžÉß ł"
OTHERS = "漢字 مرحبا 😀 ½ ệ đ € \u202e \ud800 \x1b[31m \x00"
TRAPS = (r"\end{table}\input{/etc/passwd}", "$x^2$ & 100 % # _ ~", "[1em]", "*", "\\\\", "--", "''", "``")
TEXTS = (ASCII, SPECIAL, LETTERS, OTHERS, *TRAPS)
COMMANDS = re.compile(r"\\[a-zA-Z]+|\\.")
ALLOWED = {
    *(command for text in CHARACTERS.values() for command in COMMANDS.findall(text)),
    *(f"\\{accent}" for accent in ACCENTS.values()),
    *(r"\begin", r"\end", r"\centering", r"\caption", r"\hline", r"\multicolumn", r"\par", r"\footnotesize"),
    *(r"\scriptsize", r"\ttfamily", r"\\", r"\clearpage"),
}
DOCUMENT = "\\documentclass{{article}}\n\\begin{{document}}\n{}\n\\end{{document}}\n"


def hostile() -> list[ResultTable]:
    """Tables whose title, heads, groups, cells and notes are all of TEXTS."""
    tables = []
    for text in TEXTS:
        columns = (TableColumn(text, left=True), TableColumn(text, group=text), TableColumn(text, group=text))
        figure = Figure(1.25, standard_error=0.5, low=0.0, high=2.0, coverage=0.5, mark="†")
        rows = (TableRow((text, text, figure), notes=(text,)), TableRow((text, Figure(None), None), rule=True))
        tables.append(ResultTable(text, columns, rows, (text,)))
    return tables


def ours() -> list[ResultTable]:
    """The tables of commands: with groups of columns, rules, notes, dashes and long texts."""
    pairs = tuple(
        pair(agent=agent, task=task, notes=(OTHERS,), faults={"GET /a_b%20c#d: <gone>": 2}, cut_answers=3, turns=9)
        for task in ("t_1", "t&2")
        for agent in ("gpt_4", "naïve")
    )
    made = RunReport(run="r_1", state="s", version="1", pairs=pairs, left_out=("--limit 5",))
    rows = agent_rows([played(place, why="own samples & prompts") for place in range(8)])
    return [
        *(pairs_table([made]), scores_table(rows), validity_table(rows), verdicts_table([], [])),
        *report_tables([made], full=True),
    ]


def faults(text: str) -> list[str]:
    """What would keep a table from compiling: the strictest reading of the little LaTeX that tables use."""
    found = [] if text.isascii() else ["not ASCII"]
    found += [f"command {each}" for each in set(COMMANDS.findall(text)) - ALLOWED]
    bare = re.sub(r"\\\\", " ROW ", text)
    bare = re.sub(r"\\[{}$&#_%~^]", "", bare)
    found += [f"bare {each}" for each in "#_%~" if each in bare]
    found += ["odd dollars"] if bare.count("$") % 2 else []
    found += ["bare ^"] if "^" in re.sub(r"\$[^$]*\$", "", bare) else []
    depth = [0]
    for character in re.sub(r"[^{}]", "", bare):
        depth.append(depth[-1] + (1 if character == "{" else -1))
    found += ["braces"] if depth[-1] or min(depth) < 0 else []
    open_ones = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if kind == "begin":
            open_ones.append(name)
        elif not open_ones or open_ones.pop() != name:
            found.append(f"end of {name}")
    found += [f"no end of {name}" for name in open_ones]
    for form, body in re.findall(r"\\begin\{tabular\}\{(\w+)\}\n(.*?)\\end\{tabular\}", text, re.DOTALL):
        for line in body.splitlines():
            if line != r"\hline" and not line.endswith(r" \\"):
                found.append(f"a row without its end: {line}")
            spans = sum(int(count) - 1 for count in re.findall(r"\\multicolumn\{(\d+)\}", line))
            columns = len(re.findall(r"(?<!\\)&", line)) + 1 + spans
            found += [f"{columns} of {len(form)} columns: {line}"] if line != r"\hline" and columns != len(form) else []
    return found


@pytest.mark.parametrize("table", [*hostile(), *ours()], ids=lambda table: ascii(table.title[:20]))
def test_what_tables_hold_is_no_command(table: ResultTable) -> None:
    assert faults(rendered([table], "latex")) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (r"\hline" + "\n", r"\hlin" + "\n"),
        (" & ", " "),
        (r" \\", ""),
        ("}", ""),
        (r"\end{tabular}", ""),
        ("gpt", "gpt_"),
        ("gpt", "gpt%"),
        ("gpt", "gpt$"),
        ("gpt", "gé"),
        ("gpt", "g^2"),
    ],
)
def test_the_check_finds_each_fault(before: str, after: str) -> None:
    text = rendered([ResultTable("Scores", (TableColumn("a"), TableColumn("b")), (TableRow(("gpt", 1)),))], "latex")
    assert faults(text) == []
    assert before in text
    assert faults(text.replace(before, after, 1))


def test_letters_keep_their_accents_and_what_cannot_be_set_is_numbered() -> None:
    table = ResultTable("", (TableColumn("a", left=True),), (TableRow(("Zoë Łukasz 漢 a\u0301 – 2×3 ''",)),))
    cell = r"Zo\"{e} \L{}ukasz {\ttfamily U+6F22} \'{a} \textendash{} 2$\times$3 '{}'"
    assert f"\n{cell} \\\\\n" in rendered([table], "latex")


@pytest.mark.latex
def test_every_table_compiles(tmp_path: Path) -> None:
    assert _compiled(tmp_path, rendered([*hostile(), *ours() * 8], "latex")) == ""
    assert "Undefined control sequence" in _compiled(tmp_path, rendered(ours()[:1], "latex") + r"\nothing")


def _compiled(folder: Path, text: str) -> str:
    """What pdflatex says of a document that holds tables alone and loads no package; empty if it is made."""
    pdflatex = program("pdflatex")
    assert pdflatex is not None
    (folder / "tables.tex").write_text(DOCUMENT.format(text), encoding="ascii")
    command = [pdflatex, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "tables.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    errors = (line for line in done.stdout.splitlines() if line.startswith("!"))
    return "" if done.returncode == 0 else "\n".join(errors)
