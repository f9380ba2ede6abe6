"""A run's metrics, read from its state when they are asked for, and served over HTTP during the run.

`GET /metrics`, and `GET /healthz` without a token.
"""

import contextlib
import re
import socket
from collections.abc import Callable, Iterator, Mapping

from fastapi import FastAPI, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import Metric
from starlette.types import ASGIApp, Scope

from eval_client.core import Pair
from eval_client.core.spend import Spend, price_of
from eval_client.run.context import RunContext
from proctor.config.tokens import AccessTokens
from proctor.event_loop import beside
from proctor.http import is_loopback
from proctor.http.auth import METRICS, Access, AccessGuard
from proctor.http.server import ConfigError, http_app, listen
from proctor.http.serving import EmbeddedServer, uvicorn_config
from proctor.observability.metrics import EXPOSITION, ProcessMetrics, counter, expose, gauge
from task_server.metrics import waiting_class

MAX_PAIRS = 1_000
"""With more pairs of agent and task than this, only sums over agents are exposed."""
ALL = "(all)"
_WHERE = re.compile(r"(?:(?P<host>[^\s:\[\]]+|\[[0-9A-Fa-f:.]+\]):)?(?P<port>[0-9]{1,5})")


def listener(where: str) -> socket.socket:
    """A socket at `[HOST:]PORT`, on loopback without a host.

    Raises ConfigError, and ValueError for a token that can't be used.
    """
    host, port = _parsed(where)
    if not (is_loopback(host) or metrics_access().closed):
        raise ConfigError(f"--metrics: {host} is open to other machines; set PROCTOR_TOKEN, or listen at 127.0.0.1")
    return listen(host, port)


def metrics_access() -> Access:
    """The tokens for the metrics, the same as for the servers': PROCTOR_TOKEN and PROCTOR_METRICS_TOKEN."""
    return Access(AccessTokens.of("PROCTOR_TOKEN"), AccessTokens.of("PROCTOR_METRICS_TOKEN"))


def _parsed(where: str) -> tuple[str, int]:
    found = _WHERE.fullmatch(where)
    if found is None or int(found["port"]) > 65535:
        raise ConfigError(f"--metrics: {where!r} is not [HOST:]PORT, such as 9464 or 0.0.0.0:9464")
    return (found["host"] or "127.0.0.1").strip("[]"), int(found["port"])


@contextlib.contextmanager
def exposed(context: RunContext, socket_: socket.socket) -> Iterator[None]:
    """Serve the metrics of a run while inside. Needs a running loop."""
    process = ProcessMetrics("client")
    access = metrics_access()
    app = exposition(lambda: expose([*collect(context), *process.collect()]), access)
    server = EmbeddedServer(uvicorn_config(app, keep_alive_s=65, last_replies_s=1, knows=access.knows))
    with socket_, beside(server.serve(sockets=[socket_])), beside(process.watch()):
        yield


def exposition(text: Callable[[], str], access: Access) -> ASGIApp:
    """The app that serves the result of `text` at /metrics."""
    app = FastAPI(**http_app("Proctor client"))

    @app.get("/healthz", summary="The client runs", response_class=PlainTextResponse)
    async def health() -> Response:
        return _answer(200, "ok\n")

    @app.get(METRICS, summary="Metrics in the Prometheus text format", response_class=PlainTextResponse)
    async def metrics() -> Response:
        return _answer(200, text())

    return AccessGuard(app, access, _without_access)


def _without_access(_scope: Scope, status: int, cause: str) -> Response:
    if status == 401:
        return _answer(401, "send `Authorization: Bearer <token>`\n")
    return PlainTextResponse(f"{cause}, and these metrics ask for no token; set PROCTOR_TOKEN\n", 403)


def _answer(status: int, text: str) -> Response:
    return Response(text, status, media_type=EXPOSITION)


