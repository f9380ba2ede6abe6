"""Pure: what a call to an endpoint comes to, by the status, headers and body of its reply.

Servers differ from the protocol that they claim: failures come with status 200, wrong keys with 400, full contexts
with 500. `SIGNS` has the words of each provider; `published_replies.jsonl` and `context_wordings.jsonl` beside it
have replies of real servers and what they are, in our words, with their sources; tests go through all of them.
"""

import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from pydantic import JsonValue
from pydantic_core import from_json

from proctor.llm.wire import joined_texts, objects, said_end, shallow, usage_of

FUNCTION_RAISED = "function_raised"
"""Our own code of the error reply for an agent that is a Python function and raised an exception."""
CONVERSATION_LOST = "conversation_lost"
"""Our own code of the error reply for a stateful agent that does not know the conversation of a later turn."""
TOOLS_FIX = "start the server with its tool parser, or play the task with `parameters: {protocol: text}`"
MAX_TOKENS_FIX = "write `max_tokens_field: max_completion_tokens` beside the model's `sampling`"


class Outcome(StrEnum):
    """What a call comes to."""

    ANSWER = "answer"
    CONTEXT_LIMIT = "context_limit"
    """The conversation does not fit the model's context: scored."""
    REFUSAL = "refusal"
    """The provider or the model declined this input."""
    TRANSIENT = "transient"
    """A failure that may be over the next time."""
    REJECTED = "rejected"
    """This request can't succeed; others of the agent may."""
    UNPAID = "unpaid"
    """The account has no credits left."""
    UNAUTHORIZED = "unauthorized"
    """A wrong key, model or URL: no request of the agent can succeed."""
    NO_TOOLS = "no_tools"
    """No request that offers tools can succeed."""
    MAX_TOKENS_FIELD = "max_tokens_field"
    """The limit of tokens must be sent under its newer name."""


class Seen(NamedTuple):
    """What is known of an agent before a call."""

    answered: bool = False
    """Whether a call of the agent was answered before."""
    context: int | None = None
    """The model's context length in tokens; None where it is unknown."""
    tools: bool = False
    """Whether the request offers tools, and none that did was answered yet."""


class Sign(NamedTuple):
    """Words in an error, its codes in front, in lower case and with `#` for numbers, and what they mean."""

    outcome: Outcome
    pattern: re.Pattern[str]
    statuses: frozenset[int] | None = None
    """The statuses that it holds for; None: all but those of keys and rates."""


_OUT_OF_QUESTION = frozenset({401, 402, 403, 429})
_STATUSES = {
    Outcome.REFUSAL: frozenset({200, 400, 403, 406, 422, 451, 500}),
    Outcome.UNPAID: frozenset({200, 400, 401, 402, 403, 412, 429, 500}),
    Outcome.UNAUTHORIZED: frozenset({400, 401, 403, 404, 422, 500}),
}


