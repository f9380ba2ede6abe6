"""What all tests of sandboxes have in common."""

import pytest

from tests.e2e.sandbox.engines import INTERRUPT_S


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.sandbox.shell.INTERRUPT_S", INTERRUPT_S)
