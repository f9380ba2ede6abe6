"""What the HTML report hides of texts, and what it leaves: our own words are no addresses."""

import pytest

from eval_client.report.scrub import publishable


@pytest.mark.parametrize(
    "text",
    [
        "pass@k for k = 1, 2: A .929, .929; B .5, .5.",
        "pass@1 0.5, pass@10 0.7, pass^2 0.2",
        "from 12:30 to 19:00 on 2023-02-14",
        "wins and/or ties; 4:1; 0.5 [0.1, 0.9]; 3/4 of the trials; a:b",
        "9,999 drawn sign flips (paired t: p .0123), samples: A won 3, B 1, tied 2.",
    ],
)
def test_words_and_figures_stay(text: str) -> None:
    assert publishable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at http://10.0.0.1:8000/v1 now", "at [address] now"),
        ("at worker-1:8000", "at [address]"),
        ("10.1.2.3 is away", "[address] is away"),
        ("me@lab.example and me@host and pass@host", "[address] and [address] and [address]"),
        ("in /home/me/data", "in [path]"),
    ],
)
def test_addresses_and_paths_are_hidden(text: str, shown: str) -> None:
    assert publishable(text) == shown
