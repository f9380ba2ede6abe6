"""Which changed paths may shadow what judges an agent."""

import pytest

from environments.operating_system.dataset import load
from environments.operating_system.environment import SAMPLES, OperatingSystem
from environments.operating_system.tampering import named_by_checks


def test_no_shipped_sample_has_its_work_watched() -> None:
    """What the examples of these samples change is named by them; the rest are programs of the system."""
    records = load(SAMPLES, None, "own").records.values()
    assert {path for record in records for path in named_by_checks(record) if path.startswith("/srv")} == set()


@pytest.mark.parametrize("fields", [{"engine": "namespace"}, {"disk": "tmpfs"}])
def test_strict_needs_an_engine_that_sees_changes(fields: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="profile: strict needs engine: docker and a disk other than tmpfs"):
        OperatingSystem.model_validate({"profile": "strict", **fields})
