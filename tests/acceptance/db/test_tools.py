"""Protocol `tools` on MariaDB with the published data; the numbers are those of the list for function calls."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from environments.database.engines.private_server import PrivateServer
from environments.database.environment import Database
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Finish
from tests.support import SHARED_DATA

pytestmark = [pytest.mark.mariadb, pytest.mark.shared, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def socket() -> AsyncIterator[str]:
    server = PrivateServer()
    await server.start()
    yield str((await server.address()).socket)
    await server.stop()


async def played(socket: str, profile: str, protocol: str, kind: str) -> dict[str, Finish]:
    database = Database.model_validate(
        {
            "data": SHARED_DATA / "db/dev.jsonl",
            "server": f"mysql://root@localhost/?unix_socket={socket}",
            "profile": profile,
            "protocol": protocol,
        }
    )
    async with database.lifespan():
        return {
            sample: await play_to_finish(database, sample, PolicyAgent(getattr(database, kind)(sample)))
            for sample in database.samples()
        }


@pytest.mark.parametrize("profile", ["compat", "strict", "errata"])
async def test_03_the_reference_scores_on_the_published_samples_as_in_text(socket: str, profile: str) -> None:
    tools = await played(socket, profile, "tools", "reference")
    text = await played(socket, profile, "text", "reference")
    assert len(tools) == 60
    assert {sample: (finish.reason, finish.score) for sample, finish in tools.items()} == {
        sample: (finish.reason, finish.score) for sample, finish in text.items()
    }