_TABLE = r"""
OpenAI     context_limit \bcontext_length_exceeded\b|\binput exceeds the context window of this model
OpenAI     context_limit \bstring_above_max_length\b.*messages|^.*invalid 'messages\[#\]\.content.*string too long
OpenAI     context_limit \bmaximum context length is # tokens
OpenAI     refusal       \bcontent_policy_violation\b|\bcontent_filter\b|\binvalid_prompt\b.*\b(usage polic|safety)
OpenAI     unpaid        \binsufficient_quota\b|\bbilling_hard_limit_reached\b|\bbilling_not_active\b
OpenAI     unpaid        exceeded your current quota(?!.*\bper (minute|day)\b)(?!.*generativelanguage)
OpenAI     unauthorized  \binvalid_api_key\b|\bincorrect api key\b|\bmodel_not_found\b|\binvalid_organization\b
Azure      refusal       \bresponsibleaipolicyviolation\b|azure openai's content management policy
Anthropic  context_limit \brequest_too_large\b|\bprompt is too long: # tokens
Anthropic  context_limit \binput length and `max_tokens` exceed context limit:
Anthropic  unpaid        \bcredit balance is too low\b|\bbilling_error\b|\breached your specified api usage limits\b
Anthropic  refusal       \bblocked by content filtering policy\b
Anthropic  unauthorized  \bauthentication_error\b|\binvalid x-api-key\b
Gemini     unauthorized  \bapi_key_invalid\b|\bapi key not valid\b|\bapi key expired\b
Bedrock    context_limit \b(?:prompt|input|context|conversation) is too (?:long|large)(?: for requested model|$|\.)
OpenRouter refusal       @200,400,403 \binput was flagged\b|\brequires moderation\b
OpenRouter refusal @403 ^(?!.*\b(?:account|organization|user|ip|key)\b[^.]{0,40}\bflagged).*\b(?:moderation|flagged)\b
OpenAI     refusal       @200,400 \b(?:content|input|prompt|request|response|output)\b[^.]{0,20}\bflagged for\b
OpenRouter unpaid        \binsufficient credits\b|\bmore credits\b|\bnever purchased credits\b|^\S* ?key limit exceeded
OpenRouter unauthorized  \bis not a valid model id\b
DeepSeek   refusal       \bcontent exists risk\b
DeepSeek   unauthorized  \bmodel not exist\b
Mistral    unauthorized  \binvalid_model\b|\binvalid model:
Moonshot   unpaid        \bexceeded_current_quota_error\b|\bsuspended due to insufficient balance\b|\brecharge\b
Moonshot   unpaid        \busage limit for this billing cycle\b
Moonshot   unauthorized  \binvalid_authentication_error\b
Moonshot   refusal       considered high risk
Z.ai       context_limit (?:^|\s)1261\b
Z.ai       refusal       (?:^|\s)1301\b
Z.ai       unpaid        (?:^|\s)(?:1113|1309)\b
Z.ai       unauthorized  @400,401 (?:^|\s)(?:1000|1001|1002|1003|1004|1211)\b
MiniMax    context_limit (?:^|\s)2013\b.*\b(?:context|token|length)
MiniMax    refusal       (?:^|\s)(?:1026|1027)\b|\b(?:in|out)put new_sensitive\b
MiniMax    unpaid        (?:^|\s)1008\b
MiniMax    unauthorized  @200,401 (?:^|\s)(?:1004|2049)\b
Qwen       context_limit \brange of input length should be \[
Qwen       refusal       \bdata_?inspection_?failed\b|inappropriate content
Qwen       unpaid        \barrearage\b|\bfreetieronly\b|allocationquota\b.*free
xAI        refusal       content violates usage guidelines|safety_check_type
xAI        unpaid        \bused all available credits\b|\bmonthly spending limit\b|doesn't have any credits
Groq       context_limit \breduce the length of the messages or completion
Together   context_limit `inputs` tokens \+ `max_new_tokens` must be <= #|`inputs` must have less than # tokens
vLLM       context_limit \bmaximum model length of #|\bmaximum input length of # tokens|\bmax_model_len\b
vLLM       context_limit \bmax_tokens\W+must be at least #, got -#
llama.cpp  context_limit \bexceed_context_size_error\b|\bexceeds the available context size
llama.cpp  context_limit \binput is too large to process
Ollama     unpaid        \brequires a subscription\b
LM-Studio  context_limit \bmodel is loaded with context length of only # tokens|\btokens to keep from the initial prompt
LiteLLM    context_limit \bcontextwindowexceedederror\b
LiteLLM    refusal       \bcontentpolicyviolationerror\b|\bviolated guardrail policy\b
LiteLLM    unpaid        \bbudget has been exceeded\b|\bexceededbudget\b|\bbudget_exceeded\b
LiteLLM    unauthorized  \bauthenticationerror\b|\bauthentication error\b|\bauth_error\b|\bno api key passed in\b
LiteLLM    unauthorized  \binvalid model name passed in\b|\bllm provider not provided\b|\btoken_not_found_in_db\b
LiteLLM    unauthorized  \bno_db_connection\b|\bno connected db\b
Cohere     context_limit \btokens in the prompt cannot exceed # - received #
Perplexity context_limit \btotal length of all messages is too long
DS4        context_limit \bprompt has # tokens, but the configured context size is # tokens
GitHub     context_limit \btokens_limit_reached\b
Doubao     refusal       \w*sensitive_?content_?detected\b
new-api    refusal       \bsensitive[ _]words?\b
new-api    unpaid        \bpre_consume_token_quota_failed\b|\binsufficient_(?:user_quota|credits)\b
Google     unpaid        \bbilling_disabled\b|\brequires billing to be enabled\b
any        context_limit 上下文.{0,16}(?:超|过长)|超.{0,16}上下文|(?:输入|提示|prompt).{0,16}(?:超长|过长)
any        refusal       \bmoderation_blocked\b|\brejected as a result of our safety system\b
any        unpaid        \b(?:balance|credits?|funds) (?:is |are )?(?:insufficient|not enough|exhausted|depleted)\b
any        unpaid        \binsufficient (?:account )?(?:balance|credits?|funds)\b|\boverdue\b
any        unpaid        \bno credits\b|\bcreditserror\b|\bmonthly (?:usage|spend\w*) limit\b
any        unauthorized  \b(?:unknown|no such) model\b|\bmissing authentication header\b
any        unauthorized  \b(?:invalid|incorrect|missing|malformed|wrong|no valid|unauthorized) api[ _-]?key\b
any        unauthorized  \b(?:invalid|incorrect|missing|malformed|wrong|no valid|unauthorized) access token\b
any        unauthorized  \bapi[ _-]?key (?:is |was )?(?:invalid|incorrect|missing|expired|not valid|required)\b
any       unauthorized \b(?:model|deployment)\b[^.]{0,80}\b(?:does not exist|not (?:found|supported)|is not available)\b
"""
"""How providers say what a call came to, beside the status: provider, outcome and words, after `@` the statuses that
they hold for where those are not the outcome's own. Spellings that servers share stand once."""


