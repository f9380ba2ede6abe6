"""Writes a trial's trajectory as Markdown: the one text that terminals, pages and files show of it.

Texts stand in fenced blocks, so that nothing in them is read as Markdown. A turn is a heading of level 2, its messages
are of level 4; those that were sent before are of level 5. A paragraph in bold tells of trouble.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from eval_client.report.task_environment import AnswerReader
from eval_client.store.trials.trajectory import AttemptRecord, ConversationTurn, Trajectory, conversation
from proctor.observability.redaction import redacted, visible
from proctor.tables.table import counted
from proctor.types import Finish, Message

FOLDED = 20_000
"""Characters of a text that are shown whole where long ones are cut; of a longer one, the first HEAD are."""
HEAD = 4_000
EVIDENCE = "evidence"
"""The part of a trial that its score rests on."""
SEVERAL = " · "


class Showing(NamedTuple):
    """What differs between the places that show a trajectory."""

    refer: Callable[[int, str, str], str] = lambda _turn, _part, words: words
    """Markdown that says, with some words, where a part of a turn is that is not shown: its `earlier` messages, or the
    whole of a text that is cut. Turn 0 is the trial."""
    cut: bool = False
    """Whether long texts are cut."""
    public: bool = False
    """Whether secrets are hidden, and the names of workers and the causes of faults, which may be secret, left out."""


def trial_markdown(trial: Trajectory, read: AnswerReader, place: Showing, turn: int | None = None) -> str:
    """The trial as a Markdown document; of one turn alone with all that was sent in it."""
    parts = [head_markdown(trial, place)]
    for each in conversation(trial.turns):
        if turn in (None, each.turn):
            parts.append(f"## {turn_title(each, place)}\n\n{turn_markdown(each, read, place, whole=turn is not None)}")
    if turn is None and trial.finish is not None and (evidence := evidence_markdown(trial.finish, place)):
        parts.append(f"## Evidence\n\n{evidence}")
    return "\n".join(parts)


def head_markdown(trial: Trajectory, place: Showing) -> str:
    """Who played what, the score with its parts, what it cost, and the attempts."""
    title = f"{trial.agent} × {trial.task} × {trial.sample}, epoch {trial.epoch}"
    lines = [f"# {inline(title)}", f"Run {inline(trial.run)}, trial {trial.trial}", _outcome(trial.finish, place)]
    if trial.finish is not None and trial.finish.metrics:
        metrics = trial.finish.metrics.items()
        lines.append("score parts: " + SEVERAL.join(f"{inline(name)} {value:g}" for name, value in metrics))
    tokens = f"{trial.prompt_tokens:,} tokens in, {trial.completion_tokens:,} out"
    lines.append(f"{counted(trial.answers, 'turn')}, {tokens}, {trial.seconds:.1f} s")
    if len(trial.journals) > 1:
        others = ", ".join(str(each) for each in trial.journals if each != trial.journal)
        lines.append(f"turns of journal {trial.journal}; others: {others}")
    return "\n\n".join([*lines, attempts_markdown(trial, place)]) + "\n"


def attempts_markdown(trial: Trajectory, place: Showing) -> str:
    """The attempts as a list; empty where the first one finished."""
    if len(trial.attempts) == 1 and trial.attempts[0].outcome == "finished":
        return ""
    return "\n".join(f"- {_attempt(each, place)}" for each in trial.attempts) + "\n"


def evidence_markdown(finish: Finish, place: Showing) -> str:
    """What the score rests on; empty where there is nothing, and of a fault in public."""
    if not finish.detail or (place.public and finish.reason.is_fault):
        return ""
    told = {name: value for name, value in finish.detail.items() if not (place.public and name == "cause")}
    return "\n".join(_text(evidence_text(told), 0, EVIDENCE, place, "json"))


def evidence_text(detail: dict[str, JsonValue]) -> str:
    return json.dumps(detail, ensure_ascii=False, indent=2)


def turn_title(turn: ConversationTurn, place: Showing) -> str:
    """A turn's heading, in one line."""
    return inline(SEVERAL.join((turn.title.capitalize(), *turn_facts(turn, place))))


