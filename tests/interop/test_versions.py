"""Each counterpart is of the version that the docs name."""

import pytest

from tests.interop.counterparts import run

VERSIONS = {
    "inspect": {"inspect-ai": "0.3.285"},
    "agentrl": {"agentrl-worker": "0.4.0", "agentrl-eval": "0.1.2"},
    "openenv": {"openenv": "0.10.0"},
    "harbor": {"harbor": "0.25.0"},
    "litellm": {"litellm": "1.108.7"},
}


@pytest.mark.parametrize("name", VERSIONS)
def test_a_counterpart_is_of_the_version_that_was_tried(name: str) -> None:
    wanted = VERSIONS[name]
    assert run(name, "versions.py", *wanted) == list(wanted.values())
