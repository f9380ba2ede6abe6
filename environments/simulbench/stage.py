"""Interface of the benchmark's stages: samples, play, policies, summary."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Generic, Literal, TypeVar

from pydantic import JsonValue

from environments.simulbench.judges.interview import TRIES
from environments.simulbench.judges.judges import Judges
from environments.simulbench.published import PublishedJudge
from environments.simulbench.records import Dialogue, Pair, Script, Task
from environments.simulbench.reply import Profile
from environments.simulbench.summary import GIVEN_PROMPT_NOTE, OWN_PROMPT_NOTE
from proctor.environment import Agent, Policy
from proctor.types import Finish, Summary, Value

Direction = Literal["both", "random"]


class Setting(Value):
    """The environment's fields that its stages use."""

    data: Path | None
    types: Path | None
    task_config: Path | None
    profile: Profile
    system: str | None
    ensure_ascii: bool
    max_response_chars: int
    direction: Direction
    count: int
    judged_by: str
    """Name of the judge for notes: the rules, or the model."""
    published: PublishedJudge | None
    """The judge prompt of the file `prompts`; None for our own."""

    @property
    def prompt_note(self) -> str:
        """The note on the judge's prompt."""
        return OWN_PROMPT_NOTE if self.published is None else GIVEN_PROMPT_NOTE

    def reminder(self, text: str) -> str | None:
        """The reminder after an unreadable answer of a judge; none in `compat`, as published: it is asked again."""
        return None if self.profile == "compat" else text

    @property
    def tries(self) -> int:
        """Limit of answers requested from a judge or author for one question."""
        return TRIES[self.profile]


Record = TypeVar("Record", Task, Dialogue, Script, Pair)


class Stage(ABC, Generic[Record]):
    """A stage of the benchmark, which is a mode of the environment, with records of one kind."""

    def __init__(self, setting: Setting, records: Iterable[Record]) -> None:
        self.setting = setting
        self.records: Mapping[str, Record] = {record.id: record for record in records}

    def samples(self) -> tuple[str, ...]:
        """The ids of all samples, by default those of the records."""
        return tuple(self.records)

    def shape(self) -> object:
        """The data that shape trials, for the digest."""
        return list(self.records.values())

    def about(self, sample: str) -> dict[str, JsonValue]:
        """Fields of the sample for every finish's detail, at least `type` and `licence`. Raises ValueError."""
        record = self.record(sample)
        return {"type": record.type, "licence": record.licence}

    def record(self, sample: str) -> Record:
        """The record of a sample. Raises ValueError if there is none."""
        if sample not in self.records:
            raise ValueError(f"no sample {sample!r}; ids look like {next(iter(self.records))}")
        return self.records[sample]

    def cluster(self, sample: str) -> str:
        """The simulation task of the sample, by default the sample itself."""
        return sample

    @abstractmethod
    async def play(self, sample: str, agent: Agent, seed: int, judges: Judges) -> Finish:
        """Plays one session. Raises AgentStopped, and Unparsed if answers of a judge, user or author are unreadable."""

    @abstractmethod
    def policies(self, sample: str, seed: int) -> tuple[Policy, Policy, Policy]:
        """The reference, the naive and the random policy."""

    @abstractmethod
    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        """The metrics of many finishes."""
