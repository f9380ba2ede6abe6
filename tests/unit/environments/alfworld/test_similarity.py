"""The resemblance of replies and commands is the published formula."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.alfworld.reply import CommandCandidate, nearest

WORDS = ["go", "to", "open", "take", "cabinet", "mug", "1", "2", "from", "in/on"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)


def formula(candidate: str, reference: str) -> float:
    """The formula as the specification writes it, term by term."""
    words, other = candidate.split(), reference.split()
    c, r, logs, k = len(words), len(other), list[float](), 0
    for n in range(1, 5):
        have = Counter(zip(*(words[i:] for i in range(n)), strict=False))
        want = Counter(zip(*(other[i:] for i in range(n)), strict=False))
        m: float = sum(min(count, want[gram]) for gram, count in have.items())
        if n == 1 and m == 0:
            return 0.0
        if m == 0 and c > 1:
            k += 1
            m = math.log(c) / (5 * 2**k)
        if m > 0:
            logs.append(math.log(m / max(1, c - n + 1)))
    return (1.0 if c > r else math.exp(1 - r / c)) * math.exp(0.25 * sum(logs))


@given(texts, texts)
def test_it_is_the_formula(candidate: str, reference: str) -> None:
    assert CommandCandidate(candidate).similarity(reference) == pytest.approx(formula(candidate, reference), abs=1e-12)


def test_a_command_resembles_itself_fully_and_strangers_not_at_all() -> None:
    assert CommandCandidate("put mug 1 in/on desk 1").similarity("put mug 1 in/on desk 1") == pytest.approx(1.0)
    assert CommandCandidate("take soapbar").similarity("go to desk 1") == 0.0


def test_of_equally_near_commands_the_first_is_taken_and_none_where_none_is_near() -> None:
    assert nearest("1", ["go to desk 1", "go to sofa 1"]) == ("go to desk 1", math.exp(-3))
    assert nearest("xyzzy", ["look", "inventory"]) is None
    assert nearest("x", []) is None


def test_of_a_long_text_each_part_counts() -> None:
    long = "go to " * 2_000
    assert CommandCandidate(long).similarity("go to desk 1") == pytest.approx(formula(long, "go to desk 1"), abs=1e-12)
    assert nearest(long, ["look", "go to desk 1"]) is None
