"""Pure: which trials of a run `proctor resume --retry` plays again."""

from collections.abc import Callable, Iterable, Mapping

from eval_client.core.selection import SelectionError, matches
from proctor.types import Value


class FinishedRow(Value):
    """A trial with its outcome."""

    id: int
    agent: str
    task: str
    sample: str
    reason: str | None
    """None while the trial is not over."""
    cause: str | None


class Again(Value):
    """What is asked for; a trial must meet each of the criteria that are given."""

    trials: tuple[str, ...] = ()
    """Numbers, or AGENT@TASK/SAMPLE."""
    causes: tuple[str, ...] = ()
    """Parts of the causes of unscored trials; case does not count."""
    samples: tuple[str, ...] = ()
    """Patterns of SAMPLE or TASK/SAMPLE."""

    @classmethod
    def of(cls, selections: Iterable[str]) -> "Again":
        """What is asked for by texts: `sample=PATTERN`, `cause=TEXT`, or a trial."""
        found: dict[str, list[str]] = {"trial": [], "sample": [], "cause": []}
        for each in selections:
            kind, _, text = each.partition("=")
            found[kind if kind in found and text else "trial"].append(text if kind in found and text else each)
        return cls(trials=tuple(found["trial"]), samples=tuple(found["sample"]), causes=tuple(found["cause"]))


_MEETS: Mapping[str, Callable[[FinishedRow, str], bool]] = {
    "trial": lambda row, name: name in (str(row.id), f"{row.agent}@{row.task}/{row.sample}"),
    "sample": lambda row, pattern: matches((pattern,), row.sample, row.task),
    "cause": lambda row, text: row.cause is not None and text.casefold() in row.cause.casefold(),
}


def chosen_again(rows: Callable[[], Iterable[FinishedRow]], asked: Again) -> list[FinishedRow]:
    """The trials to be played again, in the run's order. Raises SelectionError where one asked for is not there.

    `rows` gives all trials of the run: asked once, and once more to say in the error what there is.
    """
    criteria = {"trial": asked.trials, "sample": asked.samples, "cause": asked.causes}
    found, met = list[FinishedRow](), set[tuple[str, str]]()
    for row in rows():
        meets = {option: {name for name in names if _MEETS[option](row, name)} for option, names in criteria.items()}
        met |= {(option, name) for option, names in meets.items() for name in names}
        if all(meets[option] or not names for option, names in criteria.items()):
            found.append(row)
    for option, names in criteria.items():
        for name in names:
            if (option, name) not in met:
                raise SelectionError(f"--retry {option}={name}: {_what_there_is(option, rows())}")
    if not found:
        raise SelectionError("--retry: no trial meets all of trial, cause and sample; give fewer of them")
    return found


def _what_there_is(option: str, rows: Iterable[FinishedRow]) -> str:
    if option == "trial":
        known = [f"{row.agent}@{row.task}/{row.sample}" for row in rows]
        return f"no such trial; they are {_some(known)}, or numbers from 0 to {len(known) - 1}"
    if option == "sample":
        return f"matches nothing; there are {_some(row.sample for row in rows)}"
    causes = _some(row.cause for row in rows if row.cause is not None)
    return f"no trial is unscored for that; causes are: {causes}"


def _some(names: Iterable[str]) -> str:
    each = list(dict.fromkeys(names))
    return ", ".join(each[:3]) + (", ..." if len(each) > 3 else "") if each else "none"
