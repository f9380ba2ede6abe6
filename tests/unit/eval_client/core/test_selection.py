"""A limit takes some of every category, and patterns choose what they say."""

from itertools import pairwise

import pytest

from eval_client.core.selection import NO_FILTERS, Catalogue, Filters, SelectionError, choose
from proctor.environment import SampleSelection

NAMES = [f"{kind}-{number}" for kind, count in (("insert", 60), ("select", 30), ("rare", 2)) for number in range(count)]
KINDS = Catalogue({name: name for name in NAMES}, {name: name.partition("-")[0] for name in NAMES})
PLAIN = Catalogue({name: name for name in NAMES}, dict.fromkeys(NAMES, ""))


def chosen(
    plan: SampleSelection | None = None, filters: Filters = NO_FILTERS, limit: int | None = None, of: Catalogue = KINDS
) -> tuple[str, ...]:
    return choose("t", of, plan, filters, limit).samples


def counts(samples: tuple[str, ...]) -> dict[str, int]:
    return {kind: sum(each.startswith(kind) for each in samples) for kind in ("insert", "select", "rare")}


def test_a_limit_covers_every_category_first_and_then_goes_by_their_sizes() -> None:
    assert counts(chosen(limit=2)) == {"insert": 1, "select": 1, "rare": 0}
    assert counts(chosen(limit=3)) == {"insert": 1, "select": 1, "rare": 1}
    assert counts(chosen(limit=12)) == {"insert": 7, "select": 4, "rare": 1}
    assert chosen(limit=92) == tuple(NAMES)
    assert chosen(limit=500) == tuple(NAMES)


def test_a_higher_limit_keeps_the_samples_of_a_lower_one() -> None:
    taken = [set(chosen(limit=limit)) for limit in range(1, len(NAMES) + 1)]
    assert all(fewer < more for fewer, more in pairwise(taken))


def test_samples_keep_their_order_and_without_categories_the_first_are_taken() -> None:
    assert list(chosen(limit=20)) == sorted(chosen(limit=20), key=NAMES.index)
    assert chosen(limit=5, of=PLAIN) == tuple(NAMES[:5])


def test_samples_of_other_worlds_come_before_a_second_one_of_the_same() -> None:
    steps = [f"task{task}-{step}" for task in range(3) for step in range(4)]
    catalogue = Catalogue({name: name.partition("-")[0] for name in steps}, dict.fromkeys(steps, ""))
    assert chosen(limit=3, of=catalogue) == ("task0-0", "task1-0", "task2-0")


def test_a_shuffle_takes_others_and_the_same_ones_again() -> None:
    first, again, other = (chosen(SampleSelection(limit=12, shuffle_seed=seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert counts(first) == counts(other) == counts(chosen(limit=12))
    assert first != chosen(limit=12)


def test_the_plans_patterns_and_those_of_the_command_line_both_hold() -> None:
    plan = SampleSelection(include=("insert-*", "rare-?"), exclude=("insert-5*",))
    assert counts(chosen(plan)) == {"insert": 49, "select": 0, "rare": 2}
    assert chosen(plan, Filters(samples=("t/rare-*", "insert-1"), exclude=("rare-1",))) == ("insert-1", "rare-0")
    assert chosen(plan, Filters(samples=("other/rare-*",))) == ()
    assert chosen(SampleSelection(limit=7), limit=2) == chosen(limit=2)


def test_what_was_left_out_and_by_what_is_told() -> None:
    told = choose("t", KINDS, SampleSelection(exclude=("select-*",)), Filters(exclude=("insert-0",)), 3)
    assert told.by == ("tasks.t.samples", "--exclude", "--limit")
    by = "tasks.t.samples and --exclude and --limit"
    assert told.text == f"3 of 92 samples are played, chosen by {by}: 2 x insert, 1 x rare"
    assert choose("t", PLAIN, None, NO_FILTERS, 100).text == ""


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (
            SampleSelection(include=("inserts-1",)),
            "tasks.t.samples.include: inserts-1: matches nothing; there are ins",
        ),
        (SampleSelection(include=("rare-*",), exclude=("*",)), "tasks.t.samples: leaves none of the 92 samples"),
    ],
)
def test_a_choice_of_nothing_is_refused(plan: SampleSelection, says: str) -> None:
    with pytest.raises(SelectionError, match=says):
        chosen(plan)
