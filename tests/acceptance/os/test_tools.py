"""Protocol `tools` on Docker with the published data; the number is that of the list for function calls."""

import pytest

from environments.operating_system.environment import OperatingSystem
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Finish
from tests.acceptance.os.test_acceptance import dev

pytestmark = [pytest.mark.docker, pytest.mark.shared]


async def played(environment: OperatingSystem) -> dict[str, Finish]:
    async with environment.lifespan():
        return {
            sample: await play_to_finish(environment, sample, PolicyAgent(environment.reference(sample)))
            for sample in environment.samples()
        }


@pytest.mark.parametrize("profile", ["compat", "errata", "strict"])
async def test_03_the_reference_scores_on_the_published_samples_as_in_text(profile: str) -> None:
    tools, text = [await played(dev(profile=profile, protocol=protocol)) for protocol in ("tools", "text")]
    assert len(tools) == 26
    assert {sample: (finish.reason, finish.score) for sample, finish in tools.items()} == {
        sample: (finish.reason, finish.score) for sample, finish in text.items()
    }
