"""Pure: what may be published of texts that name machines."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from eval_client.core import Pair
from eval_client.report.compare.values import Comparison
from eval_client.report.pair_report import RunReport
from eval_client.store.trials.scores import TrialFacts
from proctor.observability.redaction import redacted, visible
from proctor.types import Value

WARNING = "This file holds benchmark data: prompts, solutions and answers. Keep it out of training data."
Quoting = TypeVar("Quoting", bound=Value)
_ADDRESS = re.compile(
    r"\b[a-z][a-z0-9+.-]*://\S+|\b(?=[\w.-]*[a-z.])[\w.-]*\w:\d{2,5}\b|\b\d{1,3}(?:\.\d{1,3}){3}\b"
    r"|(?!pass@[\dk]+\b)\b\S+@\S+",
    re.IGNORECASE,
)
"""Also names of machines with a port, and names of users; not times of day, and not pass@k."""
_PATH = re.compile(r"(?<![\w.])(?:~|\.{1,2}|[A-Za-z]:)?[/\\][^\s,;:'\")]+")


def publishable(text: str) -> str:
    """A text of Proctor or an environment without secrets, addresses and file paths."""
    return visible(_PATH.sub("[path]", _ADDRESS.sub("[address]", redacted(text))))


def model_name(name: str) -> str:
    """A model's name at its endpoint; of one that is a file path, the last part."""
    local = name.startswith(("/", "~", ".")) or "\\" in name or "://" in name
    return publishable(re.split(r"[/\\]", name.rstrip("/\\"))[-1]) if local else visible(redacted(name))


def publishable_report(made: RunReport, facts: Mapping[Pair, Sequence[TrialFacts]]) -> RunReport:
    """The report without what may quote addresses, paths or samples: a fault is named by its kind alone."""
    pairs = []
    for pair in made.pairs:
        unscored = (trial.reason for trial in facts[pair.agent, pair.task] if trial.score is None)
        kinds = Counter(reason.replace("_", " ") for reason in unscored if reason is not None)
        changed = {
            "faults": dict(kinds),
            "notes": tuple(map(publishable, pair.notes)),
            "comparable": None if pair.comparable is None else publishable(pair.comparable),
            "helpers": tuple(each.model_copy(update={"model": model_name(each.model)}) for each in pair.helpers),
        }
        pairs.append(pair.model_copy(update=changed))
    return made.model_copy(update={"pairs": tuple(pairs), "notes": tuple(map(publishable, made.notes))})


def publishable_comparison(found: Comparison) -> Comparison:
    """A comparison without what may quote addresses and paths."""
    tasks = tuple(_published(row, "warnings") for row in found.tasks)
    return _published(found, "alike", "gates").model_copy(update={"tasks": tasks})


def _published(value: Quoting, *names: str) -> Quoting:
    """A value with some of its fields of texts publishable."""
    return value.model_copy(update={name: tuple(map(publishable, getattr(value, name))) for name in names})
