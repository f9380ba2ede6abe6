"""Letters of a leaderboard: agents share one if, and only if, they are not told apart."""

import random
from itertools import combinations

import pytest

from eval_client.core.statistics.several import letters


def test_200_random_matrices() -> None:
    chance = random.Random(42)
    for _ in range(200):
        agents = [f"agent-{number}" for number in range(chance.randint(1, 9))]
        share = chance.random()
        apart = {frozenset(pair) for pair in combinations(agents, 2) if chance.random() < share}
        found = letters(agents, apart)
        assert all(found.values())
        for a, b in combinations(agents, 2):
            assert bool(set(found[a]) & set(found[b])) == (frozenset((a, b)) not in apart)


@pytest.mark.parametrize(
    ("apart", "expected"),
    [
        ((), {"x": "a", "y": "a", "z": "a"}),
        (("xz",), {"x": "a", "y": "ab", "z": "b"}),
        (("xy", "xz", "yz"), {"x": "a", "y": "b", "z": "c"}),
    ],
)
def test_the_first_agents_get_the_first_letters(apart: tuple[str, ...], expected: dict[str, str]) -> None:
    assert letters(["x", "y", "z"], {frozenset(pair) for pair in apart}) == expected


def test_letters_after_z_are_in_brackets() -> None:
    agents = [f"{number:03}" for number in range(28)]
    found = letters(agents, {frozenset(pair) for pair in combinations(agents, 2)})
    assert [found["000"], found["025"], found["026"], found["027"]] == ["a", "z", "(aa)", "(ab)"]
