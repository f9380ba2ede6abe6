"""The shipped table of typical usage is what the reference policies need on the shipped samples.

`python -m tests.integration.test_usage` writes the table anew, on a machine that has all engines.
"""

import asyncio
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from eval_client.plan import preview as usage
from proctor import registry
from proctor.environment import Agent, Environment, policy_of
from proctor.session.play import play_to_finish
from proctor.session.transcript import Transcript
from proctor.types import Action, Observation, Tool, ToolCall

ENGINES: dict[str, dict[str, object]] = {"db": {"engine": "sqlite"}, "os": {"engine": "namespace", "pool": 0}}
TEXT_ONLY = {"simulbench"}
TOLERANCE = 0.01
SAMPLES = 40
"""Of an environment with more, so many are measured, evenly over its list."""


def tokens(text: str) -> float:
    """Four ASCII characters are a token, and so is every other character."""
    ascii_ = sum(char.isascii() for char in text)
    return ascii_ / 4 + len(text) - ascii_


class Counting(Agent):
    """Plays the reference policy and counts what a model would be sent, and would answer."""

    def __init__(self, environment: Environment, sample: str) -> None:
        policy = policy_of(environment, "reference", sample)
        assert policy is not None
        self._policy, self._transcript = policy, Transcript()
        self._tools: tuple[Tool, ...] = ()
        self.calls, self.prompt, self.completion = 0, 0.0, 0.0

    async def act(self, observation: Observation) -> Action:
        history = tuple(self._transcript.observe(observation))
        self._tools = observation.tools or self._tools
        action = self._policy(observation.conversation, history)
        self._transcript.answer(observation, action)
        self.calls += 1
        self.prompt += sum(tokens(message.content + _calls(message.tool_calls)) for message in history)
        self.prompt += sum(tokens(tool.model_dump_json()) for tool in self._tools)
        self.completion += tokens(action.content + _calls(action.tool_calls))
        return action


def _calls(calls: Sequence[ToolCall]) -> str:
    return "".join(f"{call.name}{call.arguments}" for call in calls)


async def measured(environment: Environment) -> usage.TrialUsage:
    """The medians over the shipped samples."""
    samples = environment.samples()
    step = max(1, len(samples) // SAMPLES)
    played = []
    async with environment.lifespan():
        for sample in samples[::step]:
            agent = Counting(environment, sample)
            finish = await play_to_finish(environment, sample, agent)
            assert finish.score is not None, f"{sample}: {finish}"
            played.append((agent.calls, agent.prompt, agent.completion))
    calls, prompt, completion = (round(statistics.median(values)) for values in zip(*played, strict=True))
    return usage.TrialUsage(calls=calls, prompt_tokens=prompt, completion_tokens=completion)


def shipped() -> Iterator[tuple[str, str]]:
    """(environment, protocol) of all that Proctor ships."""
    for name in registry.names():
        cls = registry.load(name)
        if cls.__module__.startswith("environments."):
            yield name, "text"
            if "protocol" in cls.model_fields and name not in TEXT_ONLY:
                yield name, "tools"


def opened(name: str, protocol: str) -> Environment:
    fields = ENGINES.get(name, {}) | ({"protocol": protocol} if protocol != "text" else {})
    return registry.load(name).model_validate(fields)


@pytest.mark.parametrize(("name", "protocol"), list(shipped()))
async def test_the_table_is_what_the_reference_policy_needs(name: str, protocol: str) -> None:
    found, kept = await measured(opened(name, protocol)), usage.typical_usage(name, protocol)
    assert kept is not None
    for field in usage.TrialUsage.model_fields:
        assert getattr(found, field) == pytest.approx(getattr(kept, field), rel=TOLERANCE), field


def test_the_table_has_no_other_rows() -> None:
    kept = json.loads(usage.FILE.read_text(encoding="utf-8"))
    assert {(name, protocol) for name, of in kept.items() for protocol in of} == set(shipped())


def write(path: Path) -> None:
    table: dict[str, dict[str, object]] = {}
    for name, protocol in shipped():
        print(name, protocol, file=sys.stderr)
        table.setdefault(name, {})[protocol] = asyncio.run(measured(opened(name, protocol))).model_dump()
    path.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(usage.FILE)
