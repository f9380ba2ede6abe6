"""Files of tokens: what a line may say, what is said of one that can't be read, and how a file changes in use."""

import logging
import re
import time
from pathlib import Path

import pytest

from proctor.config.tokens import AccessTokens, Token, tokens_in
from proctor.http.auth import Access
from proctor.observability.redaction import redacted

GOOD = {
    "one-token": [Token("one-token")],
    "\n  one-token  \n\n": [Token("one-token")],
    "ann token-1\r\nbob weight=0.5 token-2\r\n": [Token("token-1", "ann"), Token("token-2", "bob", 0.5)],
    "ann cap=4 weight=3 token-1": [Token("token-1", "ann", 3.0, 4)],
    "ann cap=4 token-1\nann cap=4 token-2": [Token("token-1", "ann", 1.0, 4), Token("token-2", "ann", 1.0, 4)],
    "new-token\nold-token\nann token-3": [Token("new-token"), Token("old-token"), Token("token-3", "ann")],
    "#token=": [Token("#token=")],
}
NAME = "line 1: the name before the token must be 1 to 64 letters"
BETWEEN = "line 1: between name and token may stand weight=W and cap=N, each once, and nothing else"
BAD = {
    "": "is empty; write a token into it",
    " \n\n": "is empty; write a token into it",
    "ann weight=2": "line 1: the token is missing; write it at the end of the line",
    "weight=2 canary-1": NAME,
    ".ann canary-1": NAME,
    "ann bob canary-1": BETWEEN,
    "ann weight=2 weight=2 canary-1": BETWEEN,
    "ann speed=2 canary-1": BETWEEN,
    "good-token\n\nann weight=0 canary-1": "line 3: weight must be a number over 0, such as 2 or 0.5",
    "ann weight=-1 canary-1": "line 1: weight must be a number over 0",
    "ann weight=nan canary-1": "line 1: weight must be a number over 0",
    "ann weight=1e999 canary-1": "line 1: weight must be a number over 0",
    "ann weight= canary-1": "line 1: weight must be a number over 0",
    "ann cap=0 canary-1": "line 1: cap must be a whole number of 1 or more",
    "ann cap=1.5 canary-1": "line 1: cap must be a whole number of 1 or more",
    "ann c\u00e4nary-1": "line 1: the token holds characters that no token has; copy it again",
    "canary-1\nann canary-1": "line 2: its token is that of line 1; give each line its own",
    "ann canary-1\nann cap=2 canary-2": "line 2: the name has another weight or cap in line 1; write the same in both",
    "\x00": "line 1: the token holds characters that no token has",
}


@pytest.mark.parametrize("text", GOOD)
def test_a_file_has_a_token_in_each_line(text: str) -> None:
    assert list(tokens_in(text, "here")) == GOOD[text]


@pytest.mark.parametrize("text", BAD)
def test_a_file_that_is_none_is_said_to_be_so_by_file_and_line_and_never_with_a_token(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tokens").write_text(text)
    monkeypatch.setenv("PROCTOR_TEST_T_FILE", str(tmp_path / "tokens"))
    with pytest.raises(ValueError, match=re.escape(BAD[text])) as caught:
        AccessTokens.of("PROCTOR_TEST_T")
    assert str(caught.value).startswith(f"PROCTOR_TEST_T_FILE: {tmp_path / 'tokens'}")
    assert "nary" not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"x" * (1 << 17)], ids=["missing", "binary", "large"])
def test_a_file_that_can_not_be_read_is_an_error_at_the_start(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / "tokens").write_bytes(content)
    monkeypatch.setenv("PROCTOR_TEST_T_FILE", str(tmp_path / "tokens"))
    with pytest.raises(ValueError, match=r"PROCTOR_TEST_T_FILE: .*tokens (can't be read: .*|holds more than .*); give"):
        AccessTokens.of("PROCTOR_TEST_T")


def test_every_token_of_a_file_is_hidden(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("ann first-token-of-ann\nsecond-token-of-all")
    AccessTokens(source="HERE", file=tmp_path / "tokens")
    assert redacted("first-token-of-ann second-token-of-all") == "*** ***"


def test_the_first_is_sent_and_after_a_refusal_each_other_one_once(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("one\ntwo\nthree\n")
    tokens = AccessTokens(source="HERE", file=file)
    assert tokens.current == "one"
    assert tokens.other(["one"]) == "two"
    assert tokens.current == "two", "from now on"
    assert tokens.other(["two"]) == "three"
    assert tokens.other(["two", "three"]) == "one"
    assert tokens.other(["one", "two", "three"]) is None
    file.write_text("four\none\n")
    assert tokens.other(["one"]) == "four", "the file is read again at once"


def test_access_follows_its_file_and_never_becomes_open(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    file = tmp_path / "tokens"
    file.write_text("old-token\n")
    access = Access(AccessTokens(source="HERE", file=file))

    def opened() -> list[str]:
        time.sleep(1.01)  # a file is looked at once a second
        shown = {text: access.knows("GET", "/tasks", f"Bearer {text}".encode()) for text in ("old-token", "new", "")}
        return [text for text, opens in shown.items() if opens]

    assert opened() == ["old-token"]
    file.write_text("new\nold-token\n")
    assert opened() == ["old-token", "new"]
    file.write_text("new\n")
    assert opened() == ["new"]
    caplog.clear()
    for broken in (b"", b"\xff", None):
        if broken is None:
            file.unlink()
        else:
            file.write_bytes(broken)
        assert opened() == opened() == ["new"]
        assert access.closed
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3, "each is said once"
    assert all("until then the earlier tokens stay" in record.getMessage() for record in caplog.records)
