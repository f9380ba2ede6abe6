"""Plays one step: runs the tournament with an agent and scores the outcome."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from environments.mind2web.contest import Contest
from environments.mind2web.pages.markup import ElementChoice
from environments.mind2web.prompt import LETTERS
from environments.mind2web.reply import NO_ANSWER, StepReply
from environments.mind2web.scoring import score
from environments.mind2web.tournament import Prediction, Profile, Tournament
from proctor.environment import Agent, AgentStopped
from proctor.published import TASK_STATUS
from proctor.tools import ReplyReader, UnreadableCall
from proctor.types import Finish, FinishReason, Message, Observation, asked_and_answered


class _End(NamedTuple):
    """How a step ended."""

    reason: FinishReason
    upstream: str
    prediction: Prediction = Prediction()
    flag: str | None = None


async def play(
    contest: Contest, agent: Agent, profile: Profile, opening: Sequence[Message], reader: ReplyReader[StepReply]
) -> Finish:
    """Asks about each group, in a dialogue that `opening` begins, and scores the outcome. Raises AgentUnavailable."""
    replies = list[StepReply]()
    if not contest.positives:
        return _finish(contest, profile, _End(FinishReason.COMPLETED, "unknown", flag="no_positive"), replies)
    tournament = Tournament(contest.line(), profile)
    while group := tournament.group():
        page = await asyncio.to_thread(contest.shown, group)
        question = Observation(messages=(*opening, contest.asked(page)), tools=reader.tools, fresh=True)
        try:
            (reply,) = reader.read(await agent.act(question)).actions
        except AgentStopped as stopped:
            first_too_long = not replies and stopped.reason is FinishReason.CONTEXT_LIMIT
            upstream = "agent invalid action" if first_too_long else TASK_STATUS[stopped.reason]
            return _finish(contest, profile, _End(stopped.reason, upstream, tournament.earlier), replies)
        replies.append(NO_ANSWER if isinstance(reply, UnreadableCall) else reply)
        if chosen := choice_of(replies[-1].letter, page.choices):
            tournament.choose(Prediction(chosen.id, replies[-1].action))
    prediction = tournament.prediction
    reason = _reason(prediction, replies, reader.limit_reason())
    return _finish(
        contest, profile, _End(reason, TASK_STATUS[reason], prediction, None if replies else "not_asked"), replies
    )


def words_of(contest: Contest, finish: Finish, *, redistributable: bool) -> dict[str, JsonValue]:
    """What the step asks for, what was recorded, and what was chosen."""
    step, predicted = contest.step, finish.detail["predicted"]
    assert isinstance(predicted, list)
    element, action = map(str, predicted)
    place = "the recorded element" if element in contest.positives else f"another element ({element})"
    asked = f"step {len(step.previous) + 1} of {step.steps}: {step.task}"
    chosen = f"{action} on {place}" if element else ""
    return asked_and_answered(asked, step.words or step.gold_action, chosen, redistributable=redistributable)


def choice_of(letter: str, choices: tuple[ElementChoice, ...]) -> ElementChoice | None:
    """The choice with this letter; None for A and for letters beyond those shown."""
    place = LETTERS.index(letter) - 1
    return choices[place] if 0 <= place < len(choices) else None


def _reason(prediction: Prediction, replies: Sequence[StepReply], limit: FinishReason) -> FinishReason:
    """The finish reason; COMPLETED if the agent was never asked. `limit` is the reader's reason at a limit."""
    if prediction.element or not replies:
        return FinishReason.COMPLETED
    if any(reply.parsed for reply in replies):
        return FinishReason.INVALID_ACTION
    return FinishReason.INVALID_FORMAT if limit is FinishReason.TURN_LIMIT else limit


def _finish(contest: Contest, profile: Profile, end: _End, replies: Sequence[StepReply]) -> Finish:
    step = contest.step
    metrics = score(end.prediction, step.gold_action, set(contest.positives), unquoted=profile == "strict")
    detail: dict[str, JsonValue] = {
        "annotation_id": step.annotation_id,
        "action_uid": step.action_uid,
        "steps": step.steps,
        "website": step.website,
        "domain": step.domain,
        "ranker": contest.ranker,
        "recorded_positives": len(step.positives),
        "positive_rank": contest.best_rank,
        "flag": end.flag,
        "predicted": list(end.prediction),
        "gold": [list(contest.positives), step.gold_action],
        "upstream_status": end.upstream,
    }
    return Finish(
        reason=end.reason,
        score=metrics.step_sr,
        metrics={
            **metrics._asdict(),
            "calls": float(len(replies)),
            "unparsed": float(sum(not reply.parsed for reply in replies)),
            "missing_candidates": float(contest.missing),
        },
        detail=detail,
    )
