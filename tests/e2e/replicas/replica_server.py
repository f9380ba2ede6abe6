"""One of several servers of a model: `python -m tests.e2e.replicas.replica_server PORT ANSWER_S [MODEL[:LENGTH]]`.

Its replies go by the conversation's length: queries, then an answer. It has a prefix cache, and tells what it was
asked at `/seen`. ANSWER_S `hangs` answers no completion, `broken` says 500, `default` takes no temperature. It asks for
the key in VLLM_API_KEY.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.pace import slowly

QUERY = "Action: Operation\n```sql\nSELECT 1;\n```"
ANSWER = 'Action: Answer\nFinal Answer: ["1"]'
KEY = os.environ.get("VLLM_API_KEY", "")
TURNS = 4
"""Answers in a trial of `db`, whose opening has one of the assistant's already."""


class ReplicaServer:
    """The server's state."""

    def __init__(self, how: str, model: str) -> None:
        self.how = how
        self.model, _, length = model.partition(":")
        self.length = int(length or 4096)
        self.now = self.most = 0
        self.prefixes: set[bytes] = set()
        self.seen: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while line := await reader.readline():
                method, path, _ = line.decode().split(" ", 2)
                length, key = 0, ""
                while header := (await reader.readline()).strip():
                    name, _, value = header.decode().partition(":")
                    length = int(value) if name.lower() == "content-length" else length
                    key = value.strip() if name.lower() == "authorization" else key
                status, body = await self.reply(method, path, await reader.readexactly(length))
                if KEY and key != f"Bearer {KEY}":
                    status, body = 401, b"{}"
                head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def reply(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        if method == "GET":
            listed = {"object": "list", "data": [{"id": self.model, "object": "model", "max_model_len": self.length}]}
            seen = {**self.seen, "most": self.most}
            return 200, json.dumps(seen if path == "/seen" else listed).encode()
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await self.complete(json.loads(body))
        finally:
            self.now -= 1

    async def complete(self, asked: dict[str, Any]) -> tuple[int, bytes]:
        probe = "max_tokens" in asked  # of one token, or of what is compared between servers
        self.seen["probes" if probe else "requests"] += 1
        if self.how == "hangs":
            await asyncio.sleep(1e6)
        if self.how == "broken":
            return 500, b'{"error": {"message": "engine dead"}}'
        if self.how == "default" and "temperature" in asked:
            return (
                400,
                b'{"error": {"message": "\'temperature\' does not support 0. Only the default (1) is supported."}}',
            )
        await asyncio.sleep(0.0 if probe or self.how == "default" else float(self.how))
        prompt, cached = self.tokens(asked["messages"])
        answers = sum(message["role"] == "assistant" for message in asked["messages"])
        self.seen["answered"] += not probe
        usage = {"prompt_tokens": prompt, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": cached}}
        message = {"role": "assistant", "content": ANSWER if answers >= TURNS else QUERY}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return 200, json.dumps({"choices": [choice], "model": self.model, "usage": usage}).encode()

    def tokens(self, messages: list[dict[str, Any]]) -> tuple[int, int]:
        """Characters of a conversation, and those that the cache has already."""
        prompt = cached = 0
        state = hashlib.blake2b()
        for message in messages:
            text = json.dumps(message).encode()
            state.update(text)
            prompt += len(text)
            if state.digest() in self.prefixes:
                cached = prompt
            self.prefixes.add(state.digest())
        return prompt, cached


class Process:
    """A scripted server in a process."""

    def __init__(self, how: float | str = 0.05, model: str = "m", port: int = 0) -> None:
        arguments = [sys.executable, "-m", "tests.e2e.replicas.replica_server", str(port), str(how), model]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def seen(self) -> dict[str, int]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/seen", timeout=slowly(10)) as reply:
            found: dict[str, int] = json.load(reply)
        return found

    def kill(self) -> None:
        with self.process:
            self.process.kill()


@contextlib.contextmanager
def processes(*how: float | str) -> Iterator[list[Process]]:
    """Servers, killed afterwards; others may be added to the list."""
    running = [Process(each) for each in how]
    try:
        yield running
    finally:
        for one in running:
            one.kill()


async def main(port: int, how: str, model: str = "m") -> None:
    server = await asyncio.start_server(ReplicaServer(how, model).serve, "127.0.0.1", port)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), *sys.argv[2:]))
