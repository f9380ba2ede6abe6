"""CPU of a step of a foreign client, gateway and worker together: `python -m benchmarks.gateway [WIRE]`.

One process holds both (`proctor serve --tasks`). Clients play echo sessions of eight turns, 16 at a time.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import echo
from proctor.http.client import HttpClient, bounded_request, http_client

CLI = [sys.executable, "-m", "eval_client.cli.main"]
TURNS, CLIENTS, SESSIONS = 8, 16, 400
BUDGET_MS = 1.5


@contextmanager
def gateway(wire: str) -> Iterator[str]:
    """The base URL of `proctor serve` with one echo task."""
    with tempfile.TemporaryDirectory(prefix="proctor-bench-") as folder:
        environment = {**os.environ, "PYTHONPATH": echo.install(Path(folder)), "PROCTOR_TOKEN": ""}
        task = {"name": "echo", "environment": echo.NAME, "capacity": 64, "parameters": {"turns": TURNS}}
        (Path(folder) / "tasks.yaml").write_text(json.dumps({"tasks": [task]}))
        command = [*CLI, "serve", f"--{wire}", "--tasks", f"{folder}/tasks.yaml", "--stop-with-stdin"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            yield process.stdout.readline().strip()
            process.stdin.close()


def cpu_s(url: str) -> float:
    """CPU seconds of the process so far."""
    with urllib.request.urlopen(f"{url}/metrics") as reply:
        lines: list[str] = reply.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("process_cpu_seconds_total "))


async def _post(
    http: HttpClient, url: str, body: object, headers: dict[str, str] | None = None
) -> tuple[dict[str, str], Any]:
    reply = await bounded_request(http, "POST", url, json=body, headers=headers, deadline_s=60.0, max_bytes=1 << 24)
    if reply.status != 200:
        raise RuntimeError(f"{url}: {reply.status} {reply.body[:200]!r}")
    return dict(reply.headers), json.loads(reply.body)


async def by_agentbench(http: HttpClient, base: str, index: object) -> int:
    """One session by AgentBench v0.2's wire; its number of steps."""
    _, given = await _post(http, f"{base}/start_sample", {"name": "echo", "index": index})
    steps = 0
    while given["output"]["status"] == "running":
        body = {"session_id": given["session_id"], "agent_response": {"status": "normal", "content": "x"}}
        _, given = await _post(http, f"{base}/interact", body)
        steps += 1
    return steps


async def by_agentrl(http: HttpClient, base: str, index: object) -> int:
    """One session by AgentRL's wire; its number of steps."""
    headers, given = await _post(http, f"{base}/start_sample", {"name": "echo", "index": index})
    named, steps = {"session_id": headers["session_id"]}, 0
    while not given["finish"]:
        _, given = await _post(http, f"{base}/interact", {"messages": [{"role": "assistant", "content": "x"}]}, named)
        steps += 1
    return steps


PLAY = {"agentbench": by_agentbench, "agentrl": by_agentrl}


async def measure(wire: str, url: str) -> tuple[int, float, float]:
    """(steps, CPU seconds, seconds) of all sessions, after some that warm up."""
    base = f"{url}/{wire}/api"
    async with http_client() as http:
        indices = json.loads(
            (
                await bounded_request(http, "GET", f"{base}/get_indices?name=echo", deadline_s=30.0, max_bytes=1 << 24)
            ).body
        )

        async def client(count: int) -> int:
            return sum([await PLAY[wire](http, base, indices[number % len(indices)]) for number in range(count)])

        await asyncio.gather(*(client(2) for _ in range(CLIENTS)))
        began, before = time.monotonic(), cpu_s(url)
        steps = sum(await asyncio.gather(*(client(SESSIONS // CLIENTS) for _ in range(CLIENTS))))
        return steps, cpu_s(url) - before, time.monotonic() - began


def main() -> None:
    """Measure the wires that are named, or all, and print a line for each."""
    for wire in sys.argv[1:] or PLAY:
        with gateway(wire) as url:
            time.sleep(1)
            steps, cpu, seconds = asyncio.run(measure(wire, url))
        print(f"{wire}: {cpu / steps * 1000:.2f} ms CPU a step (budget {BUDGET_MS}), {steps / seconds:.0f} steps/s")


if __name__ == "__main__":
    main()
