"""Rebuilds what an agent was sent turn by turn, from the journal of a trial."""

from collections.abc import Iterator, Sequence

from eval_client.store.records import JournalledTools, Turn
from proctor.environment import Transcript
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


def conversation(turns: Sequence[Turn]) -> Iterator[ConversationTurn]:
    """The turns of a journal with the whole history of each, as the client sent it."""
    transcript, tools, shown = Transcript(), JournalledTools(), dict[str, tuple[Message, ...]]()
    for turn in turns:
        observation = Observation.model_validate(tools.whole(turn.observation))
        sent = tuple(transcript.observe(observation))
        action = turn.reply.action if isinstance(turn.reply, Act) else None
        known = _common(shown.get(observation.conversation, ()), sent)
        shown[observation.conversation] = sent if action is None else (*sent, action.message())
        if action is not None:
            transcript.answer(observation, action)
        yield ConversationTurn(
            turn=turn.turn,
            conversation=observation.conversation,
            fresh=observation.fresh,
            earlier=sent[:known],
            messages=sent[known:],
            tools=observation.tools,
            action=action,
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
