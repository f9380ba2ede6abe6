"""The addresses of the viewer's pages, for tests that hold on each of them: a new page is one line here."""

from typing import NamedTuple
from urllib.parse import quote, quote_plus

PAGES = (
    "/",
    "/runs/{run}",
    "/runs/{run}/trials",
    "/runs/{run}/trials?sort=-score&size=1",
    "/runs/{run}/trials/0",
    "/runs/{run}/trials/1",
    "/runs/{run}/trials/0?earlier=3",
    "/runs/{run}/sample?task={task}&sample={sample}",
    "/runs/{run}/tables",
    "/runs/{run}/side?a=0",
)
"""Pages that show texts of a run. `{run}`, `{task}` and `{sample}` are its own."""
QUIET = (
    "/runs/{run}/trials?agent={text}&sample={text}&cause={text}",
    "/runs/{run}/trials?text={text}",
    "/compare",
)
"""Pages that show little of a run; `{text}` is what somebody typed."""
PARTS = ("/runs/{run}/live", "/runs/{run}/report.html", "/api/v1/plots/matrix.svg?run={run}")
"""Parts of pages, and the overview as a file."""
ABSENT = (
    "/runs/{run}/trials/0/drawing",
    "/runs/{run}/trials/0/drawing.css",
    "/runs/{run}/trials/0/drawing.js",
)
"""Pages that only trials of worlds that draw theirs have."""
ERRORS = (
    *ABSENT,
    "/runs/{text}",
    "/runs/{run}/{text}",
    "/runs/{run}/trials?sort={text}",
    "/runs/{run}/trials/{text}",
    "/runs/{run}/trials/0?turn={text}",
    "/runs/{run}/sample?task={text}&sample={text}",
    "/?after={text}",
    "/runs/{run}/side?a={text}",
    "/compare?a={run}:{text}",
    "/compare?a={run}&b={run}",
)
"""Pages that say what is wrong with their address."""
TEXTS = (
    "/api/v1/runs",
    "/api/v1/runs/{run}",
    "/api/v1/runs/{run}/live",
    "/api/v1/runs/{run}/trials",
    "/api/v1/runs/{run}/trials/0?size=2",
    "/api/v1/runs/{text}",
    "/api/v1/runs/{run}/trials?sort={text}",
    "/api/v1/runs/{run}/trials?text={text}",
    "/api/v1/compare?a={run}:{text}",
    "/healthz",
)
"""Answers that are no pages, which a browser shows as text."""
FILES = (
    "/runs/{run}/trials/0/raw?turn=1&part=answer",
    "/runs/{run}/trials/1/raw?part=evidence",
    "/runs/{run}/trials.csv",
    "/runs/{run}/trials.jsonl",
)
"""What a browser saves as a file."""


class Named(NamedTuple):
    """The names that fill an address."""

    run: str
    task: str
    sample: str
    text: str = "nothing"

    def fill(self, address: str) -> str:
        """The address with these names, quoted."""
        path, mark, query = address.partition("?")
        quoted = {name: quote(value, safe="") for name, value in self._asdict().items()}
        written = {name: quote_plus(value) for name, value in self._asdict().items()}
        return path.format(**quoted) + mark + query.format(**written)
