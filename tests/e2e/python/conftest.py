"""The servers of runs that tests play in this process are forked."""

import asyncio

import pytest

from tests.e2e.preloaded import forking_servers


@pytest.fixture(autouse=True)
def _forked_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio, "create_subprocess_exec", forking_servers())
