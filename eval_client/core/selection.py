"""Pure: which samples of a task a run plays, and which of its trials `proctor resume --retry` plays again."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from pydantic import Field

from proctor.environment import Environment, SampleSelection
from proctor.types import Value


class SelectionError(ValueError):
    """A pattern chooses nothing; the message names it and what there is."""

    def __init__(self, message: str, where: tuple[str | int, ...] = (), text: str = "") -> None:
        """`where`: the place below a task's `samples` in a plan; `text`: the message without the field's name."""
        super().__init__(message)
        self.where, self.text = where, text or message


class Filters(Value):
    """What was chosen from a plan on the command line; patterns have the wildcards `*`, `?` and `[...]`."""

    tasks: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    """Patterns of SAMPLE or of TASK/SAMPLE."""
    exclude: tuple[str, ...] = ()
    added: tuple[str, ...] = Field(default=(), exclude_if=lambda patterns: not patterns)
    """Patterns as those of `samples`, of what `proctor extend` added whatever the others and limits leave out."""
    left_out: tuple[str, ...] = Field(default=(), exclude_if=lambda lines: not lines)
    """What `tasks` and `agents` leave out of the plan, for reports."""


NO_FILTERS = Filters()


class Catalogue(NamedTuple):
    """The samples of a task with what the environment says of each."""

    cluster_of: Mapping[str, str]
    """sample -> its cluster, in the task's order"""
    category_of: Mapping[str, str]
    """sample -> its category; all empty where the environment has none"""


def catalogue_of(environment: Environment) -> Catalogue:
    """The samples of an environment. Raises ValueError on broken data."""
    samples = environment.samples()
    return Catalogue(
        {sample: environment.cluster(sample) for sample in samples},
        {sample: environment.category(sample) for sample in samples},
    )


class ChosenSamples(NamedTuple):
    """The samples of a task that a run plays, in the task's order."""

    samples: tuple[str, ...]
    of: int
    """How many samples the task has."""
    text: str
    """How the samples were chosen; empty where all are played."""
    by: tuple[str, ...]
    """The options and fields that left samples out."""


def matches(patterns: Iterable[str], name: str, task: str | None = None) -> bool:
    """Whether a name is one of the patterns or matches one; with `task`, TASK/NAME may match too."""
    names = (name,) if task is None else (name, f"{task}/{name}")
    return any(each == pattern or fnmatchcase(each, pattern) for pattern in patterns for each in names)


def check_matched(option: str, patterns: Iterable[str], names: Sequence[str]) -> None:
    """Raises SelectionError for a pattern that matches no name."""
    for index, pattern in enumerate(patterns):
        if not any(matches((pattern,), name) for name in names):
            raise no_match(option, pattern, names, ("include", index))


def no_match(option: str, pattern: str, names: Sequence[str], where: tuple[str | int, ...] = ()) -> SelectionError:
    """The error of a pattern that chooses nothing among names."""
    from difflib import get_close_matches  # costs what only a mistake needs

    close = get_close_matches(pattern, names, n=3, cutoff=0.5) or names[:3]
    more = ", ..." if len(names) > len(close) else ""
    text = f"matches nothing; there are {', '.join(close)}{more}"
    return SelectionError(f"{option} {pattern}: {text}", where, f"{pattern!r} {text}")


def choose(
    task: str,
    catalogue: Catalogue,
    of_plan: SampleSelection | None,
    filters: Filters = NO_FILTERS,
    limit: int | None = None,
) -> ChosenSamples:
    """The samples that the plan's selection, the filters and the limit leave; `limit` takes the plan's limit's place.

    Raises SelectionError where a pattern of the plan matches no sample, or the plan's selection leaves none.
    """
    names, field = tuple(catalogue.cluster_of), f"tasks.{task}.samples"
    plan = of_plan or SampleSelection()
    check_matched(f"{field}.include:", plan.include, names)
    left = [each for each in names if matches(plan.include, each) or not plan.include]
    left = [each for each in left if not matches(plan.exclude, each)]
    if not left:
        text = f"leaves none of the {len(names)} samples; let `exclude` match fewer"
        raise SelectionError(f"{field}: {text}", ("exclude",), text)
    by = [field] if len(left) < len(names) else []
    before = len(left)
    left = [each for each in left if not filters.samples or matches(filters.samples, each, task)]
    by += ["--sample"] if len(left) < before else []
    before = len(left)
    left = [each for each in left if not matches(filters.exclude, each, task)]
    by += ["--exclude"] if len(left) < before else []
    most = limit or plan.limit
    if most is not None and most < len(left):
        by.append("--limit" if limit is not None else field)
        left = _spread(task, left, catalogue, plan.shuffle_seed)[:most]
    kept = set(left)
    samples = tuple(each for each in names if each in kept or matches(filters.added, each, task))
    by = by if len(samples) < len(names) else []
    text = _text(samples, len(names), by, catalogue.category_of) if by else ""
    return ChosenSamples(samples, len(names), text, tuple(dict.fromkeys(by)))


def part_of(task: str, sample: str, of: int) -> int:
    """The part, from 1, of a plan in `of` parts that plays a sample: by its name alone, so other samples move none."""
    digest = hashlib.blake2b(f"{task}\0{sample}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % of + 1


def _spread(task: str, samples: Sequence[str], catalogue: Catalogue, shuffle_seed: int | None) -> list[str]:
    """The samples in the order in which a limit takes them, so that a higher limit adds samples and changes none.

    One of each category comes first, then categories by their sizes; in a category, clusters in the same way.
    """
    if shuffle_seed is not None:
        samples = sorted(samples, key=lambda each: hashlib.blake2b(f"{shuffle_seed}\0{task}\0{each}".encode()).digest())
    categories = dict.fromkeys(catalogue.category_of[each] for each in samples)
    of_category = ([each for each in samples if catalogue.category_of[each] == category] for category in categories)
    grouped = [each for group in of_category for each in _in_turn(group, catalogue.cluster_of)]
    return _in_turn(grouped, catalogue.category_of)


def _in_turn(samples: Sequence[str], group_of: Mapping[str, str]) -> list[str]:
    """The samples with the first of every group in front, then groups by their sizes (Adams' method)."""
    size, seen = Counter(group_of[each] for each in samples), Counter[str]()
    keys: dict[str, float] = {}
    for each in samples:
        group = group_of[each]
        keys[each] = seen[group] / size[group]
        seen[group] += 1
    return sorted(samples, key=keys.__getitem__)


def _text(samples: Sequence[str], of: int, by: Sequence[str], category_of: Mapping[str, str]) -> str:
    counts = Counter(category_of[each] for each in samples)
    categories = f": {', '.join(f'{count} x {name}' for name, count in counts.items())}" if any(counts) else ""
    return f"{len(samples)} of {of} samples are played, chosen by {' and '.join(dict.fromkeys(by))}{categories}"


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
