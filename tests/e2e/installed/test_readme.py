"""README.md, word by word: install, demo, the first plan against a proxy's answers, the report, stop and resume."""

import json
import re
import signal
import subprocess
from pathlib import Path

from tests.e2e.installed.conftest import User
from tests.e2e.installed.readme import EXPORT_KEY, INSTALL, blocks, commands, demo
from tests.e2e.scripted import ANSWER, ScriptedEndpoint, reply
from tests.pace import slowly, until

LITELLM = {
    "id": "chatcmpl-1",
    "created": 1764000000,
    "model": "my-model-7b",
    "object": "chat.completion",
    "system_fingerprint": None,
    "choices": [
        {
            "finish_reason": "stop",
            "index": 0,
            "message": {"content": ANSWER, "role": "assistant", "tool_calls": None, "function_call": None},
            "provider_specific_fields": {},
        }
    ],
    "usage": {
        "completion_tokens": 9,
        "prompt_tokens": 80,
        "total_tokens": 89,
        "completion_tokens_details": None,
        "prompt_tokens_details": {"audio_tokens": None, "cached_tokens": 0},
    },
}
"""An answer with the fields that LiteLLM's proxy sends."""
AT_A_TERMINAL = {"proctor view", "proctor play db"}
"""Wait for a person; tests of their own play them."""
NOTHING_LEFT = {
    "proctor stop": (0, "is not being played"),
    'proctor resume latest --retry "cause=connection refused"': (2, "no trial is unscored for that"),
}
"""Exit codes, and what commands print that find nothing to do, since all trials have a score by then."""


def interrupted(user: User, command: str, endpoint: ScriptedEndpoint) -> int:
    """Start a command, press Ctrl-C twice once the endpoint was asked; returns its exit code."""
    asked, answers = len(endpoint.requests), endpoint.always
    endpoint.always = True  # no answer
    process = subprocess.Popen(
        command.split(),
        cwd=user.folder,
        env=user.installed.environment(OPENAI_API_KEY="..."),
        executable=user.installed.venv / "bin" / "proctor",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        until(lambda: len(endpoint.requests) > asked)
        process.send_signal(signal.SIGINT)
        assert (errors := process.stderr) is not None
        assert any("draining" in line for line in errors)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=slowly(60))
    endpoint.hang_up()
    endpoint.always = answers
    return process.returncode


def test_the_readmes_path_word_by_word(user: User, endpoint: ScriptedEndpoint) -> None:
    endpoint.always = reply(200, json.dumps(LITELLM).encode(), "x-litellm-call-id: 1")
    install, without_plan, plan, first, from_python = blocks("Your model")
    (resuming,) = blocks("Resuming")
    assert commands(install) == [INSTALL, EXPORT_KEY]
    assert str(user.installed.venv) in user.types("python -c 'import proctor; print(proctor.__file__)'")

    shown = user.types(demo())
    assert "trials scored" in shown
    assert "db" in shown

    run, init = commands(without_plan)
    assert "gpt-4.1-mini" in user.types(run, started=True, OPENAI_BASE_URL=endpoint.url)
    assert "plan.yaml: 1 agent, 2 tasks" in user.types(init, answers=f"m\n{endpoint.url}\ndb,kg\n")
    Path(user.folder / "plan.yaml").write_text(plan.replace("http://127.0.0.1:8000/v1", endpoint.url))

    printed = {}
    for command in commands(first):
        if command not in AT_A_TERMINAL:
            printed[command] = user.types(command.replace("RUN...", "latest"))
    assert "left out: task os" in printed["proctor run plan.yaml"]
    assert "my-model" in printed["proctor report"]
    assert "100%" in printed["proctor report"]
    assert (user.folder / "results.html").stat().st_size > 10_000

    Path(user.folder / "evaluated.py").write_text(from_python)
    assert "alfworld" in user.types("python evaluated.py")

    assert interrupted(user, "proctor run plan.yaml", endpoint) == 130
    assert "0/20" in user.types("proctor report")
    for command in commands(resuming):
        code, text = NOTHING_LEFT.get(command, (0, ""))
        assert text in user.types(command, code=code)
    assert len(re.findall(r": (\d+)/\1 scored", user.types("proctor status"))) >= 2
