"""Reads requests: the body, within limits of size and time, and what their senders show."""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Receive

BODY_S = 30.0
"""Longest time that receiving a body may take, where a server sets none of its own."""


class BodyError(Exception):
    """The body can't be read; `status` is that of the answer: 413 too large, 408 too slow, 400 broken off."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def authorization(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The Authorization header; empty where there is none."""
    return next((value for name, value in headers if name == b"authorization"), b"")


async def read_body(receive: "Receive", max_bytes: int, deadline_s: float | None = None) -> bytes:
    """The whole body; its size is checked while it arrives. Raises BodyError."""
    body = bytearray()
    deadline_s = BODY_S if deadline_s is None else deadline_s
    try:
        async with asyncio.timeout(deadline_s):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise BodyError(400, "the connection broke within the body")
                body += message.get("body", b"")
                if len(body) > max_bytes:
                    raise BodyError(413, f"the body is over {max_bytes} bytes")
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError as error:
        raise BodyError(408, f"the body took over {deadline_s:g} s") from error
