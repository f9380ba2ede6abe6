"""Pairs of a report whose fields a test gives."""

from eval_client.report.pair_report import PairReport


def pair(**fields: object) -> PairReport:
    """A pair of an agent and a task with these fields, and the usual others."""
    usual: dict[str, object] = {
        **{"agent": "a", "task": "t", "environment": "e", "protocol": "text", "planned": 2, "scored": 2},
        **{"primary": "m", "value": 0.5},
        **{"standard_error": None, "metrics": {"m": 0.5}, "notes": (), "comparable": None, "validity": {}},
        **{"faults": {}, "turns": 0, "prompt_tokens": 0, "completion_tokens": 0, "money": None, "seconds": 0.0},
        **{"cached_tokens": None, "reasoning_tokens": None, "helpers": ()},
    }
    return PairReport.model_validate({**usual, **fields})
