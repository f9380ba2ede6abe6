"""The form that takes the token and sets the cookie, and the logout."""

import math
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from eval_client.view.access import COOKIE, COOKIE_S
from eval_client.view.viewer import Viewer
from proctor.http.server import BodyError, read_body

MAX_FORM = 8 << 10
"""Bytes of a form."""
FORM_S = 10.0
"""Seconds until a form is complete."""


async def login_page(viewer: Viewer, request: Request) -> Response:
    """The login form; a POST with the right token redirects to the page that was asked for."""
    if request.method != "POST":
        return _form(viewer, request.query_params.get("next", ""))
    fields = await _fields(request)
    if fields is None or request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return _form(viewer, "", "this form was not sent by this page; try again here", 400)
    if "out" in fields:
        viewer.access.log_out(request.cookies.get(COOKIE, ""))
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(COOKIE)
        return answer
    return _logged_in(viewer, request, fields.get("token", ""), own_path(fields.get("next", "")))


def own_path(text: str) -> str:
    """A path of this server; the first page in place of anything that may lead elsewhere."""
    plain = text.isascii() and text.isprintable() and "\\" not in text
    return text if plain and text.startswith("/") and not text.startswith("//") else "/"


def _logged_in(viewer: Viewer, request: Request, token: str, path: str) -> Response:
    if wait_s := viewer.access.wait_s():
        answer = _form(viewer, path, f"too many wrong tokens; try again in {math.ceil(wait_s)} s", 429)
        answer.headers["Retry-After"] = str(math.ceil(wait_s))
        return answer
    cookie = viewer.access.log_in(token)
    if cookie is None:
        return _form(viewer, path, "this token is wrong; it is the viewer's PROCTOR_VIEW_TOKEN", 403)
    answer = RedirectResponse(path, 303)
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, cookie, max_age=COOKIE_S, path="/", secure=secure, httponly=True, samesite="lax")
    return answer


def _form(viewer: Viewer, path: str, problem: str = "", status: int = 200) -> Response:
    return viewer.page("login.html", "Log in", status, next=own_path(path), problem=problem)


async def _fields(request: Request) -> dict[str, str] | None:
    """The form's fields; None where it is too large, too slow or no form."""
    try:
        body = await read_body(request.receive, MAX_FORM, FORM_S)
        return {name: values[-1] for name, values in parse_qs(body.decode("ascii"), keep_blank_values=True).items()}
    except (BodyError, ValueError):
        return None
