"""Runs in a container beside a task's, in its network, where nothing else is: passes requests on by standard streams.

It needs no more than Python's smallest installation. A request goes out as two lengths of 32 bits (big-endian), its
head and its body; its reply comes in as one length and the whole response. One at a time is under way.
"""

import contextlib
import os
import socket
import struct
import sys
import threading

PORT = 8377
MAX_HEAD_BYTES, MAX_BODY_BYTES = 64 << 10, 16 << 20
CONNECTIONS, IDLE_S = 8, 60.0
"""So many are served at once, each for so long without a byte of it."""
_one_at_a_time, _free = threading.Lock(), threading.Semaphore(CONNECTIONS)


def received(count: int) -> bytes:
    """The next bytes from the other side; this process ends with it."""
    came = sys.stdin.buffer.read(count)
    if len(came) < count:
        os._exit(0)
    return came


def answer(connection: socket.socket) -> None:
    """Pass on the one request of a connection."""
    with contextlib.suppress(OSError, ValueError), connection, connection.makefile("rb") as incoming:
        connection.settimeout(IDLE_S)
        head, length = b"", 0
        while (line := incoming.readline(MAX_HEAD_BYTES)).strip() and len(head) < MAX_HEAD_BYTES:
            head += line
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            if name.lower() == b"expect":
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not head:
            return
        body = incoming.read(max(0, min(length, MAX_BODY_BYTES + 1)))
        with _one_at_a_time:
            sys.stdout.buffer.write(struct.pack(">II", len(head), len(body)) + head + body)
            sys.stdout.buffer.flush()
            reply = received(struct.unpack(">I", received(4))[0])
        connection.sendall(reply)


def serve(connection: socket.socket) -> None:
    """Answer, and let another connection be accepted."""
    try:
        answer(connection)
    finally:
        _free.release()


def main() -> None:
    """Serve until the other side is gone."""
    with socket.create_server(("127.0.0.1", PORT), backlog=64) as server:
        sys.stdout.buffer.write(struct.pack(">II", 0, 0))
        sys.stdout.buffer.flush()
        while _free.acquire():
            threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()


if __name__ == "__main__":
    main()
