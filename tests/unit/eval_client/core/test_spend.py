"""What a run has paid, and whether it may pay more."""

from eval_client.core.spend import Price, RunLimits, Spend


def test_money_is_counted_where_a_price_is_known() -> None:
    spend = Spend(RunLimits(), {"dear": Price(input=2.0, output=10.0)})
    spend.add("dear", 1_000_000, 100_000)
    spend.add("free", 5_000, 5_000)
    assert spend.money == 3.0
    assert spend.by_agent == {"dear": (1_000_000, 100_000), "free": (5_000, 5_000)}


def test_costs_that_no_endpoint_reports_are_told_with_the_limits_they_make_void() -> None:
    spend = Spend(RunLimits(tokens=100), {})
    assert spend.unknown() is None
    spend.unmetered |= {"b", "a"}
    assert spend.unknown() == (
        "tokens of a, b are not known: the endpoint reports no usage, so limits.run.tokens can't limit it"
    )


def test_a_judge_whose_endpoint_reports_no_usage_is_told_too() -> None:
    spend = Spend(RunLimits(tokens=100), {})
    spend.add_helper("judge", 10, 3)
    assert spend.unknown() is None
    spend.add_helper("silent", 0, 0)
    assert spend.unknown() == (
        "tokens of environment:silent are not known: the endpoint reports no usage, so limits.run.tokens can't limit it"
    )


def test_models_that_tasks_pay_for_count_by_the_longest_name_that_begins_theirs() -> None:
    plan = {"environment:gpt": Price(input=1.0, output=1.0), "environment:gpt-4": Price(input=4.0, output=8.0)}
    spend = Spend(RunLimits(money=20.0), plan)
    spend.add_helper("gpt-4-0613", 1_000_000, 500_000)
    spend.add_helper("gpt-3.5", 2_000_000, 0)
    assert spend.money == 10.0
    assert spend.unknown() is None
    spend.add_helper("other", 10**9, 10**9)
    assert str(spend.unknown()).startswith("the plan's `prices` lack other, which tasks pay for")
    spend.add("gpt-4", 10**9, 10**9)  # an agent of this name has a price of its own, or none
    assert spend.exhausted() is None


def test_nothing_is_exhausted_without_limits() -> None:
    spend = Spend(RunLimits(), {})
    spend.add("a", 10**12, 10**12)
    assert spend.exhausted() is None


def test_a_limit_reached_says_which_and_how_to_go_on() -> None:
    tokens = Spend(RunLimits(tokens=100), {})
    tokens.add("a", 60, 39)
    assert tokens.exhausted() is None
    tokens.add("a", 1, 0)
    assert "limits.run.tokens" in str(tokens.exhausted())
    money = Spend(RunLimits(money=1.0), {"a": Price(input=1.0, output=1.0)})
    money.add("a", 1_000_000, 0)
    assert "--set limits.run.money" in str(money.exhausted())


def test_what_other_clients_of_the_run_have_spent_counts_against_its_limits() -> None:
    spend = Spend(RunLimits(tokens=100, money=5.0), {"dear": Price(input=2.0, output=10.0)})
    spend.add("dear", 30, 10)
    assert spend.exhausted() is None
    spend.elsewhere = {"dear": (50, 10)}
    assert str(spend.exhausted()).startswith("limits.run.tokens: 100 of 100 spent")
    spend.elsewhere = {"dear": (1_000_000, 300_000)}
    assert Spend(RunLimits(money=5.0), spend.prices, elsewhere=spend.elsewhere).exhausted() == (
        "limits.run.money: 5.00 of 5.00 spent; resume with --set limits.run.money=MORE"
    )
