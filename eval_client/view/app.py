"""The viewer's HTTP app and its server: routes, access, headers, and one answer for each kind of error."""

import contextlib
import logging
import socket
from collections.abc import Callable
from functools import partial
from urllib.parse import quote

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eval_client.report.compare.sides import CompareError
from eval_client.store.connection import DatabaseError, StoreError, is_transient, reason
from eval_client.store.trials.rows import QueryError
from eval_client.view.access import ViewAccess
from eval_client.view.json_api import ROUTES as API
from eval_client.view.pages.compare import compare_json, compare_page, status_of
from eval_client.view.pages.listing import runs_page, workers_page
from eval_client.view.pages.login import login_page
from eval_client.view.pages.overview import live_page, overview_page, plot_svg, tables_page
from eval_client.view.pages.side import side_page
from eval_client.view.pages.table import sample_page, trials_file, trials_page
from eval_client.view.pages.trial import drawing_page, drawing_part, raw_text, trial_page
from eval_client.view.rendering import Asset, assets
from eval_client.view.runs import NotFound, ViewedRuns
from eval_client.view.saved import report_file
from eval_client.view.viewer import Controller, Viewer
from proctor import event_loop
from proctor.config.tokens import AccessTokens
from proctor.http import is_loopback
from proctor.http.auth import AccessGuard
from proctor.http.server import ConfigError, add_route, http_app, listen, url_of
from proctor.http.serving import serve_until_signal, uvicorn_config
from proctor.http.tls import ServerTls
from proctor.observability.redaction import redacted
from task_server.wire.errors import ApiError, BadRequest, Forbidden, Internal, NotReady, Unauthorized

log = logging.getLogger(__name__)

FOR_PROGRAMS = "/api/"
"""Where errors are problem documents."""
RETRY_S = 5
"""Seconds after which a page whose store did not answer may be asked for again."""
PAGES: tuple[tuple[str, Callable[[Viewer, Request], Response]], ...] = (
    ("/", runs_page),
    ("/runs/{run}", overview_page),
    ("/runs/{run}/live", live_page),
    ("/runs/{run}/tables", tables_page),
    ("/runs/{run}/trials", trials_page),
    ("/runs/{run}/trials.csv", trials_file),
    ("/runs/{run}/trials.jsonl", trials_file),
    ("/runs/{run}/trials/{trial}", trial_page),
    ("/runs/{run}/trials/{trial}/raw", raw_text),
    ("/runs/{run}/trials/{trial}/drawing", drawing_page),
    ("/runs/{run}/trials/{trial}/drawing.css", drawing_part),
    ("/runs/{run}/trials/{trial}/drawing.js", drawing_part),
    ("/runs/{run}/sample", sample_page),
    ("/runs/{run}/side", side_page),
    ("/runs/{run}/report.html", report_file),
    ("/compare", compare_page),
    ("/api/v1/compare", compare_json),
    ("/api/v1/plots/{name}.svg", plot_svg),
)
SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every answer."""
TOKENS = ("PROCTOR_VIEW_TOKEN", "PROCTOR_TOKEN")
KEEP_ALIVE_S, LAST_REPLIES_S = 65, 1
PORT, PORTS = 7400, 20
"""The usual port, and how many from it on are tried."""
TITLES = {
    400: "This address can't be used",
    401: "A token is needed",
    403: "Not allowed from there",
    404: "Not found",
    405: "Not allowed",
    409: "These can't be compared",
    500: "The viewer failed",
    503: "The store does not answer",
}


class SecurityHeaders:
    """Adds the headers to every answer of an app, and forbids caches to keep it unless the app allows that."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Cache-Control", "no-store")
                headers.update(SECURITY)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def build_app(runs: ViewedRuns, access: ViewAccess, controller: Controller | None = None) -> ASGIApp:
    """The app that shows these runs, and a controller's workers, to those that `access` admits.

    `/login` is there only if a token is needed, `/workers` only with a controller.
    """
    files = assets()
    viewer = Viewer(runs, access, files, controller)
    answer = partial(_failed, viewer)
    kinds = (HTTPException, QueryError, CompareError, StoreError, DatabaseError, Exception)
    app = FastAPI(**http_app("Proctor viewer"))
    for kind in kinds:
        app.add_exception_handler(kind, answer)
    for path, page in (*PAGES, *API):
        add_route(app.router, "GET", path, partial(page, viewer))
    for asset in files.values():
        app.router.add_route(asset.address, partial(_asset, asset))
    add_route(app.router, "GET", "/healthz", _health)
    if controller is not None:
        add_route(app.router, "GET", "/workers", partial(workers_page, viewer))
    for method in ("GET", "POST") if access.closed else ():
        add_route(app.router, method, "/login", partial(login_page, viewer))
    return SecurityHeaders(AccessGuard(app, access, partial(_refused, viewer)))


