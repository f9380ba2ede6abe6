# ruff: noqa: E501 (error bodies are whole lines)
"""What a call comes to by its reply: the table of real bodies, full contexts, and any body at all."""

import json
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from pydantic import ValidationError

from proctor.llm.dialects import DIALECTS
from proctor.llm.outcome import ErrorReply, Outcome, Seen, outcome, read_error


def openai(message: str, code: object = None, type: str | None = "invalid_request_error") -> object:
    return {"error": {"message": message, "type": type, "param": "messages", "code": code}}


TOO_LONG = [
    (400, openai("This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens. "
                 "Please reduce the length of the messages.", "context_length_exceeded")),
    (400, openai("Your input exceeds the context window of this model. Please adjust your input and try again.")),
    (400, openai("This model's maximum context length is 4097 tokens, however you requested 4927 tokens (3927 in your "
                 "prompt; 1000 for the completion). Please reduce your prompt.")),
    (400, openai("Invalid 'messages[3].content': string too long. Expected a string with maximum length 1048576, but got "
                 "a string with length 1100000 instead.", "string_above_max_length")),
    (400, openai("Please reduce the length of the messages or completion.", "context_length_exceeded")),
    (400, {"object": "error", "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 "
           "tokens (4500 in the messages, 500 in the completion). Please reduce the length of the messages or completion.",
           "type": "BadRequestError", "param": None, "code": 400}),
    (400, openai("'max_tokens' or 'max_completion_tokens' is too large: 500. This model's maximum context length is 4096 "
                 "tokens and your request has 3900 input tokens (500 > 4096 - 3900).", 400, "BadRequestError")),
    (400, {"object": "error", "message": "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
           "type": "BadRequestError", "code": 400}),
    (400, {"object": "error", "message": "Requested token count exceeds the model's maximum context length of 4096 tokens. "
           "You requested a total of 6000 tokens."}),
    (400, {"error": {"code": 400, "message": "the request exceeds the available context size, try increasing it",
                     "type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096}}),
    (500, {"error": {"code": 500, "message": "the request exceeds the available context size. try increasing the context "
                     "size or enable context shift", "type": "server_error"}}),
    (400, {"error": {"code": 400, "message": "request (5000 tokens) exceeds the available context size (4096 tokens)",
                     "type": "invalid_request_error"}}),
    (400, {"error": {"message": "the input length exceeds the context length", "type": "invalid_request_error"}}),
    (500, {"error": "prompt too long; exceeded max context length by 17 tokens"}),
    (400, {"error": "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with "
           "context length of only 4096 tokens, which is not enough."}),
    (413, {"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}),
    (400, {"type": "error", "error": {"type": "invalid_request_error",
                                      "message": "prompt is too long: 201234 tokens > 200000 maximum"}}),
    (400, openai("input length and `max_tokens` exceed context limit: 198000 + 4096 > 200000, decrease input length or "
                 "`max_tokens` and try again")),
    (400, {"message": "Input is too long for requested model."}),
    (400, [{"error": {"code": 400, "message": "The input token count (1200000) exceeds the maximum number of tokens allowed "
                      "(1048576).", "status": "INVALID_ARGUMENT"}}]),
    (400, {"object": "error", "message": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 "
           "maximum context length", "type": "invalid_request_error", "code": "3051"}),
    (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` "
           "tokens and 0 `max_new_tokens`", "error_type": "validation"}),
    (400, {"code": "Client specified an invalid argument", "error": "This model's maximum prompt length is 131072 but the "
           "request contains 140000 tokens."}),
    (400, openai("litellm.ContextWindowExceededError: litellm.BadRequestError: SomeProviderException - the text is too much. "
                 "Received Model Group=some-model\nAvailable Model Group Fallbacks=None", "400", None)),
]  # fmt: skip

NOT_TOO_LONG = [
    (429, openai("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 31000. The input or output "
                 "tokens must be reduced in order to run successfully.", "rate_limit_exceeded", "tokens")),
    (400, openai("max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you "
                 "provided 100000.", "invalid_value")),
    (400, openai("'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is 4096 "
                 "tokens and your request has 10 input tokens (9000 > 4096 - 10).", 400, "BadRequestError")),
    (400, openai("This model's maximum context length is 4096 tokens. However, you requested 9010 tokens (10 in the messages, "
                 "9000 in the completion).", 400, "BadRequestError")),
    (400, openai("input length and `max_tokens` exceed context limit: 10 + 300000 > 200000, decrease input length or "
                 "`max_tokens` and try again")),
    (400, openai("litellm.ContextWindowExceededError: HostedVllmException - This model's maximum context length is 4096 "
                 "tokens. However, you requested 9010 tokens (10 in the messages, 9000 in the completion).", "400", None)),
    (400, openai("Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024.",
                 "string_above_max_length")),
    (400, openai("The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
                 "content_filter")),
    (400, openai("Invalid value for 'temperature': too large")),
    (401, openai("Incorrect API key provided.", "invalid_api_key")),
    (403, openai("You may not use models with a maximum context length is 4096 tokens")),
    (413, "<html><center><h1>413 Request Entity Too Large</h1></center><hr><center>nginx</center></html>"),
    (500, openai("The server had an error while processing your request.", None, "server_error")),
    (404, openai("The model `gpt-9` does not exist", "model_not_found")),
]  # fmt: skip


def classify(status: int, body: object) -> bool:
    raw = body if isinstance(body, str) else json.dumps(body)
    return outcome(status, {}, raw.encode()) is Outcome.CONTEXT_LIMIT


@pytest.mark.parametrize(("status", "body"), TOO_LONG)
def test_a_transcript_that_does_not_fit_is_recognised(status: int, body: object) -> None:
    assert classify(status, body)


@pytest.mark.parametrize(("status", "body"), NOT_TOO_LONG)
def test_a_near_miss_is_not_taken_for_one(status: int, body: object) -> None:
    assert not classify(status, body)


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
    assert {each.get("dialect", "chat") for each in answers} == set(DIALECTS)
    for each in answers:
        reply = DIALECTS[each.get("dialect", "chat")].read(json.dumps(each["body"]).encode())
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
                        read = DIALECTS[published_reply.get("dialect", "chat")].read(raw.encode())
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
