"""The report of a run: as a page, or as the one file that `proctor report --html` writes."""

import re

from starlette.requests import Request
from starlette.responses import Response

from eval_client.report.html.page import report_page
from eval_client.view.rendering import link
from eval_client.view.viewer import Viewer


def report_file(viewer: Viewer, request: Request) -> Response:
    """The report as one page; with `download`, as a file. Raises StoreError, SQLAlchemyError.

    The page takes its style from an address, since the viewer's policy allows no style in a page.
    """
    store = viewer.open(request)
    if request.query_params.get("download"):
        text = viewer.kept.get(("report file", store.run), lambda: report_page(store))
        name = re.sub(r"[^A-Za-z0-9._-]", "_", store.run)
        headers = {"Content-Disposition": f'attachment; filename="{name}.html"'}
    else:
        style = viewer.assets["report.css"].address
        text = viewer.kept.get(("report", store.run), lambda: report_page(store, style=style, back=_back(store.run)))
        headers = {}
    return Response(text.encode("utf-8", "backslashreplace"), headers=headers, media_type="text/html")


def _back(run: str) -> list[tuple[str, str]]:
    return [("Overview", link("runs", run)), ("This report as one file", link("runs", run, "report.html", download=1))]
