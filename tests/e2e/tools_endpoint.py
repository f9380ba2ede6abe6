"""An endpoint that answers with function calls, and demands of histories what real ones demand."""

import json
import math
import os
import random
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.e2e.proctor import begin, completed, exits, rows, server
from tests.e2e.scripted import ScriptedEndpoint, listening, reply
from tests.pace import until
from tests.support import ROOT
from tests.tools_environment import write_distribution
from tests.unit.proctor.tools.provider_rules import refused

CANARY = "canary-of-the-endpoint"
TAKES_NO_TOOLS = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
THINKS = "The `reasoning_content` in the thinking mode must be passed back to the API."
RENAMED = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
SIGNS = "Function call is missing a thought_signature in functionCall parts."
Json = dict[str, object]


def importable(folder: Path) -> dict[str, str]:
    """The environment variables of a process that knows the environment `doors`."""
    if not (folder / "installed").exists():
        write_distribution(folder / "installed")
    return {"PYTHONPATH": os.pathsep.join([str(folder / "installed"), str(ROOT)])}


class ToolsEndpoint(ScriptedEndpoint):
    """Opens the door that was told last. The model's name says what is odd: `plain`, `no-ids`, `thinks`, `signs`, ...

    Every reply has a thought, an id and a signature of its own, so that a history shows which replies it is made of.
    """

    def __init__(self, delay_s: float = 0.0) -> None:
        super().__init__()
        self.delay_s = delay_s
        self.most = math.inf
        """So many requests are answered; those behind them never."""
        self.wrong: list[str] = []
        """What no request may hold, as it was found."""
        self.own_ids: set[str] = set()
        """The ids of the calls in all replies."""
        self.said: dict[str, Json] = {}
        """thought -> the message that it was said with"""

    def of(self, model: str) -> list[Json]:
        """The requests to a model, in order."""
        return [request for request in self.requests if request["model"] == model]

    def _answer(self) -> bytes | None:
        if len(self.requests) > self.most:
            return None
        request = self.requests[-1]
        if self.delay_s:
            time.sleep(self.delay_s)
        model, messages = str(request["model"]), _messages(request)
        if problem := refused(request, self.own_ids):
            self.wrong.append(f"{model}: {problem}")
        if refusal := _refusal(model, request, messages):
            return reply(400, json.dumps({"error": {"message": refusal, "type": "invalid_request_error"}}).encode())
        message = self._said(model, request, messages)
        finish = "tool_calls" if "tool_calls" in message else "stop"
        body = {
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish, **self._choice(request)}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 2},
        }
        return reply(200, json.dumps(body).encode())

    def _choice(self, request: Json) -> Json:
        """Further fields of the choice."""
        return {}

    def _said(self, model: str, request: Json, messages: Sequence[Json]) -> Json:
        door = str(messages[-1]["content"]).rstrip(".").split()[-1]
        turn = sum(message["role"] == "assistant" for message in messages)
        thought = f"{CANARY}-{secrets.token_hex(6)}"
        message: Json = {"role": "assistant", "content": None, "reasoning_content": thought}
        if "tools" not in request or (model == "talks-first" and turn == 0):
            message["content"] = door
        else:
            call: Json = {
                "id": f"id-{thought}",
                "type": "function",
                "function": {"name": "open_door", "arguments": json.dumps({"door": door})},
                "extra_content": {"google": {"thought_signature": f"sign-{thought}", "nested": [1.0, None, "ä"]}},
            }
            self.own_ids.add(str(call["id"]))
            if model == "no-ids":
                del call["id"]
            message["tool_calls"] = [call]
        self.said[thought] = message
        return message


class TokensEndpoint(ToolsEndpoint):
    """Gives token ids and log probabilities to who asks for log probabilities."""

    def _choice(self, request: Json) -> Json:
        tokens = [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}, {"token": "b", "logprob": -0.125}]
        return {"token_ids": [11, 12], "logprobs": {"content": tokens}} if request.get("logprobs") else {}


def _messages(request: Json) -> list[Json]:
    messages = request["messages"]
    assert isinstance(messages, list)
    return messages


def _calls(message: Mapping[str, object]) -> list[dict[str, dict[str, str]]]:
    calls = message.get("tool_calls") or []
    assert isinstance(calls, list)
    return calls


