"""Skips, with its reason, what needs a part this machine lacks; in CI such a test fails instead."""

import functools
import os

import pytest

from tests import support

_missing = functools.cache(support.missing)


def pytest_runtest_setup(item: pytest.Item) -> None:
    parts = ("compose", "docker", "faketime", "images", "mariadb", "postgresql", "ray", "runsc", "shared", "textworld")
    for part in (*parts, "swarm", "virtuoso"):
        if item.get_closest_marker(part) is None:
            continue
        reason = _missing(part)
        if reason is not None:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