def collect(context: RunContext) -> Iterator[Metric]:
    """Counters since the run's last start or resume, and gauges of its present state."""
    progress = context.progress
    yield gauge("proctor_run_info", "The run that this client plays.", ("run",), {(context.run,): 1})
    yield from _trials(context)
    yield counter("proctor_client_turns_total", "Turns that are durable.", (), {(): context.journal.turns})
    yield counter("proctor_attempts_lost_total", "Attempts tried again.", (), {(): progress.attempts_lost})
    yield _faults(progress.faults)
    yield _model_calls(context)
    yield from context.endpoints.metrics.collect()
    yield from _spending(context.endpoints.spend)
    yield from _capacity_limits(context)
    yield from context.journal.metrics.collect()
    trouble = {(): progress.trouble is not None}
    yield gauge("proctor_store_trouble", "1 while the store can't be written to.", (), trouble)
    yield gauge("proctor_run_draining", "1 while nothing more is started.", (), {(): progress.draining})


def _trials(context: RunContext) -> Iterator[Metric]:
    progress, by = context.progress, _grouping(len(context.progress.planned))
    stages = {
        "planned": ("Trials of the run.", progress.planned),
        "scored": ("Trials that have a score.", progress.scored),
        "unscored": ("Trials left unscored by a fault.", progress.unscored),
        "running": ("Trials under way.", progress.running),
    }
    waiting: dict[tuple[str, str, str], float] = {}
    for pair, trials in context.schedule.unstarted().items():
        key = (*by(pair), _waits_for(context, pair))
        waiting[key] = waiting.get(key, 0) + trials
    labels = ("agent", "task")
    for stage, (meaning, counts) in stages.items():
        yield gauge(f"proctor_trials_{stage}", meaning, labels, _summed(counts, by))
    yield gauge("proctor_trials_waiting", "Trials not started, by what they wait for.", (*labels, "reason"), waiting)


def _waits_for(context: RunContext, pair: Pair) -> str:
    """The limit that is reached (`endpoint`, `agent`, `task`), or the class of reason why the task takes no trials."""
    kind = context.schedule.flow.waits_for(pair) or "agent"
    reason = context.progress.task_waits.get(pair[1])
    return waiting_class(reason) if kind == "task" and reason else kind


def _faults(faults: Mapping[tuple[str, str, str], int]) -> Metric:
    by = _grouping(len(faults))
    counts: dict[tuple[str, str, str], float] = {}
    for (agent, task, kind), count in faults.items():
        key = (*by((agent, task)), kind)
        counts[key] = counts.get(key, 0) + count
    meaning = "Attempts that ended without a score, by the kind of fault."
    return counter("proctor_attempt_faults_total", meaning, ("agent", "task", "kind"), counts)


def _model_calls(context: RunContext) -> Metric:
    under_way: dict[tuple[str], float] = {(agent.name,): 0 for agent in context.plan.agents}
    for call in context.endpoints.calls.values():
        under_way[(call.what,)] += 1
    return gauge("proctor_model_calls_in_flight", "Calls to a model under way.", ("agent",), under_way)


def _spending(spend: Spend) -> Iterator[Metric]:
    tokens = {
        (agent, kind): count
        for agent, paid in spend.by_agent.items()
        for kind, count in (("prompt", paid.prompt_tokens), ("completion", paid.completion_tokens))
    }
    money = {
        (agent,): price.of(paid)
        for agent, paid in spend.by_agent.items()
        if (price := price_of(agent, spend.prices)) is not None
    }
    yield counter("proctor_tokens_total", "Tokens paid for, those before a resume too.", ("agent", "kind"), tokens)
    yield counter("proctor_money_total", "Money spent, where a price is known.", ("agent",), money)


def _capacity_limits(context: RunContext) -> Iterator[Metric]:
    uses = {(kind, name): use for kind, nodes in context.schedule.flow.use().items() for name, use in nodes.items()}
    labels = ("kind", "name")
    used = {key: used for key, (used, _) in uses.items()}
    capacities = {key: capacity for key, (_, capacity) in uses.items()}
    yield gauge("proctor_cap_used", "Trials under way within each cap.", labels, used)
    yield gauge("proctor_cap_capacity", "Trials that each cap allows now.", labels, capacities)


def _grouping(pairs: int) -> Callable[[Pair], Pair]:
    return (lambda pair: pair) if pairs <= MAX_PAIRS else (lambda pair: (ALL, pair[1]))


def _summed(counts: Mapping[Pair, int], by: Callable[[Pair], Pair]) -> dict[Pair, float]:
    total: dict[Pair, float] = {}
    for pair, count in counts.items():
        total[by(pair)] = total.get(by(pair), 0) + count
    return total
