"""Loading of puzzles: files and folders, languages, cells that are not text, and messages for broken data."""

import builtins
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest
from openpyxl import Workbook

from environments.lateral_thinking.dataset import load
from environments.lateral_thinking.environment import SHIPPED_SAMPLES
from environments.lateral_thinking.reply import Screening, screen

ROW = ("A man fell. Why?", "He was blind.", "1. A man fell.", "1. He was blind.\n2. It was dark.")


def book(path: Path, *rows: Sequence[str | int | float | None]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    workbook = Workbook()
    workbook.worksheets[0].title = " Sheet1"
    workbook.create_sheet("notes").append(["not", "a", "puzzle", "at all"])
    for row in (["any", "header"], *rows):
        workbook.worksheets[0].append(list(row))
    workbook.save(path)
    return path


def test_the_first_sheet_below_its_header_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    (puzzle,) = load(book(tmp_path / "mine.xlsx", ROW))
    assert (puzzle.id, puzzle.language, puzzle.story) == ("mine-00000", "en", ROW[0])
    assert (puzzle.truth, puzzle.story_keys, puzzle.keys) == (
        ROW[1],
        ("A man fell.",),
        ("He was blind.", "It was dark."),
    )


def test_a_folder_gives_all_its_files_each_with_its_path_in_the_ids(tmp_path: Path) -> None:
    book(tmp_path / "zh" / "dev.xlsx", ("他摔倒了。", "他看不见。", "他摔倒了", "他看不见"))
    book(tmp_path / "en" / "dev.xlsx", ROW, ROW)
    (tmp_path / "en" / "~$dev.xlsx").write_bytes(b"Excel's lock")
    (tmp_path / "own.yaml").write_text("puzzles: [{story: S, truth: T, story_keys: [a], keys: [b, '- c']}]")
    loaded = load(tmp_path)
    assert [puzzle.id for puzzle in loaded] == ["en-dev-00000", "en-dev-00001", "own-00000", "zh-dev-00000"]
    assert [puzzle.language for puzzle in loaded] == ["en", "en", "en", "zh"]
    assert loaded[2].keys == ("b", "c")


def test_numbers_become_text_blank_rows_and_fifth_columns_are_passed_over(tmp_path: Path) -> None:
    data = book(tmp_path / "mine.xlsx", (1984, 2.5, 3.0, "k", "fifth"), (None, " ", None, None), (*ROW, 7))
    first, second = load(data)
    assert (first.story, first.truth, first.story_keys, first.keys) == ("1984", "2.5", ("3",), ("k",))
    assert second.id == "mine-00001"


@pytest.mark.parametrize("column", [1, 2, 3, 4])
@pytest.mark.parametrize("cell", [None, "  ", "\n"])
def test_a_missing_cell_is_named_by_file_row_and_column(tmp_path: Path, column: int, cell: str | None) -> None:
    row = [*ROW[: column - 1], cell, *ROW[column:]]
    with pytest.raises(ValueError, match=rf"mine\.xlsx: row 3: column {column} \(.*\) is empty; fill it"):
        load(book(tmp_path / "mine.xlsx", ROW, row))


def test_a_cell_with_marks_only_holds_no_key(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"row 2: column 4 \(answer keys\) is empty"):
        load(book(tmp_path / "mine.xlsx", (*ROW[:3], "1.\n- \n")))


def test_what_is_no_puzzle_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no \*\.xlsx or \*\.yaml file in it"):
        load(tmp_path)
    with pytest.raises(ValueError, match="holds no puzzle below the header"):
        load(book(tmp_path / "header.xlsx"))
    with pytest.raises(ValueError, match=r"none\.xlsx: can't be read as xlsx"):
        load(tmp_path / "none.xlsx")
    (tmp_path / "text.xlsx").write_text("story,answer")
    with pytest.raises(ValueError, match=r"text\.xlsx: can't be read as xlsx"):
        load(tmp_path / "text.xlsx")
    (tmp_path / "short.yaml").write_text("puzzles:\n  - {story: S, truth: T, keys: [k]}\n")
    with pytest.raises(ValueError, match=r"short\.yaml:2: puzzles\.0\.story_keys: is missing"):
        load(tmp_path / "short.yaml")


def test_without_the_extra_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    importing = builtins.__import__

    def without_openpyxl(name: str, *arguments: object) -> ModuleType:
        if name.startswith("openpyxl"):
            raise ModuleNotFoundError("No module named 'openpyxl'")
        return importing(name, *arguments)  # type: ignore[arg-type]

    data = book(tmp_path / "mine.xlsx", ROW)
    monkeypatch.setattr(builtins, "__import__", without_openpyxl)
    with pytest.raises(ValueError, match=r"pip install 'proctor\[ltp\]'"):
        load(data)


def test_the_shipped_puzzles_are_six_in_both_languages_and_none_of_their_keys_is_screened() -> None:
    loaded = load(SHIPPED_SAMPLES)
    assert [puzzle.language for puzzle in loaded] == ["zh"] * 6 + ["en"] * 6
    assert {len(puzzle.keys) for puzzle in loaded} == {4}
    assert {screen(key, puzzle, "strict") for puzzle in loaded for key in puzzle.keys} == {Screening.ASK}
