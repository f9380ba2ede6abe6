"""What a call comes to by its reply: the table of real bodies, full contexts, and any body at all."""

import json
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from pydantic import ValidationError

from proctor.llm.dialects import PATHS, dialect_of
from proctor.llm.outcome import ErrorReply, Outcome, Seen, outcome, read_error


@pytest.mark.parametrize(
    ("body", "read"),
    [
        (b"", ErrorReply("", "")),
        (b"busy", ErrorReply("", "busy")),
        (b"null", ErrorReply("", "")),
        (b"[]", ErrorReply("", "")),
        (b"\xff\xfe", ErrorReply("", "��")),
        (b'{"error": null, "message": "m"}', ErrorReply("", "m")),
        (b'{"detail": "Not Found"}', ErrorReply("", "Not Found")),
        (b'{"error": {"code": 400, "type": null, "message": ["x"]}}', ErrorReply("400", "x")),
    ],
)
def test_any_error_body_can_be_read(body: bytes, read: ErrorReply) -> None:
    assert read_error(body) == read


def test_what_a_function_raised_is_its_own_whatever_it_quotes() -> None:
    error = {"code": "function_raised", "message": "Your input exceeds the context window of this model."}
    assert outcome(400, {}, json.dumps({"error": error}).encode()) is Outcome.REJECTED


def published(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in files("proctor.llm").joinpath(name).read_text(encoding="utf-8").splitlines()]


def told(reply: dict[str, Any]) -> Outcome:
    """What a published reply comes to; headers reach the function in lower case."""
    body, seen = reply["body"], reply.get("seen", {"answered": True})
    raw = body if isinstance(body, str) else json.dumps(body)
    headers = {name.lower(): value for name, value in reply.get("headers", {}).items()}
    return outcome(reply["status"], headers, raw.encode(), Seen(**seen))


def streamed(reply: dict[str, Any]) -> bool:
    """Whether a reply is a stream of events, which is put together before anything is made of it."""
    return isinstance(reply["body"], str) and reply["body"].startswith(("data:", ":"))


def test_every_published_reply_comes_to_what_it_is() -> None:
    replies = [each for each in published("published_replies.jsonl") if not streamed(each)]
    wrong = [
        (reply["provider"], reply["body"], told(reply).value) for reply in replies if told(reply) != reply["outcome"]
    ]
    assert wrong == []


def test_every_published_answer_is_read_in_its_dialect() -> None:
    answers = [
        each for each in published("published_replies.jsonl") if not streamed(each) and each["outcome"] == "answer"
    ]
    assert {each.get("dialect", "chat") for each in answers} == set(PATHS)
    for each in answers:
        reply = dialect_of(each.get("dialect", "chat")).read(json.dumps(each["body"]).encode())
        assert reply.stop != "content_filter", each["source"]
        assert reply.usage is None or reply.usage.prompt_tokens >= 0


def test_what_is_an_answer_at_a_glance_is_one_by_the_table() -> None:
    """Of every published completion, with its failures planted into it one by one, in each way that JSON is written."""
    ends = ["stop", "length", "content_filter", "error", "model_context_window_exceeded", None]
    planted: list[dict[str, Any]] = [{"error": {"message": "x"}}, {"error": "x"}, {"error": None}, {"refusal": "no"}]
    planted += [{"status": "failed"}, {"status": "completed"}, {"incomplete_details": {"reason": "content_filter"}}, {}]
    counts = Counter[bool]()
    for published_reply in published("published_replies.jsonl"):
        if published_reply["status"] != 200 or not isinstance(published_reply["body"], dict):
            continue
        for more in planted:
            for body in bodies(published_reply["body"], more, ends):
                for raw in (json.dumps(body), json.dumps(body, indent=1), json.dumps(body, separators=(",", ":"))):
                    try:
                        read = dialect_of(published_reply.get("dialect", "chat")).read(raw.encode())
                    except ValidationError:
                        continue
                    plain = read.is_plain
                    counts[plain] += 1
                    assert not plain or outcome(200, {}, raw.encode()) is Outcome.ANSWER, raw
    assert min(counts[True], counts[False]) > 500


def bodies(body: dict[str, Any], more: dict[str, Any], ends: list[str | None]) -> Iterator[dict[str, Any]]:
    """A body with more in it: at its top, in its first choice, or in that one's message, which ends in each way."""
    yield {**body, **more}
    choices = body.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        for end in ends:
            choice = {**choices[0], "finish_reason": end}
            yield {**body, "choices": [{**choice, **more}]}
            if isinstance(choice.get("message"), dict):
                yield {**body, "choices": [{**choice, "message": {**choice["message"], **more}}]}


def test_the_published_replies_cover_outcomes_providers_and_misleading_statuses() -> None:
    replies = published("published_replies.jsonl")
    seven = [each for each in Outcome if each not in (Outcome.NO_TOOLS, Outcome.MAX_TOKENS_FIELD)]
    assert min(Counter(reply["outcome"] for reply in replies)[each] for each in seven) >= 8
    assert sum(count >= 4 for count in Counter(reply["provider"] for reply in replies).values()) >= 20
    by_status = {
        reply["status"]: Counter(each["outcome"] for each in replies if each["status"] == reply["status"])
        for reply in replies
    }
    misleading = sum(count.total() - max(count.values()) for count in by_status.values())
    assert misleading >= 40, "replies that are not what most of their status are"


def test_every_wording_of_a_full_context_is_known_and_no_control_is() -> None:
    wordings = published("context_wordings.jsonl")
    assert [each for each in wordings if (told(each) is Outcome.CONTEXT_LIMIT) != each["context_limit"]] == []
    kinds = Counter(each["context_limit"] for each in wordings)
    assert (kinds[True] >= 40, kinds[False] >= 25) == (True, True)
