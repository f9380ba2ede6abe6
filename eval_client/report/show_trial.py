"""Shows a trial's conversation on a terminal, alone or beside another one."""

import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from eval_client.report.conversation import ConversationTurn, conversation, first_difference
from eval_client.report.readings import AnswerReader
from eval_client.report.trajectory import AttemptRecord, Trajectory
from proctor.observability.redaction import visible
from proctor.types import Message, ParsedAction, ToolCall

FOLDED = 20_000
"""Characters of a text that are shown whole; of a longer one, the first HEAD are."""
HEAD = 4_000
STYLES = {"system": "magenta", "user": "cyan", "tool": "yellow", "assistant": "green"}


def show_trial(trial: Trajectory, console: Console, read: AnswerReader, turn: int | None = None) -> None:
    """Print the head of a trial and its turns; with `turn`, only that turn with all that was sent."""
    turns = list(conversation(trial.turns))
    console.print(head(trial))
    if turn is not None:
        turns = [each for each in turns if each.turn == turn]
    for each in turns:
        console.print(_rule(each))
        console.print(_turn(each, read, whole=turn is not None))
    if trial.finish is not None and turn is None:
        console.print(Rule("evidence", align="left", style="dim"))
        console.print(Padding(Text(evidence(trial.finish.detail)), (0, 0, 0, 4)))


def show_against(left: Trajectory, right: Trajectory, console: Console, reads: Sequence[AnswerReader]) -> None:
    """Print two trials side by side, from the first turn that differs; what both were shown stands once."""
    console.print(_columns(head(left), head(right)))
    ours, theirs = list(conversation(left.turns)), list(conversation(right.turns))
    first = first_difference(ours, theirs)
    if first is None:
        console.print(Rule("both were shown the same in every turn; the last one", style="dim"))
        first = max(len(ours) - 1, 0)
    elif first:
        console.print(Rule(f"both were shown the same in turns 1 to {first}", style="dim"))
        first -= 1  # the answers that led to the difference
    for number, (a, b) in list(enumerate(zip_longest(ours, theirs), 1))[first:]:
        console.print(Rule(f"turn {number}", style="dim"))
        if a is not None and b is not None and a.digest == b.digest:
            console.print(_messages(a.messages))
            console.print(_columns(_answer(a, reads[0]), _answer(b, reads[1])))
        else:
            console.print(_columns(*(_turn_or_end(each, read) for each, read in zip((a, b), reads, strict=True))))


def head(trial: Trajectory) -> RenderableType:
    """Who played what, the score with its parts, costs, and attempts."""
    lines = [
        Text.assemble(
            (f"{trial.agent} × {trial.task} × {visible(trial.sample)}", "bold"),
            (f", epoch {trial.epoch}    run {trial.run}, trial {trial.trial}", "dim"),
        ),
        _outcome(trial),
        Text(f"{trial.answers} turns, {trial.prompt_tokens:,} tokens in, {trial.completion_tokens:,} out, "
             f"{trial.seconds:.1f} s"),
    ]  # fmt: skip
    if len(trial.attempts) > 1 or any(each.outcome != "finished" for each in trial.attempts):
        lines += [Text(attempt_line(each), style="dim") for each in trial.attempts]
    if len(trial.journals) > 1:
        others = ", ".join(str(each) for each in trial.journals if each != trial.journal)
        lines.append(Text(f"turns of journal {trial.journal}; earlier ones, by --journal: {others}", style="dim"))
    if trial.finish is not None:
        lines.append(_parts(trial.finish.metrics))
    return Group(*(line for line in lines if line.plain))


def attempt_line(attempt: AttemptRecord) -> str:
    """One attempt in words."""
    where = f" on {visible(attempt.worker)}" if attempt.worker else ""
    cause = f": {visible(attempt.cause)}" if attempt.cause else ""
    if attempt.finish is not None and attempt.finish.score is not None:
        cause = f": its score was {attempt.finish.score:.3f} ({attempt.finish.reason}), by journal {attempt.journal}"
    times = f"{attempt.started_at} to {attempt.ended_at}" if attempt.ended_at else attempt.started_at
    return f"attempt {attempt.number}: {attempt.outcome or 'under way'}{where}, {times}{cause}"


def evidence(detail: object) -> str:
    """A finish's detail as JSON, on one line if it is short."""
    flat = json.dumps(detail, ensure_ascii=False)
    return folded(flat if len(flat) < 100 else json.dumps(detail, ensure_ascii=False, indent=2))


