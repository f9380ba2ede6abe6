"""Settings come from the environment, else from `.env`; secrets also from files."""

from pathlib import Path

import pytest

from proctor.config.secrets import parse_dotenv, secret, secret_text, setting
from proctor.observability.redaction import redacted


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
    assert parse_dotenv("hello\n=1\n#A=3\n\n") == {}


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


def test_a_secret_may_stand_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token").write_text("canary-in-a-file\n")
    monkeypatch.setenv("PROCTOR_TEST_A_FILE", "token")
    found = secret("PROCTOR_TEST_A")
    assert found is not None
    assert found.get_secret_value() == "canary-in-a-file"
    assert redacted("it is canary-in-a-file") == "it is ***"


def test_the_real_environment_wins_whether_it_names_a_file_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("PROCTOR_TEST_A_FILE=gone\nPROCTOR_TEST_B=of-dotenv\n")
    (tmp_path / "b").write_text("of-the-file")
    monkeypatch.setenv("PROCTOR_TEST_A", "of-the-environment")
    monkeypatch.setenv("PROCTOR_TEST_B_FILE", "b")
    assert [secret_text(name) for name in ("PROCTOR_TEST_A", "PROCTOR_TEST_B")] == ["of-the-environment", "of-the-file"]


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"PROCTOR_TEST_A": "x", "PROCTOR_TEST_A_FILE": "y"}, "PROCTOR_TEST_A_FILE is set too; unset one of them"),
        ({"PROCTOR_TEST_A_FILE": "gone"}, "PROCTOR_TEST_A_FILE: gone can't be read: No such file"),
        ({"PROCTOR_TEST_A_FILE": "."}, "PROCTOR_TEST_A_FILE: . can't be read: Is a directory"),
        ({"PROCTOR_TEST_A_FILE": "binary"}, "PROCTOR_TEST_A_FILE: binary can't be read: it is not text"),
        ({"PROCTOR_TEST_A_FILE": "two"}, "PROCTOR_TEST_A: the key holds characters that no key has"),
    ],
)
def test_a_secret_that_cannot_be_had_is_named_without_being_shown(
    variables: dict[str, str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "binary").write_bytes(b"canary\xff")
    (tmp_path / "two").write_text("canary\ncanary\n")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=says) as caught:
        secret("PROCTOR_TEST_A")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("text", ["short-1", "EMPTY", "not-needed", "sk-xxxxxxxx", "changeme", "<your-api-key>"])
def test_what_is_no_secret_is_said_to_be_none_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    name = f"KEY_{text.encode().hex()}"
    for value, told in ((text, 1), (text, 1), ("a-real-key-7", 1)):
        monkeypatch.setenv(name, value)
        assert secret(name) is not None
        assert [record.getMessage().partition(" is no secret")[0] for record in caplog.records] == [name] * told
    assert redacted(f"it is {text}") == f"it is {text}"
