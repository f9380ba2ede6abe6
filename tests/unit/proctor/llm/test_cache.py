"""Replies of an environment's models are stored once, for all processes."""

from pathlib import Path

import pytest

from proctor.environment import EnvironmentFault, default_folder
from proctor.llm.cached_model import Replies, key_of
from proctor.session.kept_replies import ModelReply


def test_what_was_kept_first_holds(tmp_path: Path) -> None:
    one, other = (Replies(tmp_path) for _ in range(2))
    one.open()
    first, second = (ModelReply(text=text, model="m", prompt_tokens=1, completion_tokens=2) for text in "ab")
    key = key_of("question")
    assert one.get(key) is None
    assert [one.keep(key, first, first), other.keep(key, second, second), other.get(key)] == [first] * 3
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [""]


def test_a_folder_that_cant_be_written_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentFault, match="set `cache` to another folder"):
        Replies(tmp_path / "file" / "cache").open()


def test_a_reply_that_was_damaged_is_named(tmp_path: Path) -> None:
    replies, key = Replies(tmp_path), key_of("question")
    reply = ModelReply(text="a", model="m", prompt_tokens=1, completion_tokens=2)
    replies.keep(key, reply, reply)
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    file.write_bytes(b"{}")
    with pytest.raises(EnvironmentFault, match=f"{key}: holds no reply; delete this file"):
        replies.get(key)


def test_replies_are_kept_in_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder("ltp") == tmp_path / "proctor" / "ltp"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder("ltp") == tmp_path / ".cache" / "proctor" / "ltp"
