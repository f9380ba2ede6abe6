"""Writes a trial's conversation as Markdown."""

import json
import re

from eval_client.report.conversation import ConversationTurn, conversation
from eval_client.report.show_trial import attempt_line
from eval_client.report.trajectory import Trajectory
from proctor.observability.redaction import visible
from proctor.types import Message, ToolCall


def markdown(trial: Trajectory, turn: int | None = None) -> str:
    """The trial as a Markdown document: texts stand in fenced blocks, so that none is read as Markdown."""
    lines = [f"# {trial.agent} × {trial.task} × {_inline(trial.sample)}, epoch {trial.epoch}", ""]
    lines += [f"Run `{trial.run}`, trial {trial.trial}. {_outcome(trial)}", ""]
    lines += [f"- {_inline(attempt_line(each))}" for each in trial.attempts]
    if trial.finish is not None:
        lines += ["", *(f"- {_inline(name)}: {value:g}" for name, value in trial.finish.metrics.items()), ""]
        lines += _fenced(json.dumps(trial.finish.detail, ensure_ascii=False, indent=2), "json")
    for each in conversation(trial.turns):
        if turn in (None, each.turn):
            lines += _turn(each, whole=turn is not None)
    return "\n".join(lines).rstrip() + "\n"


def _outcome(trial: Trajectory) -> str:
    if trial.finish is None:
        return "Not over yet."
    score = "no score" if trial.finish.score is None else f"score {trial.finish.score:.3f}"
    return f"**{score}**, {trial.finish.reason}."


def _turn(turn: ConversationTurn, *, whole: bool) -> list[str]:
    lines = ["", f"## {turn.title.capitalize()}", ""]
    if turn.earlier and not whole:
        lines += [f"*{len(turn.earlier)} earlier messages*", ""]
    for message in (*turn.earlier, *turn.messages) if whole else turn.messages:
        lines += _message(f"{message.role}", message)
    if turn.action is None:
        return [*lines, f"**The agent stopped: {turn.stop}**"]
    return lines + _message("answer", turn.action.message())


def _message(label: str, message: Message) -> list[str]:
    calls = [line for call in message.tool_calls for line in _call(call)]
    return [f"**{label}**", "", *(_fenced(message.content) if message.content or not calls else []), *calls]


def _call(call: ToolCall) -> list[str]:
    return [f"call {_inline(call.name)} ({_inline(call.id)})", "", *_fenced(call.arguments, "json")]


def _inline(text: str) -> str:
    """A text in one line in which nothing is markup."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", visible(text).replace("\n", " "))


def _fenced(text: str, language: str = "text") -> list[str]:
    """A fenced block, with a fence longer than any in the text."""
    longest = max((len(found) for found in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", visible(text), fence, ""]
