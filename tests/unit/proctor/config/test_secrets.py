"""Settings come from the environment, else from `.env`; secrets also from files."""

from pathlib import Path

import pytest

from proctor.config.secrets import secret_text, setting
from proctor.config.tokens import AccessTokens
from proctor.observability.redaction import redacted


def test_the_real_environment_wins_over_the_working_directorys_file_in_which_nothing_is_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"PROCTOR_TEST_{letter}" for letter in "ABCDE"]
    monkeypatch.setenv(names[0], "real\n")
    monkeypatch.setenv(names[1], "")
    assert [setting(name) for name in names] == ["real", "", None, None, None]
    lines = (
        f"export {names[0]} = file # first",
        f"{names[1]}=file",
        f"{names[2]}='file'",
        "hello",
        f"{names[3]}=${{HOME}}",
    )
    (tmp_path / ".env").write_text("\r\n".join(lines))
    monkeypatch.chdir(tmp_path)
    assert [setting(name) for name in names] == ["real", "", "file", "${HOME}", None]


def test_a_secret_may_stand_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token").write_text("canary-in-a-file\n")
    monkeypatch.setenv("PROCTOR_TEST_A_FILE", "token")
    assert secret_text("PROCTOR_TEST_A") == "canary-in-a-file"
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
        ({"PROCTOR_TEST_A": "canary\ncanary"}, "PROCTOR_TEST_A: the key holds characters that no key has"),
    ],
)
def test_a_secret_that_cannot_be_had_is_named_without_being_shown(
    variables: dict[str, str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "binary").write_bytes(b"canary\xff")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=says) as caught:
        AccessTokens.of("PROCTOR_TEST_A")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("text", ["short-1", "EMPTY", "not-needed", "sk-xxxxxxxx", "changeme", "<your-api-key>"])
def test_what_is_no_secret_is_said_to_be_none_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    name = f"KEY_{text.encode().hex()}"
    for value, told in ((text, 1), (text, 1), ("a-real-key-7", 1)):
        monkeypatch.setenv(name, value)
        assert AccessTokens.of(name)
        assert [record.getMessage().partition(" is no secret")[0] for record in caplog.records] == [name] * told
    assert redacted(f"it is {text}") == f"it is {text}"
