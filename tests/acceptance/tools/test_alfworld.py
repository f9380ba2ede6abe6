"""Protocol `tools` of ALFWorld with the published data; the number is that of the acceptance list.

The other lines are tests/acceptance/test_tools_protocol.py and tests/unit/environments/alfworld.
"""

import pytest

from environments.alfworld.environment import ALFWorld
from environments.alfworld.reply import Profile
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.tools import Protocol
from proctor.types import FinishReason
from tests.support import SHARED_DATA
from tests.tool_calls import CallingAgent

PROFILES: tuple[Profile, ...] = ("compat", "strict")
PROTOCOLS: tuple[Protocol, ...] = ("text", "tools")
DATA = SHARED_DATA / "alfworld"


@pytest.mark.shared
async def test_03_the_reference_wins_all_published_games_in_both_protocols() -> None:
    for protocol in PROTOCOLS:
        environment = ALFWorld(data=DATA, plans=DATA / "walkthroughs.json", protocol=protocol)
        for sample in environment.samples():
            policy = environment.reference(sample)
            agent = PolicyAgent(policy) if protocol == "text" else CallingAgent(policy)
            finish = await play_to_finish(environment, sample, agent)
            assert (finish.reason, finish.score) == (FinishReason.COMPLETED, 1.0)
        assert len(environment.samples()) == 50
