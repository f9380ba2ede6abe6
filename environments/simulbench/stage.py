"""One stage of the benchmark: what its samples are, how one is played, what many of them say."""

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
from environments.simulbench.summary import GIVEN_WORDING, WORDING
from proctor.environment import Agent, Policy
from proctor.types import Finish, Summary, Value

Direction = Literal["both", "random"]


class Setting(Value):
    """The fields of the environment that its stages go by."""

    data: Path | None
    types: Path | None
    profile: Profile
    system: str | None
    ensure_ascii: bool
    max_response_chars: int
    direction: Direction
    count: int
    judged_by: str
    """`rules`, or the model."""
    published: PublishedJudge | None
    """What a judge is told in the place of our own prompt."""

    @property
    def wording(self) -> str:
        """Whose words the judge's prompt has, for notes."""
        return WORDING if self.published is None else GIVEN_WORDING

    @property
    def tries(self) -> int:
        """Answers asked for before a judge or author counts as unreadable."""
        return TRIES[self.profile]


Record = TypeVar("Record", Task, Dialogue, Script, Pair)


class Stage(ABC):
    """A mode of the environment."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    @abstractmethod
    def samples(self) -> tuple[str, ...]:
        """The ids of all samples."""

    @abstractmethod
    def shape(self) -> object:
        """The data that shape a trial."""

    @abstractmethod
    def about(self, sample: str) -> dict[str, JsonValue]:
        """What every finish says of its sample: `type` and `licence` at least. Raises ValueError."""

    @abstractmethod
    async def play(self, sample: str, agent: Agent, seed: int, judges: Judges) -> Finish:
        """One session. Raises Unparsed where a judge, user or author can't be read, and AgentStopped."""

    @abstractmethod
    def policies(self, sample: str, seed: int) -> tuple[Policy, Policy, Policy]:
        """The reference, the naive and the random one."""

    @abstractmethod
    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        """The metrics of many finishes."""


class Records(Stage, Generic[Record]):
    """A stage over records of one kind; unless it says otherwise, its samples."""

    def __init__(self, setting: Setting, records: Iterable[Record]) -> None:
        super().__init__(setting)
        self.records: Mapping[str, Record] = {record.id: record for record in records}

    def samples(self) -> tuple[str, ...]:
        return tuple(self.records)

    def shape(self) -> object:
        return list(self.records.values())

    def about(self, sample: str) -> dict[str, JsonValue]:
        record = self.record(sample)
        return {"type": record.type, "licence": record.licence}

    def record(self, sample: str) -> Record:
        """The record of a sample. Raises ValueError."""
        if sample not in self.records:
            raise ValueError(f"no sample {sample!r}; ids look like {next(iter(self.records))}")
        return self.records[sample]
