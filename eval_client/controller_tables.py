"""What a controller tells of its workers, and of the runs that hold and want their sessions."""

import asyncio

from proctor.config.tokens import AccessTokens
from proctor.http.client import http_client
from proctor.tables.table import ResultTable, TableColumn, TableRow
from task_server.http.transport import Caller
from task_server.wire.errors import BadReply
from task_server.wire.messages import VERSION
from task_server.wire.worker_messages import RunList, WorkerList

DEADLINE_S = 20.0
DIGEST_CHARS = 12


def controller_tables(url: str, tokens: AccessTokens) -> list[ResultTable]:
    """Runs and workers, each as a table. Raises TaskServerError where the controller does not answer."""
    runs, workers = asyncio.run(_asked(url.rstrip("/"), tokens))
    return [_runs(runs), _workers(workers)]


async def _asked(url: str, tokens: AccessTokens) -> tuple[RunList, WorkerList]:
    async with http_client() as http:
        caller = Caller(http, tokens, home=url)
        runs = await caller.call("GET", f"{url}/runs", RunList, deadline_s=DEADLINE_S)
        try:
            workers = await caller.call("GET", f"{url}/workers?details=true", WorkerList, deadline_s=DEADLINE_S)
        except BadReply:  # a lone worker has no such route
            workers = WorkerList(workers=())
    return runs, workers


def _runs(listed: RunList) -> ResultTable:
    columns = ("run", "user", "task", "holds", "wants", "waits")
    rows = (
        TableRow(
            (
                each.name or each.run[:DIGEST_CHARS] or "(clients of 0.2.0 and older)",
                each.user if each.user != each.run else None,
                each.task,
                each.held,
                each.wants,
                f"{each.waits_s:.0f} s" if each.waits_s else None,
            )
        )
        for each in listed.runs
    )
    return ResultTable("Runs", _columns(columns), tuple(rows))


def _workers(listed: WorkerList) -> ResultTable:
    columns = ("worker", "address", "task", "sessions", "slots", "state", "digest", "version", "up for", "heard")
    rows = (
        TableRow(
            (
                each.worker,
                each.url,
                task.name,
                task.total - task.free if task.waiting is None else None,
                task.total,
                "draining" if each.draining else task.waiting or "ready",
                (task.digest or "")[:DIGEST_CHARS] or None,
                each.version if each.version == VERSION else f"{each.version} (here: {VERSION})",
                f"{each.details.since_s:.0f} s",
                f"{each.details.heard_s:.1f} s ago",
            )
        )
        for each in listed.workers
        if each.details is not None
        for task in each.details.tasks
    )
    return ResultTable("Workers", _columns(columns), tuple(rows))


def _columns(titles: tuple[str, ...]) -> tuple[TableColumn, ...]:
    numbers = {"holds", "wants", "sessions", "slots"}
    return tuple(TableColumn(title, left=title not in numbers) for title in titles)
