"""Serves the shop as web pages for a person, with the places and pages of agents.

The URL holds the visitor's place, so the server has no state; every click is an agent's action.
"""

from collections.abc import Iterator
from html import escape
from urllib.parse import urlencode

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from environments.webshop.reply import ShopMove
from environments.webshop.scoring import Profile, reward
from environments.webshop.shop.pages import Button, Choice, Link, Page
from environments.webshop.shop.shop import Shop
from environments.webshop.shop.visit import MAX_KEYWORDS, Place, Visit

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_STYLE = (
    "body{font:16px sans-serif;max-width:50em;margin:2em auto;padding:0 1em}"
    "a.button{border:1px solid #888;border-radius:4px;padding:.1em .5em;text-decoration:none;margin-right:.3em}"
    "a.chosen{background:#cde}nav{color:#666}p{margin:.5em 0}"
)


def app(shop: Shop, profile: Profile) -> Starlette:
    """The web app of a shop: `/` redirects to the first goal, `/N` shows the goal with index N."""

    def first(_: Request) -> Response:
        return RedirectResponse("/0", 303)

    def show(request: Request) -> Response:
        index = request.path_params["goal"]
        try:
            goal = shop.store.goal(index)
            place = Place.model_validate_json(request.query_params.get("place", "{}"))
            visit = Visit(shop, goal.instruction, profile)
            move = _move(request)
            if move is not None:
                return RedirectResponse(_url(index, visit.after(place, move) or place), 303)
            body = _bought(shop, index, place, profile) if place.bought else _page(visit, index, place)
        except (LookupError, ValueError, OverflowError) as error:
            about = "the place in the URL can't be read" if isinstance(error, ValidationError) else str(error)
            return PlainTextResponse(about, 404, _HEADERS)
        return HTMLResponse(_document(index, shop.store.meta.goals, body), headers=_HEADERS)

    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    return Starlette(routes=[Route("/", first), Route("/{goal:int}", show)], middleware=[hosts])


def _move(request: Request) -> ShopMove | None:
    """The agent's action of a request; None if it has none."""
    for name, field in (("search", "keywords"), ("click", "click")):
        if (written := request.query_params.get(field)) is not None:
            return ShopMove(name, written.lower())
    return None


def _url(goal: int, place: Place, **more: str) -> str:
    return f"/{goal}?{urlencode({'place': place.model_dump_json(exclude_defaults=True), **more})}"


def _page(visit: Visit, goal: int, place: Place) -> str:
    page = visit.page(place)
    names = {piece: name for name, piece in visit.clickables(page).items()}
    return "\n".join(_pieces(page, names, goal, place))


def _pieces(page: Page, names: dict[Button | Link | Choice, str], goal: int, place: Place) -> Iterator[str]:
    for piece in page.pieces:
        if isinstance(piece, str):
            yield f"<p>{escape(piece)}</p>"
        elif page.search_bar:
            yield _form(goal, place)
        else:
            chosen = isinstance(piece, Choice) and place.chosen.get(piece.option) == piece.text
            url = _url(goal, place, click=names.get(piece, piece.text.lower()))
            kind = "button chosen" if chosen else "button"
            yield f'<a class="{kind}" href="{escape(url)}">{escape(piece.text)}</a>'


def _form(goal: int, place: Place) -> str:
    state = escape(place.model_dump_json(exclude_defaults=True))
    return (
        f'<form action="/{goal}"><input type="hidden" name="place" value="{state}">'
        f'<input name="keywords" size="60" maxlength="{MAX_KEYWORDS}" autofocus> <button>Search</button></form>'
    )


def _bought(shop: Shop, index: int, place: Place, profile: Profile) -> str:
    if place.product is None:
        raise LookupError("nothing was bought")
    product = shop.store.product(place.product)
    parts = reward(shop.store.goal(index), product, place.chosen, profile).model_dump()
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(str(value))}</td></tr>" for name, value in parts.items())
    return f"<h2>You bought {escape(product.title)}</h2><table>{rows}</table>"


def _document(index: int, goals: int, body: str) -> str:
    others = [(index - 1, "goal before"), (index, "start again"), (index + 1, "next goal")]
    links = " | ".join(f'<a href="/{other}">{text}</a>' for other, text in others if 0 <= other < goals)
    head = f'<meta charset="utf-8"><title>WebShop, goal {index}</title><style>{_STYLE}</style>'
    return (
        f'<!DOCTYPE html><html lang="en"><head>{head}</head><body><nav>Goal {index}: {links}</nav>{body}</body></html>'
    )
