"""The measures of one step (Mind2Web, arXiv 2306.06070, section 4; AgentBench v0.2)."""

from collections.abc import Set
from typing import NamedTuple

from environments.mind2web.ranking.tournament import Prediction


class Score(NamedTuple):
    """Each from 0 to 1."""

    element_acc: float
    """The element is right."""
    action_f1: float
    """How much operation and value agree, word by word; also where the element is wrong."""
    step_sr: float
    """Element, operation and value are right."""


def score(prediction: Prediction, gold_action: str, positives: Set[str]) -> Score:
    """The measures of a prediction; `positives` are the right elements that the agent could be shown."""
    if not positives:
        return Score(0.0, 0.0, 0.0)
    element = float(prediction.element in positives)
    agreement = action_f1(prediction.action, gold_action)
    return Score(element, agreement, float(element == 1.0 and agreement >= 1.0))


def action_f1(predicted: str, gold: str) -> float:
    """F1 over two sets of words, upper and lower case differing: 1 where both are empty, 0 where just one is."""
    said, wanted = set(predicted.split()), set(gold.split())
    if not said and not wanted:
        return 1.0
    common = len(said & wanted)
    if not common:
        return 0.0
    precision, recall = common / len(said), common / len(wanted)
    return 2 * precision * recall / (precision + recall)
