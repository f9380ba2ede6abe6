"""Krippendorff's alpha against published examples and by hand."""

import pytest

from eval_client.core.statistics.agreement import agreements, alpha
from proctor.types import Judgements

_: None = None
FOUR_OBSERVERS = [
    *((1, 1, _, 1), (2, 2, 3, 2), (3, 3, 3, 3), (3, 3, 3, 3), (2, 2, 2, 2), (1, 2, 3, 4)),
    *((4, 4, 4, 4), (1, 1, 2, 1), (2, 2, 2, 2), (_, 5, 5, 5), (_, _, 1, 1), (_, _, 3, _)),
]
"""Krippendorff (2011), example C, as R's DescTools has it too."""
TWO_OBSERVERS = list(zip((0, 1, 0, 0, 0, 0, 0, 0, 1, 0), (1, 1, 1, 0, 0, 1, 0, 0, 0, 0), strict=True))
"""Krippendorff (2011), example A: binary data, no value missing."""


@pytest.mark.parametrize(
    ("rows", "metric", "wanted"),
    [
        (FOUR_OBSERVERS, "nominal", 0.743),
        (FOUR_OBSERVERS, "interval", 0.849),
        (TWO_OBSERVERS, "nominal", 0.095),
    ],
)
def test_alpha_is_that_of_published_examples(rows: list[tuple[float | None, ...]], metric: str, wanted: float) -> None:
    assert alpha(rows, "nominal" if metric == "nominal" else "interval") == pytest.approx(wanted, abs=0.0005)


@pytest.mark.parametrize(
    ("rows", "interval", "nominal"),
    [
        # values 1, 2, 3, 3: of their 12 ordered pairs 10 differ, by squares of 22 in sum; within rows 2, by 2
        ([(1, 2), (3, 3)], 1 - (2 / 4) / (22 / 12), 1 - (2 / 4) / (10 / 12)),
        ([(1, 1), (2, 2)], 1.0, 1.0),
        ([(1, 2), (2, 1)], 1 - 1 / (8 / 12), 1 - 1 / (8 / 12)),
        ([(5, 5), (5, 5)], None, None),  # nothing varies
        ([(1, None), (None, 2)], None, None),  # nothing to pair
        ([], None, None),
    ],
)
def test_alpha_by_hand(rows: list[tuple[float | None, ...]], interval: float | None, nominal: float | None) -> None:
    assert alpha(rows, "interval") == (interval if interval is None else pytest.approx(interval))
    assert alpha(rows, "nominal") == (nominal if nominal is None else pytest.approx(nominal))


def test_the_agreement_on_ratings_says_how_far_apart_they_are() -> None:
    trials = [Judgements(scale="rating", judges=("a", "b"), rows=((4.0, 8.0),)) for _ in range(2)]
    trials.append(Judgements(scale="rating", judges=("a", "b"), rows=((6.0, 6.0), (3.0, None))))
    (found,) = agreements(trials)
    assert (found.judged, found.unread, found.exact) == (3, 1, 1 / 3)
    assert found.apart == pytest.approx(8 / 3)
    assert found.means == pytest.approx((17 / 4, 22 / 3))


def test_the_agreement_on_yes_and_no_counts_even_splits() -> None:
    rows = ((1.0, 0.0), (1.0, 1.0), (0.0, 0.0), (0.0, 1.0), (None, 1.0))
    (found,) = agreements([Judgements(scale="yes_no", judges=("a", "b"), rows=rows)])
    assert (found.judged, found.unread, found.exact, found.apart) == (4, 1, 0.5, 2)
    assert found.alpha == alpha(rows, "nominal")
    assert found.means == (0.5, 3 / 5)
    (none,) = agreements([Judgements(scale="rating", judges=("a", "b"), rows=())])
    assert (none.judged, none.exact, none.alpha, none.apart, none.means) == (0, None, None, None, (None, None))


def test_a_row_has_a_value_of_each_judge() -> None:
    with pytest.raises(ValueError, match="each judge"):
        Judgements(scale="rating", judges=("a", "b"), rows=((1.0,),))
    with pytest.raises(ValueError, match="1000000000"):
        Judgements(scale="rating", judges=("a", "b"), rows=((1.0, 1e200),))