def folded(text: str) -> str:
    """A text made visible; of one over FOLDED characters the beginning, with its length."""
    if len(text) > FOLDED:
        text = f"{text[:HEAD]}\n... ({len(text):,} characters; --json has them all)"
    return visible(text)


def _outcome(trial: Trajectory) -> Text:
    finish = trial.finish
    if finish is None:
        return Text("not over yet", style="yellow")
    if finish.score is None:
        return Text(f"no score: {finish.reason}: {visible(str(finish.detail.get('cause')))}", style="red")
    return Text.assemble(("score ", ""), (f"{finish.score:.3f}", "bold"), f"  {finish.reason}")


def _parts(metrics: dict[str, float]) -> Text:
    return Text.assemble(("score parts ", "dim"), "  ".join(f"{name} {value:g}" for name, value in metrics.items()))


def _rule(turn: ConversationTurn) -> Rule:
    facts = [
        turn.title,
        f"conversation {visible(turn.conversation)}",
        f"{turn.prompt_tokens:,} in, {turn.completion_tokens:,} out",
        f"model {turn.model_seconds:.1f} s"
        + ("" if turn.world_seconds is None else f", world {turn.world_seconds:.1f} s"),
        *([f"{turn.tries} tries"] if turn.tries > 1 else []),
        *([f"at {turn.replica}"] if turn.replica else []),
    ]
    return Rule(Text(" · ".join(facts)), align="left", style="dim")


def _turn_or_end(turn: ConversationTurn | None, read: AnswerReader) -> RenderableType:
    return Text("the trial is over", style="dim") if turn is None else _turn(turn, read)


def _turn(turn: ConversationTurn, read: AnswerReader, *, whole: bool = False) -> RenderableType:
    return Group(*_sent(turn, whole), _answer(turn, read))


def _sent(turn: ConversationTurn, whole: bool) -> Iterator[RenderableType]:
    if turn.fresh and turn.turn > 1:
        yield Text("  the environment sent the conversation's history anew", style="dim")
    if turn.earlier and whole:
        yield _messages(turn.earlier)
        yield Rule("new in this turn", style="dim")
    elif turn.earlier:
        yield Text(f"  ({len(turn.earlier)} earlier messages; --turn {turn.turn} shows them)", style="dim")
    if turn.tools and (whole or not turn.earlier):
        yield Text("  functions: " + ", ".join(visible(tool.name) for tool in turn.tools), style="dim")
    yield _messages(turn.messages)


def _messages(messages: Sequence[Message]) -> RenderableType:
    return Group(*(_message(message) for message in messages))


def _message(message: Message) -> RenderableType:
    answers = f" for {visible(message.tool_call_id)}" if message.tool_call_id else ""
    label = Text(f"[{message.role}{answers}]", style=STYLES[message.role])
    return _block(label, message.content, message.tool_calls)


def _answer(turn: ConversationTurn, read: AnswerReader) -> RenderableType:
    if turn.action is None:
        return _block(Text("◂ the agent stopped", style="red"), str(turn.stop), ())
    thought = [_block(Text("◂ reasoning", style="dim"), turn.action.reasoning, ())] if turn.action.reasoning else []
    cut = " (cut by max_tokens)" if turn.finish_reason == "length" else ""
    label = Text.assemble(("◂ answer", "green bold"), (cut, "red"))
    reading = read(turn.action)
    lines = [] if reading is None else [Padding(_reading(reading), (0, 0, 0, 4))]
    return Group(*thought, _block(label, turn.action.content, turn.action.tool_calls), *lines)


def _reading(reading: ParsedAction) -> Text:
    parts = ((visible(reading.kind), "bold"), (folded(reading.text), ""), (visible(reading.problem or ""), "red"))
    return Text("   ").join([Text("read as", style="dim"), *(Text(text, style=style) for text, style in parts if text)])


def _block(label: Text, content: str, calls: Sequence[ToolCall]) -> RenderableType:
    parts = [Text(folded(content))] if content else []
    parts += [Text(_call_line(call), style="bold") for call in calls]
    return Group(Padding(label, (0, 0, 0, 2)), Padding(Group(*parts or [Text("(empty)", style="dim")]), (0, 0, 0, 4)))


def _call_line(call: ToolCall) -> str:
    """A call with its arguments as the model wrote them."""
    return f"call {visible(call.name) or '(no name)'} {folded(call.arguments)}  ({visible(call.id)})"


def _columns(left: RenderableType, right: RenderableType) -> Table:
    table = Table.grid(expand=True, padding=(0, 2))
    table.add_column(ratio=1, overflow="fold")
    table.add_column(ratio=1, overflow="fold")
    table.add_row(left, right)
    return table
