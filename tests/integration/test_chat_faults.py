"""A chat model outlives what a real, broken endpoint does on the wire, within its time and memory."""

import json
import struct
import tracemalloc
import zlib

import pytest

from proctor.environment import AgentUnavailable
from proctor.http.client import http_client
from proctor.llm.config import ChatConfig
from proctor.llm.model import ChatModel
from proctor.types import Message
from tests.pace import slowly
from tests.scripted_server import Script, drip, raw, reply, scripted_server, silence

MEGABYTE = bytes(1 << 20)


def _gzip_bomb(megabytes: int) -> bytes:
    """Zeros as gzip, of which each megabyte is compressed alike, so that only one is."""
    compressor = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    block = compressor.compress(MEGABYTE) + compressor.flush(zlib.Z_FULL_FLUSH)
    crc = 0
    for _ in range(megabytes):
        crc = zlib.crc32(MEGABYTE, crc)
    end = compressor.flush() + struct.pack("<II", crc, megabytes << 20)
    return b"\x1f\x8b\x08\0\0\0\0\0\x02\xff" + block * megabytes + end


GOOD = json.dumps({"choices": [{"message": {"content": "hi"}}]}).encode()
FAULTS: dict[str, Script] = {
    "throttled": reply(b"{}", "429 Too Many Requests", ["Retry-After: 1"]),
    "server error": reply(b"oops", "500 Internal Server Error"),
    "garbage": reply(b'{"choices": [{"mess'),
    "empty choices": reply(b'{"choices": []}'),
    "10 MB reply": reply(b"x" * 10_000_000),
    "gzip bomb": reply(_gzip_bomb(200), headers=["Content-Encoding: gzip"]),
    "endless drip": drip,
    "silence": silence,
    "cut short": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + GOOD),
    "closed at once": raw(b""),
}
CONFIG = ChatConfig(model="m", deadline_s=slowly(60), max_tries=3, max_reply_bytes=1 << 20)
RUN_INTO_THE_DEADLINE = {"endless drip", "silence"}


async def ask(fault: str, *then: Script) -> tuple[str, int, list[float]]:
    """The answer, the tries it took and the sleeps between them."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async with scripted_server(FAULTS[fault], *then) as url, http_client() as client:
        deadline_s = slowly(0.5) if fault in RUN_INTO_THE_DEADLINE else CONFIG.deadline_s
        config = CONFIG.model_copy(update={"base_url": url, "deadline_s": deadline_s})
        model = ChatModel(config, client, sleep=sleep, random=lambda: 0.5)
        completion = await model.complete([Message(role="user", content="hello")])
    return completion.action.content, completion.tries, slept


@pytest.mark.parametrize("fault", FAULTS)
async def test_one_fault_is_outlived(fault: str) -> None:
    content, tries, slept = await ask(fault, reply(GOOD))
    assert (content, tries) == ("hi", 2)
    assert slept == [1.25 if fault == "throttled" else 0.25]


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_lasting_fault_ends_unavailable_in_bounded_memory(fault: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(AgentUnavailable, match=r"after 3 tries"):
            await ask(fault)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
