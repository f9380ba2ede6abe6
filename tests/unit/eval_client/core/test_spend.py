"""What a run has paid, and whether it may pay more."""

import pytest

from eval_client.core.spend import Price, RunLimits, Spend
from proctor.types import Usage


def test_money_is_counted_where_a_price_is_known() -> None:
    spend = Spend(RunLimits(), {"dear": Price(input=2.0, output=10.0)})
    spend.add("dear", Usage(1_000_000, 100_000))
    spend.add("free", Usage(5_000, 5_000))
    assert spend.money == 3.0
    assert spend.by_agent == {"dear": Usage(1_000_000, 100_000), "free": Usage(5_000, 5_000)}


@pytest.mark.parametrize(
    ("price", "tokens", "cost"),
    [
        ({}, Usage(1_000_000, 100_000, 600_000, 50_000), 3.0),
        ({"cached_input": 0.5}, Usage(1_000_000, 100_000, 600_000, 50_000), 0.8 + 0.3 + 1.0),
        ({"cached_input": 0.0}, Usage(1_000_000, 100_000, 600_000, 50_000), 0.8 + 1.0),
        ({}, Usage(1_000_000, 100_000, 600_000, cache_write_tokens=200_000), 3.0),
        ({"cached_input": 0.5}, Usage(1_000_000, 100_000, 600_000, cache_write_tokens=200_000), 0.4 + 0.3 + 0.5 + 1.0),
        (
            {"cached_input": 0.5, "cache_write": 2.0},
            Usage(1_000_000, 100_000, 600_000, cache_write_tokens=200_000),
            0.4 + 0.3 + 0.4 + 1.0,
        ),
        ({"cache_write": 4.0}, Usage(1_000_000, 100_000, 600_000, cache_write_tokens=200_000), 0.4 + 1.2 + 0.8 + 1.0),
    ],
)
def test_tokens_of_a_cache_cost_the_input_price_unless_they_have_their_own(
    price: dict[str, float], tokens: Usage, cost: float
) -> None:
    assert Price(input=2.0, output=10.0, **price).of(tokens) == pytest.approx(cost)


def test_a_price_is_stored_as_older_versions_read_it() -> None:
    assert Price(input=2.0, output=10.0).model_dump() == {"input": 2.0, "output": 10.0}


def test_a_budget_counts_cached_tokens_at_their_price_and_once() -> None:
    price = Price(input=2.0, output=10.0, cached_input=0.0)
    spend = Spend(RunLimits(money=5.0, tokens=2_000_000), {"a": price})
    spend.add("a", Usage(900_000, 100_000, 900_000, 100_000))
    spend.elsewhere = {"a": Usage(899_999, 100_000, 899_999, 100_000)}
    assert (spend.exhausted(), spend.money) == (None, 1.0)
    spend.elsewhere = {"a": Usage(900_000, 100_000, 900_000, 100_000)}
    assert str(spend.exhausted()).startswith("limits.run.tokens: 2000000 of 2000000 spent")


def test_costs_that_no_endpoint_reports_are_told_with_the_limits_they_make_void() -> None:
    spend = Spend(RunLimits(tokens=100), {})
    assert spend.unknown() is None
    spend.unmetered |= {"b", "a"}
    assert spend.unknown() == (
        "tokens of a, b are not known: the endpoint reports no usage, so limits.run.tokens can't limit it"
    )


def test_estimates_count_in_limits_and_are_told() -> None:
    spend = Spend(RunLimits(tokens=100), {})
    spend.add("a", Usage(50, 40, estimated_tokens=90))
    assert spend.exhausted() is None
    assert spend.unknown() == (
        "tokens of a are estimated where its endpoint reports none, and limits.run.tokens holds with the estimate"
    )
    spend.add("a", Usage(5, 5, estimated_tokens=10))
    assert str(spend.exhausted()).startswith("limits.run.tokens: 100 of 100 spent")


