"""Protocol `tools`: the function, how a session reads calls, and what the environment refuses."""

from collections.abc import Mapping

from pydantic import JsonValue

from environments.mind2web.functions import TOOLSET
from environments.mind2web.reply import StepReply, read, written
from proctor.tools import UnreadableCall
from proctor.tools.readers import CallReader
from tests.tool_calls import calls

(CHOOSE,) = TOOLSET.functions


def called(arguments: str) -> tuple[StepReply, Mapping[str, JsonValue] | None, str] | None:
    """What a call is read as, the arguments that this is written as, and its text; None if unreadable; for tables."""
    (reply,) = CallReader(TOOLSET, strict=True).read(calls(("choose", arguments))).actions
    return None if isinstance(reply, UnreadableCall) else (reply, CHOOSE.write(reply), written(reply))


def test_a_reply_without_an_answer_is_no_call() -> None:
    assert CHOOSE.write(read("What a page.")) is None
