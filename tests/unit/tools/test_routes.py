"""Tables of routes for the HTTP reference."""

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route, Router

from tools.docs.http_api import route_table


async def named(request: Request) -> Response:
    """What it does.

    And how. Raises ValueError.
    """
    return Response(request.url.path)


async def nameless(request: Request) -> Response:
    return Response(request.url.path)


def test_mounted_routes_have_their_whole_path_and_the_first_paragraph_of_their_docstring() -> None:
    mounted = Mount("/part", Router([Route("/{name}", named, methods=["POST"])]))
    assert route_table([Route("/", named), mounted]).splitlines()[2:] == [
        "| GET | `/` | What it does. |",
        "| POST | `/part/{name}` | What it does. |",
    ]


def test_a_handler_without_a_docstring_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"nameless of tests.unit.tools.test_routes: write a docstring"):
        route_table([Route("/", nameless)])
