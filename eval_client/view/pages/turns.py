"""The turns of a trial as values that a template shows."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from eval_client.report.conversation import ConversationTurn, conversation
from eval_client.report.readings import AnswerReader
from eval_client.report.show_trial import FOLDED, HEAD
from eval_client.store.records import Turn
from proctor.types import Message, ParsedAction

PAGE = 50
"""Turns of a page."""


class PageText(NamedTuple):
    """A text, or the beginning of a long one."""

    text: str
    part: str
    """What the address of the whole text calls it."""
    length: int | None
    """The characters of the whole text where only its beginning is shown."""


class PageCall(NamedTuple):
    """A call of a function, with its arguments as the model wrote them."""

    name: str
    id: str
    arguments: PageText


class PageMessage(NamedTuple):
    """A message."""

    role: str
    """Of the turn's answer `answer`."""
    answers: str | None
    """The id of the call that it answers."""
    text: PageText
    calls: tuple[PageCall, ...]


class PageTurn(NamedTuple):
    """A turn: what was sent, and the answer."""

    told: ConversationTurn
    facts: tuple[str, ...]
    earlier: tuple[PageMessage, ...]
    """The messages sent again, where they are unfolded."""
    messages: tuple[PageMessage, ...]
    answer: PageMessage | None
    """None where the agent stopped."""
    reading: ParsedAction | None
    """How the environment reads the answer."""
    reading_text: PageText | None
    reasoning: PageText | None
    cut: bool
    """Whether the endpoint cut the answer at `max_tokens`."""


def page_of(turns: Sequence[Turn], turn: int) -> int:
    """The index of the page that has a turn: the last page for a turn after all."""
    place = next((place for place, each in enumerate(turns) if each.turn >= turn), max(len(turns) - 1, 0))
    return place // PAGE


def shown_turns(turns: Sequence[Turn], page: int, unfolded: int, read: AnswerReader) -> Iterator[PageTurn]:
    """The turns of a page; `unfolded` is the turn whose earlier messages are shown too."""
    some = turns[page * PAGE : (page + 1) * PAGE]
    for stored, told in zip(some, conversation(turns, page * PAGE), strict=False):
        yield _turn(stored, told, read, unfolded=told.turn == unfolded)


def part_of(told: ConversationTurn, part: str) -> str | None:
    """The whole text of a part of a turn; None where the turn has no such part."""
    texts = dict(_parts(told))
    return texts.get(part)


def _parts(told: ConversationTurn) -> Iterator[tuple[str, str]]:
    for place, message in enumerate((*told.earlier, *told.messages)):
        yield f"message-{place}", message.content
        yield from ((f"message-{place}-call-{n}", call.arguments) for n, call in enumerate(message.tool_calls))
    if told.action is not None:
        yield "answer", told.action.content
        yield "reasoning", told.action.reasoning
        yield from ((f"answer-call-{n}", call.arguments) for n, call in enumerate(told.action.tool_calls))


def _turn(stored: Turn, told: ConversationTurn, read: AnswerReader, *, unfolded: bool) -> PageTurn:
    known = len(told.earlier)
    action, reading = told.action, read(told.action)
    return PageTurn(
        told=told,
        facts=tuple(_facts(stored, told)),
        earlier=tuple(_message(m, f"message-{n}") for n, m in enumerate(told.earlier)) if unfolded else (),
        messages=tuple(_message(m, f"message-{n}") for n, m in enumerate(told.messages, known)),
        answer=_message(action.message(), "answer")._replace(role="answer") if action is not None else None,
        reading=reading,
        reading_text=None if reading is None else page_text(reading.text, "answer"),
        reasoning=page_text(action.reasoning, "reasoning") if action is not None and action.reasoning else None,
        cut=stored.is_cut,
    )


def _facts(stored: Turn, told: ConversationTurn) -> Iterator[str]:
    yield f"conversation {told.conversation}"
    if stored.metered is False:
        yield "tokens not reported"
    else:
        yield f"{stored.prompt_tokens:,} in, {stored.completion_tokens:,} out"
    yield f"model {stored.model_seconds:.1f} s"
    if stored.world_seconds is not None:
        yield f"world {stored.world_seconds:.1f} s"
    if stored.tries > 1:
        yield f"{stored.tries} tries"
    if stored.model:
        yield stored.model
    if stored.replica:
        yield f"at {stored.replica}"


def _message(message: Message, part: str) -> PageMessage:
    calls = tuple(
        PageCall(call.name, call.id, page_text(call.arguments, f"{part}-call-{n}"))
        for n, call in enumerate(message.tool_calls)
    )
    return PageMessage(message.role, message.tool_call_id, page_text(message.content, part), calls)


def page_text(text: str, part: str) -> PageText:
    """A text as a page shows it: a long one folded."""
    return PageText(text, part, None) if len(text) <= FOLDED else PageText(text[:HEAD], part, len(text))