def _sign(line: str) -> Sign:
    _, outcome, words = line.split(None, 2)
    given, words = words[1:].split(" ", 1) if words.startswith("@") else ("", words)
    statuses = frozenset(map(int, given.split(","))) if given else _STATUSES.get(Outcome(outcome))
    return Sign(Outcome(outcome), re.compile(words), statuses)


SIGNS = tuple(map(_sign, _TABLE.strip().splitlines()))
_CONTEXT_SUBJECT = re.compile(
    r"\b(?:prompts?|inputs?|messages|requests?|tokens?|contexts?|conversation|sequence|text|history)\b"
)
_CONTEXT_VERB = re.compile(
    r"\b(?:exceed(?:s|ed|ing)?|(?:longer|greater|larger|more) than|too (?:long|large|big|many)|maximum|over the|beyond|"
    r"overflow\w*|out ?of|above|(?:not|n't) fit|must (?:be (?:less|<=|<|at most)|have less)|at most|up to|surpass\w*|"
    r"only supports?|limited to|shorter than|less than or equal)\b|>=?|<=?"
)
_CONTEXT_OBJECT = re.compile(
    r"\b(?:contexts?(?:[ _-]?(?:length|window|size|limit))?|model(?:'s)?|length|window|limit|n.ctx|num.ctx|"
    r"max(?:imum)?|max[ _-]?(?:model|seq|input|total|tokens|prompt|context|position)\w*|(?:input|prompt) tokens)\b"
)
_TOKENS = re.compile(r"\btokens?\b|\bcontext\b|\bprompt\b|\b(?:input|sequence|model)\W+(?:length|window|is too)|n.ctx")
_NO_CONTEXT = re.compile(
    r"\bper (?:minute|day|hour|second|month|request)\b|\btp[md]\b|\brpm\b|\brate[ _-]?limit|\bquota\b|"
    r"\b(?:dai|week|month)ly\b|\baccounts?\b|\bsubscription\b|\byour plan\b|"
    r"\bcredits?\b|\bbalance\b|\bbudget\b|\bbatch(?:es)?\b|\bimages?\b|\bfiles?\b|\baudio\b|\bvideo\b|\bpixels?\b|"
    r"\bstop\b|\bbytes\b|\b[kmg]i?b\b|\btimed? ?out\b|\btimeout\b|\bdimensions?\b|\btools?\b|\bfunctions?\b|\bschema\b|"
    r"\bper turn\b|\bnumber of (?:messages|choices|requests|turns|documents|candidates)\b|"
    r"\btoo many (?:requests|messages|turns)\b|"
    r"\b(?:name|user|metadata|label|key|id|description|header|url|uri)s?\b[^.]{0,40}\b(?:length|too long|longer)\b|"
    r"(?<!plus )(?<!and )(?<!\+ )\bmax(?:imum)?_?(?:completion_|output_|new_|out)?_?tokens\b`?'?\"?\W*"
    r"(?:\(#[^)]*\)\W*)?(?:is too|cannot|can't|must|should|exceeds?|"
    r"value|parameter|is greater|is larger|too large|may not)|"
    r"\bthinking\b|\bbudget_tokens\b|\bmaxoutputtokens\b|"
    r"(?<!and )\b(?:max|maximum) (?:output|completion|number of (?:output|completion))|\blogprobs\b|"
    r"\boutput tokens\b.{0,20}\b(?:limit|maximum)|\bconcurren|\bnumber of output tokens\b|\bqueue\b|"
    r"\bmemory\b|\bmaximum tokens you requested\b|\btemperature\b|\btop_[kp]\b|\brequest body\b|\bentity\b"
)
"""What is no context limit, although it speaks of lengths and limits."""
_SENTENCE = re.compile(r"[.;\n](?:\s|$)")
_RESERVES = (
    re.compile(r"\((?P<reserve>\d+) > (?P<limit>\d+) - \d+\)"),
    re.compile(r"length is (?P<limit>\d+) tokens.*\b(?P<reserve>\d+) in the completion"),
    re.compile(r"context limit: \d+ \+ (?P<reserve>\d+) > (?P<limit>\d+)"),
    re.compile(r"max_tokens \((?P<reserve>\d+)\).*context length \((?P<limit>\d+)\)"),
)
"""How servers report the tokens reserved for the answer, and the model's context length."""
_BROAD = frozenset({400, 422, 501})
_NARROW = frozenset({404, 405, 500})
"""Statuses with other causes too: a missing function in a cloud, a traceback. llama.cpp answers 500, OpenRouter 404."""
_TOOLS = re.compile(r"\btools?(?:\b|_not_)|\btool_choice\b|\bfunctions?\b")
_UNSUPPORTED = re.compile(
    r"(?:\b|_)not[ _]support|n't support|\bunsupported\b|"
    r"\bnot (been |currently )?(enabled|available|permitted|allowed)\b|"
    r"\bunrecognized\b|\brequires? --|\bendpoints found that support\b"
)
_HISTORY = re.compile(
    r"\btool[ _]calls?\b|\btool_call_id|\bfunction arguments\b|\bfunction (call|response)s?\b|"
    r"\bcall a function\b|\btool_use_failed\b|thought_signature|"
    r"\broles?\b|\b(assistant|system|tool|user) messages?\b|\bmessages?(\[|\.# | with | at | must )"
)
"""What only a history has, or a model's own reply: other requests of the configuration may succeed."""
_MAX_TOKENS = re.compile(r"\bmax_tokens\b.*\buse\b.*\bmax_completion_tokens\b", re.DOTALL)