def turn_facts(turn: ConversationTurn, place: Showing) -> Iterator[str]:
    """What a turn cost, and where it was answered."""
    yield f"conversation {turn.conversation}"
    if turn.metered is False:
        yield "tokens not reported"
    else:
        yield f"{turn.prompt_tokens:,} in, {turn.completion_tokens:,} out"
    yield f"model {turn.model_seconds:.1f} s"
    if turn.world_seconds is not None:
        yield f"world {turn.world_seconds:.1f} s"
    if turn.tries > 1:
        yield f"{turn.tries} tries"
    if turn.model and not place.public:
        yield turn.model
    if turn.replica and not place.public:
        yield f"at {turn.replica}"


def turn_markdown(turn: ConversationTurn, read: AnswerReader, place: Showing, *, whole: bool = False) -> str:
    """What was sent in a turn, and the answer; `whole` with the messages that were sent before."""
    return f"{sent_markdown(turn, place, whole=whole)}\n{answer_markdown(turn, read, place)}"


def sent_markdown(turn: ConversationTurn, place: Showing, *, whole: bool = False) -> str:
    """What was sent in a turn."""
    lines: list[str] = []
    if turn.fresh and turn.turn > 1:
        lines += ["The environment sent the conversation's history anew.", ""]
    if turn.earlier and whole:
        lines += ["All that was sent in this turn, the earlier messages first:", ""]
        lines += _messages(turn.earlier, turn.turn, 0, place, "#####")
        lines += ["---", "", "new in this turn:", ""]
    elif turn.earlier:
        lines += [place.refer(turn.turn, "earlier", f"{len(turn.earlier):,} earlier messages"), ""]
    if turn.tools:
        lines += ["functions: " + _prose(", ".join(tool.name for tool in turn.tools), place), ""]
    return "\n".join([*lines, *_messages(turn.messages, turn.turn, len(turn.earlier), place)])


def answer_markdown(turn: ConversationTurn, read: AnswerReader, place: Showing) -> str:
    """The answer of a turn, with its reasoning and how the environment reads it; or why there is none."""
    action, lines = turn.action, list(_calls(turn, place))
    if action is None:
        return "\n".join([*lines, f"**The agent stopped: {inline(str(turn.stop))}**\n"])
    if action.reasoning:
        lines += ["#### reasoning", "", *_text(action.reasoning, turn.turn, "reasoning", place)]
    lines += _message("#### answer", action.message(), turn.turn, "answer", place)
    reading = turn.reading or read(action)
    if reading is not None:
        kind = _prose(reading.kind, place)
        lines += [f"#### read as **{kind}**" if kind else "#### read as", ""]
        lines += _text(reading.text, turn.turn, "answer", place) if reading.text else []
        lines += [f"**{_prose(reading.problem, place)}**", ""] if reading.problem else []
    if turn.finish_reason == "length":
        lines += ["**The endpoint cut this answer at max\\_tokens.**", ""]
    return "\n".join(lines)


def turn_texts(turn: ConversationTurn) -> Iterator[tuple[str, str]]:
    """(name, whole text) of the parts of a turn."""
    named = [(f"message-{place}", message) for place, message in enumerate((*turn.earlier, *turn.messages))]
    if turn.action is not None:
        yield "reasoning", turn.action.reasoning
        named.append(("answer", turn.action.message()))
    for number, call in enumerate(turn.calls, 1):
        named += [(f"call-{number}-message-{place}", message) for place, message in enumerate(call.messages)]
        named.append((f"call-{number}-answer", call.action.message()))
    for name, message in named:
        yield name, message.content
        yield from ((f"{name}-call-{n}", call.arguments) for n, call in enumerate(message.tool_calls))