def _asset(asset: Asset, _request: Request) -> Response:
    forever = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(asset.content, headers=forever, media_type=asset.media_type)


async def _health(_request: Request) -> Response:
    """Whether the viewer runs; needs no token."""
    return JSONResponse({"status": "ok"})


async def _failed(viewer: Viewer, request: Request, error: Exception) -> Response:
    """The answer to a request that failed. Only here do exceptions become answers."""
    status, detail = _explained(error)
    if status == 500:
        log.error("%s failed", request.url.path, exc_info=error)
    return _error(viewer, request.scope, status, detail)


def _explained(error: Exception) -> tuple[int, str]:
    match error:
        case HTTPException():
            return error.status_code, error.detail
        case QueryError():
            return 400, str(error)
        case CompareError():
            return status_of(error), str(error)
        case NotFound():
            return 404, str(error)
        case StoreError():
            return 503, str(error)
        case DatabaseError():
            again = "; the page can be loaded again" if is_transient(error) else ""
            return 503, f"{reason(error)}{again}"
        case _:
            return 500, "see the viewer's log"


def _refused(viewer: Viewer, scope: Scope, status: int, cause: str) -> Response:
    """The answer to a request without access: people who open a page are asked for the token."""
    if status == 403:
        return _error(viewer, scope, status, f"{cause}, and this viewer has no token; set PROCTOR_VIEW_TOKEN")
    accepts = dict(scope["headers"]).get(b"accept", b"")
    if scope.get("method") == "GET" and b"text/html" in accepts and not _is_api(scope):
        path = quote(scope["path"]) + (f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else "")
        return RedirectResponse(f"/login?next={quote(path, safe='')}", 303)
    return _error(viewer, scope, status, "this page needs a token")


def _error(viewer: Viewer, scope: Scope, status: int, detail: str) -> Response:
    """A problem document for programs, a page for people."""
    detail = redacted(detail)
    headers = {"Retry-After": str(RETRY_S)} if status == 503 else {}
    if _is_api(scope):
        kinds: dict[int, type[ApiError]] = {401: Unauthorized, 403: Forbidden, 500: Internal, 503: NotReady}
        problem = kinds.get(status, BadRequest)(detail).problem().model_dump_json()
        return Response(problem, status, headers, media_type="application/problem+json")
    answer = viewer.page("error.html", TITLES.get(status, "Error"), status, detail=detail, code=status)
    answer.headers.update(headers)
    return answer


def _is_api(scope: Scope) -> bool:
    return str(scope["path"]).startswith(FOR_PROGRAMS)


def serve(
    runs: ViewedRuns,
    host: str,
    port: int | None,
    tls: ServerTls,
    on_ready: Callable[[str], None],
    *,
    controller: str | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM. `on_ready` gets the address; a controller is asked with PROCTOR_TOKEN.

    Without a port the first free one from PORT on is taken. Raises ConfigError, FileError and ValueError where the
    options can't be used.
    """
    access = ViewAccess(*_tokens(host))
    app = build_app(runs, access, None if controller is None else (controller, AccessTokens.of(TOKENS[1])))
    config = uvicorn_config(app, keep_alive_s=KEEP_ALIVE_S, last_replies_s=LAST_REPLIES_S, tls=tls, knows=access.knows)
    with _listen(host, port) as listener:
        address = url_of(host, listener, tls.scheme)
        event_loop.run(serve_until_signal(config, listener, lambda: on_ready(address)))


def _tokens(host: str) -> tuple[AccessTokens, ...]:
    """The tokens that open the viewer; those of clients only where others can reach it. Raises ConfigError."""
    given = tuple(map(AccessTokens.of, TOKENS))
    if is_loopback(host):
        return given if given[0] else ()
    if not any(given):
        raise ConfigError(
            f"--host {host}: others can reach it; set {TOKENS[0]} to a long random text, or bind 127.0.0.1"
        )
    return given


def _listen(host: str, port: int | None) -> socket.socket:
    """A listening socket. Raises ConfigError."""
    if port is not None:
        return listen(host, port)
    for each in range(PORT, PORT + PORTS):
        with contextlib.suppress(ConfigError):
            return listen(host, each)
    raise ConfigError(f"--port: {PORT} to {PORT + PORTS - 1} are taken at {host}, or it is no address of this machine")