_ENDS = {
    Outcome.CONTEXT_LIMIT: re.compile(r"context|model_length|error_limit"),
    Outcome.REFUSAL: re.compile(
        r"content_?filter|safety|recitation|refus|prohibited_content|blocklist|spii|guardrail|sensitive|moderation|toxic"
    ),
    Outcome.TRANSIENT: re.compile(
        r"error|abort|cancel|fail|time_?out|timed_out|overload|unavailable|insufficient_system|malformed_response"
    ),
}
"""What finish and stop reasons say, the first that fits: Mistral says model_length, Cohere error_limit."""
_FAILED = (
    (re.compile(r"policy"), Outcome.REFUSAL),
    (re.compile(r"^(?:invalid|unsupported|empty|failed_to_download|data_residency)_|^image_"), Outcome.REJECTED),
)
"""What the code of a failed response says of its request; all others may be over the next time."""
_THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
MODERATED = "reasons"
"""Our code for reasons that are listed beside an error: OpenRouter's of a moderation."""
_ERROR_STATUS = re.compile(r"[45]\d\d")
THROTTLED = frozenset({429, 529})
"""Too many requests."""
_RETRYABLE = frozenset({408, 409, 425})


class ErrorReply(NamedTuple):
    """An error reply: its codes and types joined by blanks, and its message; empty where there is none."""

    code: str
    message: str

    @property
    def is_ours(self) -> bool:
        """Whether an agent server says this of an agent of its own; the message may quote another endpoint's."""
        return not {FUNCTION_RAISED, CONVERSATION_LOST}.isdisjoint(self.code.split())

    @property
    def words(self) -> str:
        """Codes and message in lower case, with `#` for the numbers of the message."""
        return f"{self.code} {re.sub(r'[0-9]+(?:[,_][0-9]+)*(?:[.][0-9]+)?', '#', self.message)}".strip().lower()