def inline(text: str) -> str:
    """A text in one line in which nothing is markup."""
    return re.sub(r"([\\`*_{}\[\]<>#|&!~])", r"\\\1", visible(text).replace("\n", " "))


def _outcome(finish: Finish | None, place: Showing) -> str:
    if finish is None:
        return "not over yet"
    if finish.score is not None:
        return f"score {finish.score:.3f}, {finish.reason}"
    cause = "" if place.public else f": {_prose(str(finish.detail.get('cause')), place)}"
    return f"**no score: {inline(finish.reason)}{cause}**"


def _attempt(attempt: AttemptRecord, place: Showing) -> str:
    outcome = f"attempt {attempt.number}: **{inline(attempt.outcome or 'under way')}**"
    if place.public:
        return outcome
    where = f" on {attempt.worker}" if attempt.worker else ""
    cause = f": {attempt.cause}" if attempt.cause else ""
    if attempt.finish is not None and attempt.finish.score is not None:
        cause = f": its score was {attempt.finish.score:.3f} ({attempt.finish.reason}), by journal {attempt.journal}"
    begun, ended = (None if at is None else at[:19].replace("T", " ") for at in (attempt.started_at, attempt.ended_at))
    return outcome + inline(f"{where}, begun {begun}{f', ended {ended}' if ended else ''}{cause}")


def _calls(turn: ConversationTurn, place: Showing) -> Iterator[str]:
    """What a function asked its model in a turn, and what that answered."""
    for number, call in enumerate(turn.calls, 1):
        facts = [f"after {call.after:,} message{'s' * (call.after != 1)} of the conversation"]
        facts += [f"{name} {json.dumps(value)}" for name, value in call.sampling.items()]
        facts += [f"functions: {', '.join(call.tools)}"] if call.tools else []
        facts += [f"{call.prompt_tokens:,} in, {call.completion_tokens:,} out", f"model {call.model_seconds:.1f} s"]
        yield from (f"#### call {number}", "", _prose(SEVERAL.join(facts), place), "")
        yield from _messages(call.messages, turn.turn, 0, place, "#####", part=f"call-{number}-message")
        yield from _message("##### answered", call.action.message(), turn.turn, f"call-{number}-answer", place)


def _messages(
    messages: Sequence[Message], turn: int, first: int, place: Showing, level: str = "####", *, part: str = "message"
) -> Iterator[str]:
    for number, message in enumerate(messages, first):
        answers = f" answers {_prose(message.tool_call_id, place)}" if message.tool_call_id else ""
        yield from _message(f"{level} {message.role}{answers}", message, turn, f"{part}-{number}", place)


def _message(heading: str, message: Message, turn: int, part: str, place: Showing) -> Iterator[str]:
    yield from (heading, "")
    if message.content or not message.tool_calls:
        yield from _text(message.content, turn, part, place)
    for number, call in enumerate(message.tool_calls):
        name = _prose(call.name, place) or "(no name)"
        yield from (f"call **{name}** {_prose(call.id, place)}".rstrip(), "")
        yield from _text(call.arguments, turn, f"{part}-call-{number}", place, "json")


def _text(text: str, turn: int, part: str, place: Showing, language: str = "text") -> Iterator[str]:
    """A text in a fence longer than any in it; of a long one the beginning, and where the rest is."""
    shown = redacted(text) if place.public else text
    length = len(shown)
    if place.cut and length > FOLDED:
        shown = shown[:HEAD]
    shown = visible(shown)
    fence = "`" * max(3, 1 + max((len(found) for found in re.findall("`+", shown)), default=0))
    yield from (f"{fence}{language}", shown, fence, "")
    if place.cut and length > FOLDED:
        yield f"The first {HEAD:,} of {length:,} characters{SEVERAL}{place.refer(turn, part, 'whole text')}"
        yield ""


def _prose(text: str, place: Showing) -> str:
    return inline(redacted(text) if place.public else text).strip()