def _refusal(model: str, request: Json, messages: Sequence[Json]) -> str | None:
    """Why this model answers a request with 400."""
    said = [message for message in messages if message["role"] == "assistant"]
    with_calls = [message for message in said if _calls(message)]
    if model == "no-tools" and "tools" in request:
        return TAKES_NO_TOOLS
    if model == "renames" and "max_tokens" in request:
        return RENAMED
    if model.startswith("thinks") and not all("reasoning_content" in message for message in with_calls):
        return THINKS
    if model == "signs" and not all("extra_content" in call for message in with_calls for call in _calls(message)):
        return SIGNS
    if model == "talks-first" and any("reasoning_content" in each for each in said if not _calls(each)):
        return "Extra inputs are not permitted: messages.2.reasoning_content"
    return None


def sample_of(request: Json) -> str:
    """The sample that a request of the environment `doors` is about."""
    return next(str(each["content"]) for each in _messages(request) if "Sample " in str(each["content"])).split()[1]


def paid_twice(requests: Sequence[Json], said: Mapping[str, Json]) -> int:
    """How many requests of one agent's trials, one after the other, were made anew; any other difference fails.

    A request either repeats the one before it byte for byte, or goes on from it: then its history begins with the
    whole earlier one, and behind that stands what the endpoint answered.
    """
    last: dict[str, list[Json]] = {}
    again = 0
    for request in requests:
        sample, messages = sample_of(request), _messages(request)
        before = last.get(sample, [])
        assert json.dumps(messages[: len(before)]) == json.dumps(before), sample
        if len(messages) == len(before):
            again += 1
        elif before:
            answered = messages[len(before)]
            assert answered["role"] == "assistant"
            original = said[str(answered["reasoning_content"])]
            assert answered["content"] == original["content"]
            for call, came in zip(_calls(answered), _calls(original), strict=True):
                assert call["function"] == came["function"]
                assert call["extra_content"] == came["extra_content"]
        last[sample] = messages
    return again


def _kill_after(process: "subprocess.Popen[str]", scripted: ToolsEndpoint, more: int, delay_s: float) -> None:
    """kill -9 of a client after so many more requests, somewhere between two of them.

    One more is answered, and no further one: however late the kill comes, the run is not over before.
    """
    target = len(scripted.requests) + more
    scripted.most = target + 1
    until(lambda: process.poll() is not None or len(scripted.requests) >= target)
    time.sleep(delay_s)
    assert process.poll() is None, "the run ended before the last kill"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    scripted.most = math.inf


KILLED_PLAN = """\
name: tools
controller: {worker}
endpoints: [{{name: scripted, base_url: "{endpoint}", api_key_env: SCRIPTED_KEY}}]
agents: [{{name: no-ids, endpoint: scripted, concurrency: 2}}]
tasks: [{{name: doors}}]
"""


def killed_again_and_again(folder: Path, *, kills: int, samples: int, turns: int) -> None:
    """kill -9 of the client: the same finishes, histories of the same bytes, and no kept answer asked for again."""
    parameters = f"parameters: {{turns: {turns}, count: {samples}}}"
    (folder / "tasks.yaml").write_text(f"tasks: [{{name: doors, environment: doors, {parameters}}}]\n")
    chance, scripted, needed = random.Random(kills), ToolsEndpoint(delay_s=0.05), samples * turns
    with listening(scripted), server("worker", "--tasks=tasks.yaml", cwd=folder, **importable(folder)) as worker:
        (folder / "plan.yaml").write_text(KILLED_PLAN.format(worker=worker.url, endpoint=scripted.url))
        exits(0, "run", "plan.yaml", "--name", "whole", "-q", cwd=folder)
        assert len(scripted.requests) == needed
        scripted.requests.clear()
        process = begin("run", "plan.yaml", "--name", "killed", "-q", cwd=folder)
        for _ in range(kills):
            _kill_after(process, scripted, chance.randrange(1, max(2, needed // kills)), chance.random() * 0.05)
            process = begin("resume", "killed", "-q", cwd=folder)
        completed(process, within_s=120)
    assert scripted.wrong == []
    offered = [request.get("tools") for request in scripted.requests]
    assert offered == [offered[0]] * len(offered)
    assert offered[0]
    again = paid_twice(scripted.requests, scripted.said)
    assert len(scripted.requests) == needed + again
    assert again <= 2 * kills, "at most what was under way at each kill"
    assert rows("killed", folder) == rows("whole", folder)