def read_error(body: bytes) -> ErrorReply:
    """The error in a body of any server; one that is not JSON is the message."""
    data = _parsed(body)
    if data is None:
        return ErrorReply("", "" if body == b"null" else body.decode("utf-8", "replace"))
    codes, texts = list[str](), list[str]()
    for name, text in _told(data):
        (codes if name in _CODES else texts).append(text)
    return ErrorReply(" ".join(dict.fromkeys(codes)), ": ".join(dict.fromkeys(texts)))


def _parsed(body: bytes) -> JsonValue:
    """The JSON of a body; None where it is none. Half characters, which models do produce, are read too."""
    try:
        value: JsonValue = from_json(body)
    except ValueError:
        try:
            value = json.loads(shallow(body))
        except ValueError:
            return None
    return value


_CODES = frozenset(
    {"code", "type", "status", "reason", "status_code", "__type", "error_code", "innererror", "error_type"}
)
_TEXTS = frozenset({"message", "detail", "msg", "raw", "status_msg", "reasons", "error_message", "title", "loc", ""})
_NESTED = frozenset({"error", "errors", "detail", "details", "metadata", "innererror", "base_resp", "provider_error"})


def _told(data: JsonValue, name: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """The codes and texts of an error, without the values of an invalid request, which are the conversation's."""
    if isinstance(data, dict) and depth < 8:
        for key, value in data.items():
            if key == "reasons" and value:
                yield "code", MODERATED
            if key in _NESTED or key in _CODES or key in _TEXTS:
                yield from _told(value, "" if isinstance(value, str) and key in _NESTED else key, depth + 1)
    elif isinstance(data, list):
        if name == "loc":
            yield "", ".".join(map(str, data))
        elif depth < 8:
            for value in data[:20]:
                yield from _told(value, "" if name in _NESTED else name, depth + 1)
    elif data is not None and not isinstance(data, bool | dict):
        yield name, str(data)


def outcome(status: int, headers: Mapping[str, str], body: bytes, seen: Seen = Seen()) -> Outcome:
    """What a call comes to whose reply this is, in any dialect."""
    if not 200 <= status < 300:
        return _of_error(status, headers, read_error(body), seen)
    reply = _parsed(body)
    if not isinstance(reply, dict):
        return Outcome.TRANSIENT
    found = _of_reply(reply)
    if found not in (Outcome.TRANSIENT, Outcome.REJECTED):
        return found
    error = read_error(body)
    sign = next(_signs(200, error), None)
    if sign is None and (said := said_status(status, error)) != status:
        return _of_error(said, headers, error, seen)
    found = found if sign is None else sign.outcome
    return Outcome.TRANSIENT if found is Outcome.UNAUTHORIZED and seen.answered else found


def said_status(status: int, error: ErrorReply) -> int:
    """The status of a reply; of an error that comes with 200, the one that its code is, where it is one."""
    codes = [code for code in error.code.split() if 200 <= status < 300 and _ERROR_STATUS.fullmatch(code)]
    return int(codes[0]) if codes else status


def _of_error(status: int, headers: Mapping[str, str], error: ErrorReply, seen: Seen) -> Outcome:
    if error.is_ours:
        return Outcome.REJECTED
    if status in (400, 413, 422, 500) and _fills_context(status, error, seen):
        return Outcome.CONTEXT_LIMIT
    if seen.tools and refuses_tools(status, error):
        return Outcome.NO_TOOLS
    if refuses_max_tokens(status, error):
        return Outcome.MAX_TOKENS_FIELD
    told = [sign.outcome for sign in _signs(status, error)]
    if status == 403 and MODERATED in error.code.split():
        return Outcome.REFUSAL
    found = next((each for each in (Outcome.REFUSAL, Outcome.UNPAID, Outcome.UNAUTHORIZED) if each in told), None)
    if found is None and status == 402:
        return Outcome.UNPAID
    if found is Outcome.UNAUTHORIZED or (found is None and status in (401, 403, 404)):
        return Outcome.TRANSIENT if seen.answered else Outcome.UNAUTHORIZED
    if found is not None:
        return found
    passes = status >= 500 or status in THROTTLED | _RETRYABLE or headers.get("x-should-retry") == "true"
    return Outcome.TRANSIENT if passes else Outcome.REJECTED


def _signs(status: int, error: ErrorReply) -> Iterator[Sign]:
    """The signs that an error shows."""
    words = error.words
    for sign in SIGNS:
        holds = status in sign.statuses if sign.statuses else status not in _OUT_OF_QUESTION
        if holds and sign.pattern.search(words):
            yield sign


def _fills_context(status: int, error: ErrorReply, seen: Seen) -> bool:
    """Whether an error says that the conversation exceeds the model's context, by known words or by its grammar.

    False where `max_tokens` alone exceeds the context: that is a wrong setting, with which no conversation would fit.
    """
    words = error.words
    known = any(sign.outcome is Outcome.CONTEXT_LIMIT for sign in _signs(status, error))
    if known or (not _NO_CONTEXT.search(words) and any(map(_exceeds, _SENTENCE.split(words.replace("_", " "))))):
        found = next(filter(None, (shape.search(error.message) for shape in _RESERVES)), None)
        return found is None or int(found["reserve"]) < int(found["limit"])
    return seen.context is not None and most_tokens(status, error) > seen.context


def most_tokens(status: int, error: ErrorReply) -> int:
    """The largest number of tokens that a bad request's error names, to be compared with the model's context."""
    if status != 400 or _NO_CONTEXT.search(error.words):
        return 0
    named = re.findall(r"(\d[\d,]*) tokens", error.message)
    return max((int(number.replace(",", "")) for number in named), default=0)


def _exceeds(sentence: str) -> bool:
    return all(part.search(sentence) for part in (_TOKENS, _CONTEXT_SUBJECT, _CONTEXT_VERB, _CONTEXT_OBJECT))


def refuses_tools(status: int, error: ErrorReply) -> bool:
    """True where a server refuses a request because it offers tools, whatever its history holds."""
    words = error.words
    if status not in _BROAD | _NARROW or not _TOOLS.search(words):
        return False
    return _UNSUPPORTED.search(words) is not None or (status in _BROAD and not _HISTORY.search(words))


def refuses_max_tokens(status: int, error: ErrorReply) -> bool:
    """True where a server wants `max_completion_tokens` in the place of `max_tokens`."""
    return status in _BROAD and _MAX_TOKENS.search(error.words) is not None


def _of_reply(reply: dict[str, JsonValue]) -> Outcome:
    """What a body with status 200 is; TRANSIENT where it is no completion."""
    choices = reply.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return _of_choice(choices[0], reply)
    if isinstance(reply.get("output"), list) or reply.get("object") == "response":
        return _of_response(reply)
    if "stop_reason" in reply and isinstance(reply.get("content"), list):
        blocks = objects(reply["content"])
        said = any(block.get("type") != "text" or block.get("text") for block in blocks)
        return _of_end(reply.get("stop_reason")) or _unless_empty(said, reply)
    blocked = reply.get("promptFeedback") or reply.get("blockReason") or reply.get("block_reason")
    ends = [_of_end(each.get("finishReason")) for each in objects(reply.get("candidates"))]  # Gemini's, Azure's
    return Outcome.REFUSAL if blocked or Outcome.REFUSAL in ends else Outcome.TRANSIENT


def _of_choice(choice: dict[str, JsonValue], reply: dict[str, JsonValue]) -> Outcome:
    if choice.get("error") or reply.get("error"):
        return Outcome.TRANSIENT
    found = _of_end(choice.get("finish_reason"))
    message = choice.get("message")
    if found is not None or not isinstance(message, dict):
        return found or Outcome.TRANSIENT
    if isinstance(message.get("refusal"), str) and message["refusal"]:
        return Outcome.REFUSAL
    content, more = message.get("content"), ("tool_calls", "function_call", *_THOUGHTS)
    said = joined_texts(content) if isinstance(content, list | dict) else content
    answer = _unless_empty(bool(said) or any(map(message.get, more)), reply)
    return _of_end(choice.get("native_finish_reason")) or answer if answer is Outcome.TRANSIENT else answer


def _of_response(reply: dict[str, JsonValue]) -> Outcome:
    """What a body of OpenAI's Responses is."""
    why = reply.get("incomplete_details")
    reason = why.get("reason") if isinstance(why, dict) else None
    items = reply.get("output")
    parts = [part for item in objects(items) for part in objects(item.get("content"))]
    if reply.get("status") not in (None, "completed", "incomplete") or reply.get("error"):
        error = reply.get("error")
        code = str(error.get("code")) if isinstance(error, dict) else ""
        return next((found for words, found in _FAILED if words.search(code)), Outcome.TRANSIENT)
    if any(part.get("type") == "refusal" for part in parts):
        return Outcome.REFUSAL
    said = any(item.get("type") != "message" or joined_texts(item.get("content")) for item in objects(items))
    return _of_end(reason) or _unless_empty(said, reply)


_COMPLETED = ("completion_tokens", "output_tokens", "total_tokens")


def _of_end(reason: JsonValue) -> Outcome | None:
    """What a finish or stop reason says; None where it is an answer's."""
    told = (said_end(reason) or "").lower()
    return next((found for found, words in _ENDS.items() if words.search(told)), None)


def _unless_empty(something: bool, reply: dict[str, JsonValue]) -> Outcome:
    """An answer, if it holds something or cost tokens: an empty one for nothing is a provider's failure."""
    usage = reply.get("usage")
    if something or not isinstance(usage, dict) or all(usage.get(name) is None for name in _COMPLETED):
        return Outcome.ANSWER
    used = usage_of(usage)
    return Outcome.TRANSIENT if used is None or used.completion_tokens == 0 else Outcome.ANSWER
