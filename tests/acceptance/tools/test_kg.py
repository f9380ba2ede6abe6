"""Protocol `tools` of the knowledge graph with the published data; the number is that of the acceptance list.

The other lines are tests/acceptance/test_tools_protocol.py and tests/unit/environments/knowledge_graph.
"""

import pytest

from environments.knowledge_graph.environment import KnowledgeGraph
from environments.knowledge_graph.tools import Profile
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.tools import Protocol
from tests.support import SHARED_DATA
from tests.tool_calls import CallingAgent

PROFILES: tuple[Profile, ...] = ("compat", "strict")
PROTOCOLS: tuple[Protocol, ...] = ("text", "tools")
DATA = SHARED_DATA / "kg"


@pytest.mark.shared
@pytest.mark.parametrize("profile", PROFILES)
async def test_03_the_reference_finishes_alike_in_both_protocols_on_all_published_samples(profile: Profile) -> None:
    """In `compat` two samples can't be solved, and stop at the limit."""
    found = []
    for protocol in PROTOCOLS:
        environment = KnowledgeGraph(
            data=DATA / "dev.json", graph=DATA / "mini_dev.nq", profile=profile, protocol=protocol
        )
        async with environment.lifespan():
            for sample in environment.samples():
                policy = environment.reference(sample)
                agent = PolicyAgent(policy) if protocol == "text" else CallingAgent(policy)
                finish = await play_to_finish(environment, sample, agent)
                found.append((finish.score, finish.metrics["EM"], finish.reason, finish.metrics["rounds"]))
    assert found[:20] == found[20:]
    assert sum(exact for _, exact, *_ in found[20:]) == (18 if profile == "compat" else 20)
