"""Pure: what a server passes on of an endpoint's failure, and how its client reads that, so that both fail alike.

A reply passes as it came. Where none came, an error object with a code of ours says which way.
"""

import re

from pydantic_core import to_json

from proctor.http.client import HttpReply
from proctor.llm.outage import Failed
from proctor.llm.outcome import ErrorReply
from proctor.observability.redaction import hidden, redacted

BEHIND = "x-proctor-behind"
"""Header of what is passed on: which endpoint it comes from, and whose key it had."""
BEHIND_CHARS = 300
NEEDS_METADATA = "metadata_needed"
"""Our own code of the error reply for a request without the metadata that a built-in agent needs."""
_PASSED = re.compile(
    r"content-type|x-proctor-behind|(?:llm_provider-)?(?:retry-after(?:-ms)?|x-ratelimit-\S+|x-should-retry)", re.I
)
"""The headers that pass."""
_WITHOUT_BODY = frozenset({204, 205, 304})


_CODES = {
    "behind_unreachable": (503, (False, False, False)),
    "behind_deadline": (504, (True, True, True)),
    "behind_broke_off": (502, (True, False, False)),
}
"""code -> status and way of a request that got no reply: whether it was sent, judged and late, as `Failed` has it"""


def passed_on(failed: Failed, origin: str) -> HttpReply:
    """The reply for the client of a request that failed at the endpoint `origin`; secrets in it are hidden."""
    reply, headers = failed.reply, {BEHIND: origin}
    if reply is None:
        way = failed.sent, failed.judged, failed.late
        status, code = next(((status, code) for code, (status, one) in _CODES.items() if one == way))
        error = {"message": failed.cause, "type": "server_error", "param": None, "code": code}
        body = to_json({"error": error})
    else:
        headers |= {name: value for name, value in reply.headers.items() if _PASSED.fullmatch(name)}
        status = min(reply.status, 599)
        body = b"" if status in _WITHOUT_BODY else hidden(reply.body.decode("utf-8", "replace")).encode()
    ascii_only = {name: value.encode("ascii", "backslashreplace").decode() for name, value in headers.items()}
    return HttpReply(status, ascii_only, body)


def origin_of(reply: HttpReply) -> str:
    """The endpoint behind a server that passed this on, to be shown; empty where it is the server's own reply."""
    return redacted(reply.headers.get(BEHIND, ""))[:BEHIND_CHARS]


def way_of(reply: HttpReply, error: ErrorReply) -> tuple[bool, bool, bool]:
    """Whether the request of an error reply was sent, judged and late."""
    codes = error.code.split() if BEHIND in reply.headers else []
    return next((way for code, (_, way) in _CODES.items() if code in codes), (True, True, False))
