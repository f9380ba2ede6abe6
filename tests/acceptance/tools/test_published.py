"""Protocol `tools` with the published data: line 3 of the list for function calls; MariaDB's is `db/test_tools.py`.

The other lines are tests/acceptance/test_tools_protocol.py and tests/faults/test_fuzz_calls.py.
"""

import pytest

from environments.alfworld.environment import ALFWorld
from environments.knowledge_graph.environment import KnowledgeGraph
from environments.knowledge_graph.tools import Profile
from proctor.environment import Environment
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.tools import Protocol
from proctor.types import Finish, FinishReason
from tests.support import SHARED_DATA
from tests.tool_calls import CallingAgent

pytestmark = pytest.mark.shared
PROTOCOLS: tuple[Protocol, ...] = ("text", "tools")
ALFWORLD, KG = SHARED_DATA / "alfworld", SHARED_DATA / "kg"


async def of_the_reference(environment: Environment, protocol: Protocol) -> list[Finish]:
    """What it makes of all samples."""
    finishes = []
    async with environment.lifespan():
        for sample in environment.samples():
            policy = environment.reference(sample)
            assert policy is not None
            agent = PolicyAgent(policy) if protocol == "text" else CallingAgent(policy)
            finishes.append(await play_to_finish(environment, sample, agent))
    return finishes


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_03_the_reference_wins_all_published_games_of_alfworld(protocol: Protocol) -> None:
    environment = ALFWorld(data=ALFWORLD, plans=ALFWORLD / "walkthroughs.json", protocol=protocol)
    won = [(finish.reason, finish.score) for finish in await of_the_reference(environment, protocol)]
    assert won == [(FinishReason.COMPLETED, 1.0)] * 50


@pytest.mark.parametrize(("profile", "solved"), [("compat", 18), ("strict", 20)])
async def test_03_the_reference_finishes_alike_in_both_protocols_on_all_samples_of_kg(
    profile: Profile, solved: int
) -> None:
    """In `compat` two samples can't be solved, and stop at the limit."""
    found = []
    for protocol in PROTOCOLS:
        environment = KnowledgeGraph(data=KG / "dev.json", graph=KG / "mini_dev.nq", profile=profile, protocol=protocol)
        finishes = await of_the_reference(environment, protocol)
        found.append([(each.score, each.metrics["EM"], each.reason, each.metrics["rounds"]) for each in finishes])
    assert found[0] == found[1]
    assert sum(exact for _, exact, *_ in found[1]) == solved
