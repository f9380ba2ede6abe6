"""Skips, with its reason, what needs a part this machine lacks; in CI such a test fails instead."""

import functools
import os
from collections.abc import Iterator

import pytest

from tests import support
from tests.e2e.proctor import ended

_missing = functools.cache(support.missing)


def pytest_runtest_setup(item: pytest.Item) -> None:
    parts = ("compose", "docker", "faketime", "images", "mariadb", "postgresql", "ray", "runsc", "shared", "textworld")
    for part in (*parts, "swarm", "virtuoso"):
        if item.get_closest_marker(part) is None:
            continue
        reason = _missing(part)
        if reason is not None:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


@pytest.fixture(autouse=True)
def _nothing_left_running() -> Iterator[None]:
    """So that a test that failed is the only one that does."""
    with ended():
        yield
