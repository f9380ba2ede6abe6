"""Asking a database that is away for a while."""

import logging

import pytest
import sqlalchemy as sa

from eval_client.store import connection
from eval_client.store.connection import retry_until_available


async def test_what_is_waited_for_is_said_once_when_it_takes_long(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection, "AGAIN_S", 0.0)
    left = 3 * connection.SAY_AFTER

    def ask() -> str:
        nonlocal left
        left -= 1
        if left:
            raise sa.exc.OperationalError("SELECT 1", {}, Exception("no route to host"))
        return "here"

    with caplog.at_level(logging.WARNING):
        assert await retry_until_available(ask, aside=False) == "here"
    (record,) = caplog.records
    assert "no route to host" in record.getMessage()