def test_what_an_endpoint_told_is_the_price_and_the_plans_price_is_that_of_the_rest() -> None:
    price = Price(input=1.0, output=1.0, cached_input=0.5)
    spend = Spend(RunLimits(money=10.0), {"a": price})
    spend.add("a", Usage(1_000_000, 1_000_000, billed_tokens=2_000_000, billed_money=7.0))
    assert spend.money == 7.0
    spend.add("a", Usage(1_000_000, 0))
    assert spend.money == 8.0
    assert price.of(Usage(2_000_000, 1_000_000, billed_tokens=2_000_000, billed_money=7.0)) == pytest.approx(8.0)
    assert price.of(Usage(1_000_000, cache_write_tokens=400_000, cached_tokens=200_000)) == pytest.approx(
        0.4 + 0.5 + 0.1
    )
    told = Spend(RunLimits(money=10.0), {})
    told.add("b", Usage(9, 1, billed_tokens=10, billed_money=3.0))
    told.add_helper("judge", Usage(9, 1, billed_tokens=10, billed_money=4.0), "t")
    assert (told.money, told.unknown()) == (7.0, None)


def test_a_judge_whose_endpoint_reports_no_usage_is_told_too() -> None:
    spend = Spend(RunLimits(tokens=100), {})
    spend.add_helper("judge", Usage(10, 3), "t")
    assert spend.unknown() is None
    spend.add_helper("silent", Usage(0, 0), "t")
    assert spend.unknown() == (
        "tokens of environment:silent are not known: the endpoint reports no usage, so limits.run.tokens can't limit it"
    )


def test_models_that_tasks_pay_for_count_by_the_longest_name_that_begins_theirs() -> None:
    plan = {"environment:gpt": Price(input=1.0, output=1.0), "environment:gpt-4": Price(input=4.0, output=8.0)}
    spend = Spend(RunLimits(money=20.0), plan)
    spend.add_helper("gpt-4-0613", Usage(1_000_000, 500_000), "t")
    spend.add_helper("gpt-3.5", Usage(2_000_000, 0), "t")
    assert spend.money == 10.0
    assert spend.unknown() is None
    spend.add_helper("other", Usage(10**9, 10**9), "t")
    assert str(spend.unknown()).startswith("the plan's `prices` lack other, which tasks pay for")
    spend.add("gpt-4", Usage(10**9, 10**9))  # an agent of this name has a price of its own, or none
    assert spend.exhausted() is None


@pytest.mark.parametrize(
    ("limits", "spent", "says"),
    [
        (RunLimits(), Usage(10**12, 10**12), None),
        (RunLimits(tokens=100), Usage(60, 39), None),
        (RunLimits(tokens=100), Usage(60, 40), "limits.run.tokens: 100 of 100 spent"),
        (RunLimits(money=1.0), Usage(1_000_000, 0), "resume with --set limits.run.money=MORE"),
    ],
)
def test_a_limit_reached_says_which_and_how_to_go_on(limits: RunLimits, spent: Usage, says: str | None) -> None:
    spend = Spend(limits, {"a": Price(input=1.0, output=1.0)})
    spend.add("a", spent)
    assert spend.exhausted() is None if says is None else says in str(spend.exhausted())


def test_what_other_clients_of_the_run_have_spent_counts_against_its_limits() -> None:
    spend = Spend(RunLimits(tokens=100, money=5.0), {"dear": Price(input=2.0, output=10.0)})
    spend.add("dear", Usage(30, 10))
    assert spend.exhausted() is None
    spend.elsewhere = {"dear": Usage(50, 10)}
    assert str(spend.exhausted()).startswith("limits.run.tokens: 100 of 100 spent")
    spend.elsewhere = {"dear": Usage(1_000_000, 300_000)}
    assert Spend(RunLimits(money=5.0), spend.prices, elsewhere=spend.elsewhere).exhausted() == (
        "limits.run.money: 5.00 of 5.00 spent; resume with --set limits.run.money=MORE"
    )
