"""Scenarios of the language level: meetings from the event logs of action-level runs, saved as JSON."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError

from environments.stss.dataset import SocialTask
from environments.stss.days.transcript import EventLog
from environments.stss.town.schedule import DAY, Commitment, read_stamp, stamp
from proctor.config.wording import first_problem
from proctor.types import Value

A_PAIR = 2
"""Limit of scenarios with the same performer and partner."""
A_TASK = 12
"""Limit of scenarios of one task."""


def _of_day_1(text: str) -> str:
    if read_stamp(text) >= DAY:
        raise ValueError(f"{text} is not on day 1")
    return text


class Scenario(Value):
    """A meeting of performer and partner on day 1, with fixed knowledge and activities of both."""

    id: str
    task: str
    performer: str
    partner: str
    time: Annotated[str, AfterValidator(_of_day_1)]
    """Such as `2023-02-13 10:24`."""
    place: str
    """The sector they are in."""
    met: tuple[str, ...]
    """Names of those the performer has talked to before."""
    doing: str
    """The partner's activity."""
    commitments: tuple[Commitment, ...]
    """The partner's earlier commitments."""

    @property
    def minute(self) -> int:
        """Minutes since the first midnight."""
        return read_stamp(self.time)


class ScenarioFile(Value):
    """A file of scenarios."""

    format: str = Field(pattern=r"^proctor-stss-1$")
    scenarios: tuple[Scenario, ...] = Field(min_length=1)


def load(path: Path) -> tuple[Scenario, ...]:
    """The scenarios of a file. Raises ValueError with file, field and fix."""
    try:
        return ScenarioFile.model_validate_json(path.read_bytes()).scenarios
    except (OSError, ValidationError) as error:
        problem = f"can't be read: {error}" if isinstance(error, OSError) else first_problem(error)
        raise ValueError(f"{path}: {problem}; make it with `proctor export RUN --as stss-scenarios`") from error


def by_task(path: Path, tasks: Mapping[str, SocialTask]) -> dict[str, list[Scenario]]:
    """The scenarios of a file by task. Raises ValueError also if one's task or people are not among `tasks`."""
    found: defaultdict[str, list[Scenario]] = defaultdict(list)
    for scenario in load(path):
        task = tasks.get(scenario.task)
        if task is None or scenario.performer != task.performer or scenario.partner not in task.others:
            raise ValueError(
                f"{path}: {scenario.id}: its task and people are not in the data; "
                "set `data` to that of the run it was made from"
            )
        found[scenario.task].append(scenario)
    return dict(found)


def meetings(task: str, performer: str, targets: Sequence[str], event_log: EventLog) -> Iterator[Scenario]:
    """The performer's meetings on day 1; if there are targets, only those with a target."""
    met: list[str] = []
    for talk in event_log.talks:
        if talk.t >= DAY or performer not in talk.people:
            continue
        partner = next(name for name in talk.people if name != performer)
        if not targets or partner in targets:
            before = [record for record in event_log.of(partner) if record.t <= talk.t and record.kind != "talk"]
            agreed = (each.commitment for each in event_log.agreed if each.who == partner and each.t < talk.t)
            yield Scenario(
                id=f"{task}/{partner}/{talk.t}",
                task=task,
                performer=performer,
                partner=partner,
                time=stamp(talk.t),
                place=before[-1].sector,
                met=tuple(met),
                doing=before[-1].activity,
                commitments=tuple(agreed),
            )
        met.append(partner)


def chosen(found: Iterable[Scenario]) -> list[Scenario]:
    """At most two different scenarios per pair and twelve per task; pairs without one come first."""
    pairs: Counter[tuple[str, str]] = Counter()
    ranked: list[tuple[int, Scenario]] = []
    for scenario in {scenario.id: scenario for scenario in found}.values():
        pair = (scenario.task, scenario.partner)
        ranked.append((pairs[pair], scenario))
        pairs[pair] += 1
    tasks: Counter[str] = Counter()
    kept: list[Scenario] = []
    for rank, scenario in sorted(ranked, key=lambda each: each[0]):
        if rank < A_PAIR and tasks[scenario.task] < A_TASK:
            tasks[scenario.task] += 1
            kept.append(scenario)
    return sorted(kept, key=lambda scenario: (scenario.task, scenario.partner, scenario.time))
