"""A command is ended whole: no process, thread, descriptor or time is left."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from proctor.observability.redaction import remember
from proctor_bridges.command_words import filled
from proctor_bridges.mcp.command import CommandProcess
from tests.support import working_in

ELSEWHERE = "import subprocess; subprocess.Popen(['sleep', '98764'], start_new_session=True)\n"
"""Leaves a process behind in a session of its own."""


def started(script: str, folder: Path) -> CommandProcess:
    return CommandProcess([sys.executable, "-c", script], folder, dict(os.environ), folder / "log")


async def test_a_child_in_a_session_of_its_own_is_ended_too(tmp_path: Path) -> None:
    threads = threading.active_count()
    for _ in range(2):
        command = started(ELSEWHERE, tmp_path)
        await command.ended()
        assert len(working_in(tmp_path)) == 1
        await command.end(0)
        assert working_in(tmp_path) == []
    assert threading.active_count() <= threads + 1  # that of to_thread


async def test_a_child_without_the_mark_leaves_no_thread_and_no_descriptor(tmp_path: Path) -> None:
    await started("", tmp_path).end(0)  # the thread of to_thread, and its descriptors
    gc.collect()  # what earlier tests left open would be closed later
    threads, descriptors = threading.active_count(), psutil.Process().num_fds()
    command = started(ELSEWHERE.replace("start_new", "env={}, start_new"), tmp_path)
    await command.ended()
    await command.end(0)
    (child,) = working_in(tmp_path)
    child.kill()
    assert threading.active_count() <= threads + 1
    assert psutil.Process().num_fds() == descriptors


async def test_half_of_a_key_is_not_quoted_either(tmp_path: Path) -> None:
    remember("a-canary-of-many-characters")
    command = started("print('a-canary-of-many-characters', 'x' * 482, end='')", tmp_path)
    await command.ended()
    said = await command.last_words()
    await command.end(0)
    assert said.endswith("x" * 482)
    assert "characters" not in said


async def test_the_end_is_learned_before_it_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[object] = []
    learn = os.waitid

    def late(kind: int, number: int, options: int) -> object:
        time.sleep(0.5)
        return learn(kind, number, options)

    monkeypatch.setattr(threading, "excepthook", failed.append)
    monkeypatch.setattr(os, "waitid", late)
    command = CommandProcess(["sleep", "98764"], tmp_path, {}, tmp_path / "log")
    ending = asyncio.create_task(command.end(60))
    await asyncio.sleep(0)
    ending.cancel()
    await asyncio.gather(ending, return_exceptions=True)
    await asyncio.sleep(1)
    assert failed == []


async def test_what_was_printed_last_is_known_at_the_end(tmp_path: Path) -> None:
    for _ in range(20):
        command = CommandProcess(["/bin/sh", "-c", "echo no key"], tmp_path, {}, tmp_path / "log")
        await command.ended()
        said = await command.last_words()
        await command.end(0)
        assert said == "no key"


@pytest.mark.parametrize("refused", ["watchdog", "thread"])
async def test_a_start_that_fails_half_way_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    start = subprocess.Popen

    def no_shell(words: list[str], **options: Any) -> subprocess.Popen[bytes]:
        if words[0] == "/bin/sh":
            raise BlockingIOError("no more processes")
        return start(words, **options)

    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    if refused == "watchdog":
        monkeypatch.setattr(subprocess, "Popen", no_shell)
    else:
        monkeypatch.setattr(threading.Thread, "start", no_thread)
    gc.collect()  # what earlier tests left open would be closed later
    descriptors = psutil.Process().num_fds()
    with pytest.raises(OSError, match=r"no more processes|can't start new thread"):
        CommandProcess(["sleep", "98764"], tmp_path, {}, tmp_path / "log")
    assert working_in(tmp_path) == []
    gc.collect()
    assert psutil.Process().num_fds() == descriptors


@pytest.mark.parametrize(
    ("word", "becomes"), [("${{HOME}}/{url}", "${HOME}/u"), ('{"a":{"b":"{url}"}}', '{"a":{"b":"u"}}')]
)
def test_in_a_word_two_braces_are_one(word: str, becomes: str) -> None:
    assert filled([word], {"url": "u"}) == [becomes]
