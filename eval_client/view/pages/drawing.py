"""A trial as its world shows it: the page, and the style and the script that the world gives with it."""

import logging

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from eval_client.report.task_environment import environment_of
from eval_client.store.store import Store
from eval_client.store.trials.trajectory import Trajectory
from eval_client.view.pages.trial import found_trial
from eval_client.view.rendering import MEDIA_TYPES, link
from eval_client.view.runs import NotFound
from eval_client.view.viewer import Viewer
from proctor.types import Drawing

log = logging.getLogger(__name__)


def drawing_page(viewer: Viewer, request: Request) -> Response:
    """The drawing of a trial. Raises StoreError; NotFound, with what to do, if it has none."""
    store = viewer.open(request)
    trial = found_trial(store, request.path_params["trial"], None)
    title, drawn = _drawn(viewer, store, trial)
    return viewer.page(
        "drawing.html",
        f"{title}: {trial.agent} × {trial.task} × {trial.sample}",
        run=viewer.head(store),
        place="drawing",
        trial=trial,
        name=title,
        body=Markup(drawn.body),  # the world escapes it, and the policy runs no script in it
    )


def drawing_style(viewer: Viewer, request: Request) -> Response:
    """The style of a drawing. Raises StoreError."""
    return _part(viewer, request, "style", ".css")


def drawing_script(viewer: Viewer, request: Request) -> Response:
    """The script of a drawing. Raises StoreError."""
    return _part(viewer, request, "script", ".js")


def _part(viewer: Viewer, request: Request, name: str, ending: str) -> Response:
    store = viewer.open(request)
    _, drawn = _drawn(viewer, store, found_trial(store, request.path_params["trial"], None))
    return Response(str(getattr(drawn, name)), media_type=MEDIA_TYPES[ending])


def _drawn(viewer: Viewer, store: Store, trial: Trajectory) -> tuple[str, Drawing]:
    """The title and the drawing of a trial. Whatever the world's code raises costs the drawing, not the viewer."""
    environment = environment_of(store.manifest(), trial.task)
    title = environment.drawing_title if environment is not None else None
    if environment is None or title is None or trial.finish is None:
        raise NotFound(f"trial {trial.trial} has no drawing: its world makes none, or it is not over yet")
    finish, draw = trial.finish, environment.draw

    def turn_address(turn: int) -> str:
        return f"{link('runs', trial.run, 'trials', trial.trial, turn=turn)}#turn-{turn}"

    try:
        drawn = viewer.kept.get(("drawing", trial.run, trial.trial), lambda: draw(finish, turn_address), finish)
    except ValueError as error:
        raise NotFound(f"trial {trial.trial}: {error}") from error
    except Exception as error:
        log.warning("%s.draw failed", type(environment).__name__, exc_info=True)
        raise NotFound(f"trial {trial.trial} can't be drawn; the viewer's log says why") from error
    return title, drawn
