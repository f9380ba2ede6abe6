"""Every environment that offers functions, against calls that are random, changed or wrong.

`make fuzz` plays 100,000 replies, other ones each time; a failure names the configuration, the sample and the seed.
"""

import itertools
import math
import os
import random

import pytest

from proctor.types import Finish
from tests.random_calls import fuzz, unread
from tests.tool_calls import Fields, configurations, tools_environment

USUAL_REPLIES = 2_000
REPLIES = int(os.environ.get("PROCTOR_FUZZ_REPLIES", USUAL_REPLIES))
"""Replies of agents to all environments together; most of them hold one call, some none, some many."""
FULL = REPLIES > USUAL_REPLIES
FIRST_SEED = random.SystemRandom().randrange(10**9) if FULL else 0
CONTAINERS: Fields = {"engine": "docker", "profile": "strict"}
"""`os` also plays in containers where all 100,000 are played."""
DOCKER = pytest.mark.docker
CONFIGURATIONS = configurations()
if FULL and tools_environment("os", CONTAINERS) is not None:
    CONFIGURATIONS.append(("os", CONTAINERS))


def test_environments_offer_functions() -> None:
    assert {"ltp", "stss"} <= {name for name, _ in CONFIGURATIONS}
    assert "simulbench" not in {name for name, _ in CONFIGURATIONS}


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        pytest.param(name, fields, id="-".join([name, *fields.values()]), marks=DOCKER if fields == CONTAINERS else ())
        for name, fields in CONFIGURATIONS
    ],
)
async def test_no_call_raises_and_no_session_is_longer_than_its_rounds(name: str, fields: Fields) -> None:
    environment = tools_environment(name, fields)
    assert environment is not None
    samples = environment.samples()
    left, finishes = math.ceil(REPLIES / len(CONFIGURATIONS)), list[Finish]()
    async with environment.lifespan():
        for seed in itertools.count(FIRST_SEED):
            finish, turns = await fuzz(environment, samples[seed % len(samples)], seed)
            finishes.append(finish)
            left -= turns
            if left <= 0:
                break
    assert sum(unread(finishes).values()) > 20
