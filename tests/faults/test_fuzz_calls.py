"""Every environment that offers functions, against calls that are random, changed or wrong.

`make fuzz` plays 100,000 replies, other ones each time; a failure names the configuration, the sample and the seed.
"""

import itertools
import math
import os
import random

import pytest
from pydantic import ValidationError

from proctor import registry
from proctor.environment import POLICY_KINDS, Environment, play_to_finish, policy_of
from proctor.types import Action
from tests.tool_calls import fuzzing

USUAL_REPLIES = 2_000
REPLIES = int(os.environ.get("PROCTOR_FUZZ_REPLIES", USUAL_REPLIES))
"""Replies of agents to all environments together; most of them hold one call, some none, some many."""
FULL = REPLIES > USUAL_REPLIES
FIRST_SEED = random.SystemRandom().randrange(10**9) if FULL else 0
ENGINES: dict[str, dict[str, object]] = {"db": {"engine": "sqlite"}, "os": {"engine": "namespace"}}
"""The cheapest engine. `os` also plays in containers where all 100,000 are played."""
MOST_TURNS = 1_000
"""Of a session of an environment that names no limit."""


def tools_environment(name: str, fields: dict[str, object]) -> Environment | None:
    """An environment in protocol `tools`; None where it has no such protocol with these fields."""
    kind = registry.load(name)
    try:
        return kind(**fields, **{"protocol": "tools"}) if "protocol" in kind.model_fields else None
    except ValidationError:
        return None


def configurations() -> list[tuple[str, dict[str, object]]]:
    """The environments that offer functions, in each profile that they have."""
    found = []
    for name in registry.names():
        profiles = ("compat", "strict") if "profile" in registry.load(name).model_fields else (None,)
        for profile in profiles:
            fields = ENGINES.get(name, {}) | ({"profile": profile} if profile else {})
            if tools_environment(name, fields) is not None:
                found.append((name, fields))
    containers: list[tuple[str, dict[str, object]]] = [("os", {"engine": "docker", "profile": "strict"})]
    return found + [case for case in containers if FULL and tools_environment(*case) is not None]


CONFIGURATIONS = configurations()


def test_environments_offer_functions() -> None:
    assert {"ltp", "stss"} <= {name for name, _ in CONFIGURATIONS}
    assert "simulbench" not in {name for name, _ in CONFIGURATIONS}


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        pytest.param(
            *case,
            id="-".join([case[0], *map(str, case[1].values())]),
            marks=[pytest.mark.docker] if "docker" in case[1].values() else [],
        )
        for case in CONFIGURATIONS
    ],
)
async def test_no_call_raises_and_no_session_is_longer_than_its_rounds(name: str, fields: dict[str, object]) -> None:
    environment = tools_environment(name, fields)
    assert environment is not None
    samples, longest = environment.samples(), environment.max_turns or MOST_TURNS
    left = math.ceil(REPLIES / len(CONFIGURATIONS))
    async with environment.lifespan():
        for seed in itertools.count(FIRST_SEED):
            sample, kind = samples[seed % len(samples)], POLICY_KINDS[seed % len(POLICY_KINDS)]
            policy = policy_of(environment, kind, sample, seed) or (lambda *_: Action(content=""))
            agent = fuzzing(policy, seed, longest)
            finish = await play_to_finish(environment, sample, agent, seed)
            where = f"{name} {fields}, sample {sample!r}, seed {seed}"
            assert finish.score is not None, f"{where}: {finish.detail}"
            assert agent.invalid is None, f"{where}: {agent.invalid}"
            assert all(observation.tools for observation in agent.seen), f"{where}: an observation offers no function"
            left -= len(agent.seen)
            if left <= 0:
                return
