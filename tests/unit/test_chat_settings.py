"""Settings come from the environment, else from `.env`."""

from pathlib import Path

import pytest

from environments.chat.settings import parse_dotenv, setting


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=1", "1"),
        ("  export A = 1  ", "1"),
        ("A=", ""),
        ("A= # nothing", ""),
        ("A=x # comment", "x"),
        ("A=x#y", "x#y"),
        ("A=http://h:1/v1?a=b#c", "http://h:1/v1?a=b#c"),
        ('A="x # y" # comment', "x # y"),
        ("A='it is \"so\"'", 'it is "so"'),
        (r'A="a\"b\\c\nd"', 'a"b\\c\nd'),
        ("A=$HOME", "$HOME"),
    ],
)
def test_a_line_is_read(line: str, value: str) -> None:
    assert parse_dotenv(f"# first\nB=2\n{line}\nC=3\n") == {"B": "2", "A": value, "C": "3"}


def test_what_is_no_assignment_is_skipped() -> None:
    assert parse_dotenv("hello\n=1\n1A=2\n#A=3\nA-B=4\n\n") == {}


def test_windows_line_ends_do_not_get_into_the_value() -> None:
    assert {name: value.strip() for name, value in parse_dotenv("A=1\r\nB=2\r\n").items()} == {"A": "1", "B": "2"}


def test_the_real_environment_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("PROCTOR_TEST_A=file\nPROCTOR_TEST_B=file\nPROCTOR_TEST_C=file\r\n")
    monkeypatch.setenv("PROCTOR_TEST_A", "real\n")
    monkeypatch.setenv("PROCTOR_TEST_B", "")
    values = [setting(f"PROCTOR_TEST_{name}", tmp_path) for name in "ABCD"]
    assert values == ["real", "", "file", None]


def test_the_working_directory_is_where_it_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("PROCTOR_TEST_A=file\n")
    assert setting("PROCTOR_TEST_A") is None
    monkeypatch.chdir(tmp_path)
    assert setting("PROCTOR_TEST_A") == "file"
