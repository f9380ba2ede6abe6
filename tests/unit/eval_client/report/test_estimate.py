"""What a plan will cost, and how money is written."""

import pytest

from eval_client.core.spend import Price
from eval_client.plan.plan import Plan
from eval_client.plan.preview import TrialUsage, preview, typical_usage
from eval_client.plan.price_list import shipped_prices
from proctor.tables.table import money_text

TASKS = [
    {"name": "tables", "environment": "db", "parameters": {"engine": "sqlite"}},
    {"name": "t", "environment": "ltp"},
]


def estimated(**fields: object) -> list[str]:
    """The lines of the estimate."""
    agents = [{"name": "gpt", "model": "gpt-4.1-mini"}, {"name": "naive", "builtin": "naive"}]
    lines = preview(Plan.model_validate({"agents": agents, "tasks": TASKS, **fields}), None).splitlines()
    return lines[next(n for n, line in enumerate(lines) if line.startswith("estimate")) :]


def test_a_dry_run_gives_calls_tokens_and_money_by_pair_and_in_all() -> None:
    usage = typical_usage("db", "text")
    assert usage is not None
    lines = estimated(price_list="shipped", epochs=2)
    assert "medians of the reference policies on the samples that Proctor ships" in lines[0]
    trials = 20 * 2
    prompt, completion = usage.prompt_tokens * trials, usage.completion_tokens * trials
    money = money_text((prompt * 0.4 + completion * 1.6) / 1e6)
    assert lines[1] == (
        f"  gpt x tables: {usage.calls * trials} calls, {prompt:,} tokens in, {completion:,} out, money {money}"
    )
    assert lines[2].startswith("  gpt x t: ")
    assert lines[3].startswith("  total: ")
    assert lines[4] == f"  prices: Proctor's list of {shipped_prices().date} (USD), where the plan has none"
    assert not any("naive" in line for line in lines)


def test_without_prices_there_is_no_money_and_the_list_is_off() -> None:
    lines = estimated()
    assert all("no price is known" in line for line in lines[1:4])
    assert lines[4] == "  no price of gpt: add `price`, or `price_list: shipped`"


def test_the_turns_that_a_plan_allows_bound_the_estimate() -> None:
    assert TrialUsage(calls=4, prompt_tokens=1000, completion_tokens=40).at_most(2) == TrialUsage(
        calls=2, prompt_tokens=500, completion_tokens=20
    )
    assert "gpt x t: 24 calls" in "\n".join(estimated(limits={"trial": {"turns": 2}}))


def test_what_is_not_measured_or_not_paid_by_agents_is_named() -> None:
    judged = {"name": "s", "environment": "ltp", "parameters": {"host": {"model": "gpt-4o"}}}
    lines = estimated(tasks=[judged])
    assert "  not estimated: the tasks' own models (judges, hosts, users)" in lines


@pytest.mark.parametrize(
    ("model", "listed"),
    [
        ("gpt-4.1-mini", "gpt-4.1-mini"),
        ("openai/gpt-4.1-mini", "gpt-4.1-mini"),
        ("gpt-4.1-mini-2025-04-14", "gpt-4.1-mini"),
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("gemini-3.1-pro-preview", "gemini-3.1-pro"),
        ("gpt-4.1-mini-tuned", None),
        ("gpt-5.3", None),
        ("gpt-4o-audio", None),
    ],
)
def test_a_model_has_the_price_of_its_own_name_alone(model: str, listed: str | None) -> None:
    prices = shipped_prices()
    assert prices.price(model) == (None if listed is None else prices.models[listed])


def test_the_plans_own_price_counts_before_the_list() -> None:
    fields = {"price_list": "shipped", "tasks": TASKS, "limits": {"run": {"money": 1}}}
    own = {"name": "a", "model": "gpt-5", "price": {"input": 1, "output": 1}}
    plan = Plan.model_validate({"agents": [own, {"name": "gpt-5"}], **fields})
    assert plan.all_prices()["a"] == Price(input=1, output=1)
    assert plan.all_prices()["gpt-5"] == shipped_prices().models["gpt-5"]
    with pytest.raises(ValueError, match="agent 'tuned' has no `price`"):
        Plan.model_validate({"agents": [{"name": "tuned"}], **fields})


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0.0, "0.00"),
        (0.005, "0.005"),
        (0.00012344, "0.0001234"),
        (0.5, "0.50"),
        (1.2, "1.20"),
        (1.2345, "1.234"),
        (12.3456, "12.35"),
        (99.999, "100.00"),
        (123.456, "123.5"),
        (1234.5678, "1,235"),
        (1234567.0, "1,234,567"),
    ],
)
def test_money_has_four_significant_digits(amount: float, text: str) -> None:
    assert money_text(amount) == text
