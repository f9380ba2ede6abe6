"""The metrics of many sessions: the mean reward, its parts, and counts (arXiv 2308.03688, Appendix H)."""

from collections.abc import Mapping, Sequence

from environments.webshop.catalogue.store import Meta
from proctor.summary import means
from proctor.tools import Protocol
from proctor.types import Finish, FinishReason, Summary

PRIMARY = "reward"
_SESSIONS = {
    PRIMARY: PRIMARY,
    "success_rate": "success",
    "purchase_rate": "purchase",
    "rounds": "rounds",
    "noop_actions": "noop_actions",
}
_PURCHASES = ("r_type", "r_att", "r_option", "r_price")
OWN_CATALOGUE = "The catalogue is invented: these are no WebShop scores."
OWN_WORDS: Mapping[Protocol, str] = {
    "text": "The instruction and its example are in our own words, with the content of the published ones.",
    "tools": "The instruction and the functions are told in our own words, with the content of the published ones.",
}
COVERAGE = "Faults enter no mean; the parts r_type to r_price are means over purchases."


def summarize(finishes: Sequence[Finish], catalogue: Meta, own_words: Protocol | None) -> Summary:
    """Means over all scored sessions, and means of a reward's parts over purchases. A mean over nothing is absent.

    `own_words` is the protocol of a prompt in our own words; None for a published prompt.
    """
    scored = [finish for finish in finishes if finish.score is not None]
    values = {name: [finish.metrics.get(each, 0.0) for finish in scored] for name, each in _SESSIONS.items()}
    values |= {part: [finish.metrics[part] for finish in scored if part in finish.metrics] for part in _PURCHASES}
    metrics = means(values)
    metrics["missing_products"] = sum(finish.metrics.get("missing_products", 0.0) for finish in scored)
    for reason in (FinishReason.TURN_LIMIT, FinishReason.INVALID_FORMAT, FinishReason.CONTEXT_LIMIT):
        metrics[reason.value] = float(sum(finish.reason is reason for finish in scored))
    metrics |= {"requested": float(len(finishes)), "scored": float(len(scored))}
    basis = f"Nouns by {catalogue.nouns}; prices and limits drawn with seed {catalogue.price_seed}."
    wording = () if own_words is None else (OWN_WORDS[own_words],)
    notes = (*(OWN_CATALOGUE,) * catalogue.invented, basis, *wording, COVERAGE)
    return Summary(primary=PRIMARY, metrics=metrics, notes=notes)
