"""A run by function calls whose client is killed at fifty random places."""

from pathlib import Path

from tests.e2e.tools_endpoint import killed_again_and_again


def test_a_client_of_a_run_with_tools_killed_50_times_at_random_places(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, kills=50, samples=14, turns=12)
