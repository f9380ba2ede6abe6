"""Records of the stages: tasks, dialogues, scripts, pairs (SimulBench, arXiv 2409.07641, section 2)."""

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, model_validator

from proctor.types import Message, Value

TURNS = 4
"""Number of exchanges in a whole dialogue."""
PUBLISHED_LICENCE = "CC BY-NC 4.0: SimulBench, Jia, Yue, Zheng, Huang and Lin 2024 (arXiv 2409.07641)"
"""Licence of records that name none, as in the published files."""
CHANGED = "; changed by models in Proctor"
"""Appended to the licence of records made from published ones, as that licence demands."""

Mode = Literal["script", "live", "compare"]
"""The stages of the benchmark."""
Kind = Literal["stateful", "stateless"]
Place = Literal["lastonly", "firstchan", "subseqchan"]
Strategy = Literal["dissatisfaction", "next_step", "harder", "other"]
"""A user's reason for its next request: the four strategies of the paper's Appendix B.2."""
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
"""In the order of their numbers in prompts, from 1."""


def _text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Id = Annotated[str, BeforeValidator(_text), Field(min_length=1)]
"""A non-empty string; whole numbers, as in the published files, are converted."""


class DialogueLine(Value):
    """One message of a dialogue."""

    role: Literal["user", "assistant"]
    content: str

    def message(self) -> Message:
        """The line as a chat message."""
        return Message(role=self.role, content=self.content)


class Exchange(Value):
    """A request, and a reply known to be right."""

    request: str = Field(min_length=1)
    strategy: Strategy | None = None
    """None for the first request, which is the task itself."""
    answer: str = Field(min_length=1)
    facts: tuple[str, ...] = Field(min_length=1)
    """Texts that every right reply contains."""


def _of_all_turns(exchanges: tuple[Exchange, ...]) -> tuple[Exchange, ...]:
    if len(exchanges) not in (0, TURNS):
        raise ValueError(f"there must be {TURNS}, or none")
    return exchanges


Exchanges = Annotated[tuple[Exchange, ...], AfterValidator(_of_all_turns)]
"""The exchanges of a whole dialogue; empty if right replies are not known."""


class Task(Value):
    """A task of simulation; fields as in the published `simulbench_tasks.jsonl`."""

    id: Id
    act: str
    """The role of the agent."""
    task_description: str = Field(min_length=1)
    """The first message to the agent."""
    request_type: str
    """Kind of the user's next messages, such as "your next move"."""
    type: Kind
    licence: str = PUBLISHED_LICENCE
    exchanges: Exchanges = ()
    """A whole dialogue with right replies; empty if there is none."""


class TaskConfig(Value):
    """What the user is to send in a task; fields as in the published `task_specific_config.json`."""

    request_type: str | None = Field(default=None, min_length=1)
    """In place of the task's own; None for that."""
    strategy_type: str | None = Field(default=None, min_length=1)
    """What the request must be like, beside that."""

    def applied(self, task: Task) -> Task:
        """The task with a request type that says both."""
        parts = (self.request_type or task.request_type, self.strategy_type)
        return task.model_copy(update={"request_type": ": ".join(filter(None, parts))})


class Dialogue(Value):
    """A whole dialogue; its last message is a reply."""

    id: Id
    source_id: str
    act: str
    task_description: str
    type: Kind
    source_file_name: str
    """The simulating agent as `<agent>.json`; `<agent>-<n>.json` from its second dialogue of a task on."""
    messages: tuple[DialogueLine, ...]
    strategies: tuple[Strategy, ...] = ()
    """Strategies of the requests, from the second request on."""
    licence: str = PUBLISHED_LICENCE
    exchanges: Exchanges = ()

    @model_validator(mode="after")
    def _is_whole(self) -> "Dialogue":
        if [line.role for line in self.messages] != ["user", "assistant"] * TURNS:
            raise ValueError(f"messages must be {TURNS} exchanges, each a user's and an assistant's message")
        return self


class Script(Value):
    """A dialogue up to a request whose reply is judged; fields as in the published `simulbench_all.jsonl`.

    Its first message is the task's description, except in four published scripts (ids 45 to 48), which have an edited
    one.
    """

    id: Id
    source_id: str
    act: str
    task_description: str
    type: Kind
    source_file_name: str
    turn_num: int = Field(ge=0, le=TURNS)
    """The turn to be answered, from 1; 0 for the last one of a dialogue without challenging turns."""
    dialogue_history: tuple[DialogueLine, ...] = Field(min_length=1)
    licence: str = PUBLISHED_LICENCE
    exchange: Exchange | None = None
    """The request with its right reply; None if none is known, as in the published scripts."""

    @model_validator(mode="after")
    def _is_a_history(self) -> "Script":
        roles = [line.role for line in self.dialogue_history]
        if roles != ["user", "assistant"] * (len(roles) // 2) + ["user"]:
            raise ValueError("dialogue_history must alternate between user and assistant, and start and end with user")
        if len(roles) != 2 * (self.turn_num or TURNS) - 1:
            wanted = 2 * (self.turn_num or TURNS) - 1
            raise ValueError(f"dialogue_history has {len(roles)} messages; turn_num {self.turn_num} needs {wanted}")
        return self


class Pair(Value):
    """Two responses to one script: `a` is the reference model's, `b` the candidate's."""

    id: Id
    type: Kind
    place: Place
    dialogue_history: tuple[DialogueLine, ...] = Field(min_length=1)
    a: str
    b: str
    model_a: str
    model_b: str
    licence: str = PUBLISHED_LICENCE
    exchange: Exchange | None = None


def plain(history: tuple[DialogueLine, ...]) -> list[JsonValue]:
    """Messages as JSON, for a prompt or a file."""
    return [{"role": line.role, "content": line.content} for line in history]
