"""The plain line that a run prints where there is no terminal."""

from eval_client.core.run_view import RunView
from eval_client.run.screen import line


def view(money: float) -> RunView:
    counts = {"turns": 0, "retries": 0, "attempts_lost": 0, "prompt_tokens": 1, "completion_tokens": 2}
    return RunView(run="r", elapsed_s=1.0, left_s=None, pairs=(), use={}, money=money, troubles=(), shared=(), **counts)


def test_money_stands_in_the_line_where_a_price_is_known() -> None:
    assert "| tokens 3 | money 0.005 |" in line(view(0.005))
    assert "money" not in line(view(0.0))
