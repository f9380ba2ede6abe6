"""What a run under way does now: pairs and what they wait for, what is in use, what pauses, when it was last heard."""

from collections.abc import Iterator
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from eval_client.core.run_view import PairView, RunView, clock
from eval_client.store.store import Store
from eval_client.view.live import LiveRun
from eval_client.view.viewer import Viewer

MAX_PAIRS = 60
"""Pairs in the table; the others are counted."""


class LivePanel(NamedTuple):
    """The part of an overview that shows a run under way."""

    heard: str | None
    """When the run was last heard of, where that is long ago."""
    left: str
    running: int
    view: RunView
    use: list[tuple[str, int, int, bool]]
    """Of each capacity limit, such as `agent gpt`: its name, how much is in use and allowed, whether it is full."""
    warnings: list[str]
    pairs: list[PairView]
    """Those with trials to play, as many as are shown."""
    more: int
    """How many others there are."""


def live_page(viewer: Viewer, request: Request) -> Response:
    """The live panel of a run, which an open page fetches again."""
    store = viewer.open(request)
    return viewer.page("live.html", store.run, live=live_panel(viewer, store))


def live_panel(viewer: Viewer, store: Store) -> LivePanel | None:
    """The panel of a run; None unless it is under way."""
    live = viewer.live.look(store)
    return None if live.view is None else _panel(live, live.view)


def _panel(live: LiveRun, view: RunView) -> LivePanel:
    pairs = [pair for pair in view.pairs if pair.done < pair.planned]
    return LivePanel(
        heard=f"last heard {live.heard_s:.0f} s ago" if live.silent else None,
        left=clock(view.left_s),
        running=sum(pair.running for pair in view.pairs),
        view=view,
        use=[(name, used, capacity, used >= capacity) for name, (used, capacity) in view.use.items()],
        warnings=list(_warnings(view)),
        pairs=pairs[:MAX_PAIRS],
        more=max(0, len(pairs) - MAX_PAIRS),
    )


def _warnings(view: RunView) -> Iterator[str]:
    for name, left in sorted(view.cooling.items()):
        yield f"endpoint {name} pauses for another {left:.0f} s after a 429"
    yield from view.troubles
    yield from view.shared
