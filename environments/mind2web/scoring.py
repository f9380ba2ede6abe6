"""The metrics of one step (Mind2Web, arXiv 2306.06070, section 4; AgentBench v0.2)."""

from collections.abc import Set
from typing import NamedTuple

from environments.mind2web.tournament import Prediction


class Score(NamedTuple):
    """Metrics of one step, each from 0 to 1."""

    element_acc: float
    """1 if the element is right, else 0."""
    action_f1: float
    """F1 of the words of operation and value, even if the element is wrong."""
    step_sr: float
    """1 if element, operation and value are right, else 0."""


_QUOTES = "\"'`*“”‘’"


def score(prediction: Prediction, gold_action: str, positives: Set[str], *, unquoted: bool = False) -> Score:
    """The metrics of a prediction; `positives` are the right elements among those played. All 0 without any.

    `unquoted`: quotes and emphasis around words don't count.
    """
    if not positives:
        return Score(0.0, 0.0, 0.0)
    element = float(prediction.element in positives)
    agreement = action_f1(prediction.action, gold_action, unquoted=unquoted)
    return Score(element, agreement, float(element == 1.0 and agreement >= 1.0))


def action_f1(predicted: str, gold: str, *, unquoted: bool = False) -> float:
    """F1 over two sets of words, case-sensitive; 1 if both are empty, 0 if one is."""
    around = _QUOTES if unquoted else ""
    given, wanted = ({word.strip(around) for word in text.split()} - {""} for text in (predicted, gold))
    if not given and not wanted:
        return 1.0
    common = len(given & wanted)
    if not common:
        return 0.0
    precision, recall = common / len(given), common / len(wanted)
    return 2 * precision * recall / (precision + recall)
