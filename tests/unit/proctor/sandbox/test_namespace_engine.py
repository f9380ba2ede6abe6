"""A sandbox in namespaces, as its worker sees it."""

import asyncio
import os
import socket

import pytest

from proctor.sandbox.base import SandboxLimits
from proctor.sandbox.namespaces.engine import NamespaceEngine, NamespaceSandbox


@pytest.mark.parametrize("rounds", range(1, 4))
async def test_a_process_that_is_cancelled_while_it_starts_leaves_nothing_open(
    monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    control, theirs = socket.socketpair()
    box, make_pair, make_pipe = NamespaceSandbox(control, NamespaceEngine(SandboxLimits())), socket.socketpair, os.pipe
    sockets, readers = list[socket.socket](), list[int]()

    def pair() -> tuple[socket.socket, socket.socket]:
        sockets.extend(made := make_pair())
        return made

    def pipe() -> tuple[int, int]:
        made = make_pipe()
        readers.append(os.dup(made[0]))
        return made

    monkeypatch.setattr(socket, "socketpair", pair)
    monkeypatch.setattr(os, "pipe", pipe)
    starting = asyncio.create_task(box.spawn(["/bin/true"]))
    for _ in range(rounds):  # of the loop
        await asyncio.sleep(0)
    starting.cancel()
    await asyncio.wait({starting})
    assert starting.cancelled()
    assert [each.fileno() for each in sockets] == [-1, -1]
    theirs.close()  # it may have been sent the other end of the pipe
    await box.close()
    (reader,) = readers
    os.set_blocking(reader, False)
    assert os.read(reader, 1) == b"", "nobody holds the other end"
    os.close(reader)
