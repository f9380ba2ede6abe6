"""Rebuilds what an agent was sent turn by turn, from the journal of a trial."""

from collections.abc import Iterator, Sequence

from eval_client.store.records import JournalledTools, Turn
from eval_client.store.tables import turn_table
from eval_client.store.values import parsed
from proctor.session.transcript import Transcript
from proctor.types import Action, FinishReason, Message, Observation, Tool, Value
from task_server.wire.messages import Act


class ConversationTurn(Value):
    """One turn: what the agent was sent, and what it answered."""

    turn: int
    conversation: str
    fresh: bool
    """Whether the conversation's history was discarded before this turn."""
    earlier: tuple[Message, ...]
    """The messages that the conversation already held and that were sent again."""
    messages: tuple[Message, ...]
    """The messages after them: new, or changed by the environment."""
    tools: tuple[Tool, ...]
    action: Action | None
    """None where the agent stopped."""
    stop: FinishReason | None
    """Why the agent stopped; None where it answered."""
    digest: str
    """The observation's digest: equal where two trials were shown the same."""
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    model_seconds: float
    world_seconds: float | None
    """How long the environment took to make the observation; None in runs of schema 2."""
    tries: int
    finish_reason: str | None
    """The endpoint's; `length` is an answer cut by `max_tokens`."""
    model: str | None
    replica: str | None
    """The URL that answered, where the endpoint has several."""
    metered: bool | None
    """False where the endpoint reported no usage, or a command has its own: the tokens are unknown."""

    @property
    def title(self) -> str:
        """`turn 3`, or where the agent only stopped `after turn 2`."""
        return f"after turn {self.turn - 1}" if self.action is None else f"turn {self.turn}"


def conversation(turns: Sequence[Turn], first: int = 0) -> Iterator[ConversationTurn]:
    """The turns of a journal from an index on, each with its whole history as the client sent it."""
    transcript, tools, histories = Transcript(), JournalledTools(), dict[str, Sequence[Message]]()
    for index, turn in enumerate(turns):
        observation = parsed(
            turn_table.c.observation, lambda text: Observation.model_validate(tools.whole(text)), turn.observation
        )
        action = turn.reply.action if isinstance(turn.reply, Act) else None
        before = histories.get(observation.conversation, ())
        known = len(before)
        sent = transcript.observe(observation)  # adds to `before`, unless the history is sent anew
        histories[observation.conversation] = sent
        if index >= first:
            yield _turn(turn, observation, sent, _common(before, sent) if observation.fresh else known)
        if action is not None:
            transcript.answer(observation, action)


def _turn(turn: Turn, observation: Observation, sent: Sequence[Message], known: int) -> ConversationTurn:
    """A turn of which the first `known` messages had been sent before."""
    return ConversationTurn(
        turn=turn.turn,
        conversation=observation.conversation,
        fresh=observation.fresh,
        earlier=tuple(sent[:known]),
        messages=tuple(sent[known:]),
        tools=observation.tools,
        action=turn.reply.action if isinstance(turn.reply, Act) else None,
        stop=None if isinstance(turn.reply, Act) else turn.reply.reason,
        digest=turn.digest,
        prompt_tokens=turn.prompt_tokens,
        completion_tokens=turn.completion_tokens,
        cached_tokens=turn.cached_tokens,
        reasoning_tokens=turn.reasoning_tokens,
        model_seconds=turn.model_seconds,
        world_seconds=turn.world_seconds,
        tries=turn.tries,
        finish_reason=turn.stop,
        model=turn.model,
        replica=turn.replica,
        metered=turn.metered,
    )


def _common(left: Sequence[Message], right: Sequence[Message]) -> int:
    """The length of the common beginning."""
    pairs = zip(left, right, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a is not b and a != b), min(len(left), len(right)))


def first_difference(left: Sequence[Turn | ConversationTurn], right: Sequence[Turn | ConversationTurn]) -> int | None:
    """The index of the first turn whose observations differ or which only one side has; None where there is none."""
    for index in range(max(len(left), len(right))):
        if index >= min(len(left), len(right)) or left[index].digest != right[index].digest:
            return index
    return None
