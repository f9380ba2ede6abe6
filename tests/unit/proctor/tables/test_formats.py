"""One table, five formats: the same figures, and names that can do no harm."""

import csv
import io
import json
import re

import pytest

from proctor.tables.command import FORMATS, TableFormat, rendered
from proctor.tables.table import Figure, Part, ResultTable, TableColumn, TableRow, counted

WHOLE = Figure(42.42, ".1f", standard_error=4.14, coverage=1.0)
PARTIAL = Figure(7.25, ".1f", standard_error=1.06, low=6.0, high=9.04, coverage=0.834, mark="†")
PARTS: tuple[Part, ...] = ("standard_error", "low", "high", "coverage", "mark")
COLUMNS = (TableColumn("Model", left=True), TableColumn("A", parts=PARTS), TableColumn("B", parts=PARTS))


def made(name: str = "gpt", *, notes: tuple[str, ...] = ()) -> ResultTable:
    return ResultTable("Scores", COLUMNS, (TableRow((name, WHOLE, PARTIAL), notes=notes),))


def test_one_of_a_thing_has_no_plural() -> None:
    assert [counted(number, "turn") for number in (0, 1, 2_000)] == ["0 turns", "1 turn", "2,000 turns"]


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_errors_marks_and_coverage_are_shown_to_readers(form: TableFormat) -> None:
    shown = rendered([made()], form).replace(r"$\pm$", "±").replace(r"$^{\dagger}$", "†").replace(r"\%", "%")
    shown = re.sub(r" +|\{\\scriptsize ", " ", shown)
    assert re.search(r"42\.4 +±4\.1(?! \()", shown)
    assert re.search(r"7\.2† +±1\.1 \(83%\) 6\.0\.\.9\.0", shown)


def test_programs_get_every_part_unrounded() -> None:
    (row,) = csv.DictReader(io.StringIO(rendered([made()], "csv")))
    (table,) = json.loads(rendered([made()], "json"))["tables"]
    assert row["B"] == "7.25"
    assert [row[f"B {part}"] for part in PARTS] == ["1.06", "6.0", "9.04", "0.834", "†"]
    assert table["rows"][0]["B"] == dict(zip(("value", *PARTS), (7.25, 1.06, 6.0, 9.04, 0.834, "†"), strict=True))
    assert table["rows"][0]["A"]["low"] is None


HOSTILE = '=cmd|a,b_c $x$ \\end{table} [y] *z* \x1b[31m "q"\n%&#~^<b>`'


def test_a_name_is_no_formula_and_no_second_cell_in_csv() -> None:
    (row,) = csv.DictReader(io.StringIO(rendered([made(HOSTILE)], "csv")))
    assert row["Model"] == "'" + HOSTILE


def test_a_name_is_one_cell_in_markdown() -> None:
    row = rendered([made(HOSTILE)], "markdown").splitlines()[-1]
    assert len(re.findall(r"(?<!\\)\|", row)) == len(COLUMNS) + 1
    assert r"b\_c" in row
    assert r"\<b\>" in row
    assert "\x1b" not in row


def test_a_name_is_no_command_in_latex() -> None:
    text = rendered([made(HOSTILE)], "latex")
    row = next(line for line in text.splitlines() if "42.4" in line)
    assert len(re.findall(r"(?<!\\)&", row)) == len(COLUMNS) - 1
    assert r"\textbackslash{}end\{table\}" in row
    assert r"b\_c \$x\$" in row
    assert text.count(r"\end{table}") == 1
    assert "{[}y{]}" in row


@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_no_width_loses_a_figure(width: int) -> None:
    columns = (TableColumn("Model", left=True), *(TableColumn(f"T{n}", group="Group of tasks") for n in range(12)))
    cells = tuple(Figure(100.0 + n, ".1f", standard_error=n / 10) for n in range(12))
    text = rendered([ResultTable("Wide", columns, (TableRow(("a-long-name-of-an-agent", *cells)),))], "text", width)
    assert all(f"{100 + n}.0" in text and f"T{n}" in text for n in range(12))
    assert max(map(len, text.splitlines())) <= max(width, 30)


def test_several_tables_name_themselves_in_csv() -> None:
    first, second = rendered([made(), made()], "csv").split("\n\n")
    assert first == second.rstrip("\n")
    assert first.startswith("table,Model,A,")
    assert "\nScores,gpt,42.42," in first


def test_a_difference_has_a_sign_and_its_error_none() -> None:
    assert Figure(-0.75, "+.3f", standard_error=0.294).lines() == ("-0.750", "±0.294")


def test_a_share_is_100_percent_only_where_it_is_complete() -> None:
    assert Figure(1.0, coverage=0.9999).lines() == ("1.000", "(99%)")


@pytest.mark.parametrize("form", FORMATS)
def test_notes_of_a_row_are_in_every_format(form: TableFormat) -> None:
    assert "own samples" in rendered([made(notes=("own samples",))], form)
