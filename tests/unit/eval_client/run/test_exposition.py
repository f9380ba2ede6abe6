"""Where a run's metrics may be served, and by which of its clients."""

import httpx
import pytest

from eval_client.run.metrics import exposition, listener
from proctor.config.tokens import AccessTokens
from proctor.http.auth import Access
from proctor.http.server import ConfigError


@pytest.mark.parametrize("where", ["x:y", "99999", "127.0.0.1:", "http://127.0.0.1:1", "::1:80"])
def test_an_address_that_is_none_is_refused(where: str) -> None:
    with pytest.raises(ConfigError, match=r"--metrics: .* is not \[HOST:\]PORT"):
        listener(where)


def test_other_machines_see_it_only_with_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROCTOR_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="set PROCTOR_TOKEN"):
        listener("0.0.0.0:0")
    with listener("0") as socket:
        assert socket.getsockname()[0] == "127.0.0.1"
    monkeypatch.setenv("PROCTOR_TOKEN", "a-token-of-the-tests")
    with listener("0.0.0.0:0") as socket:
        assert socket.getsockname()[0] == "0.0.0.0"


@pytest.mark.parametrize(("token", "status"), [(None, 403), ("a-token-of-the-tests", 200)])
async def test_a_web_page_elsewhere_sees_it_only_with_a_token(token: str | None, status: int) -> None:
    app = exposition(lambda: "", Access(AccessTokens.given(token)))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as http:
        shown = {"Authorization": f"Bearer {token}", "Host": "rebound.example"}
        assert (await http.get("/metrics", headers=shown)).status_code == status
        assert (await http.get("/metrics", headers={**shown, "Host": "localhost:9464"})).status_code == 200
