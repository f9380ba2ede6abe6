"""One game: the story, up to 25 questions, and a hint or an answer to each."""

from environments.lateral_thinking.dataset import Puzzle
from environments.lateral_thinking.host import HostedGame, Profile, Ruling
from environments.lateral_thinking.prompt import ROUNDS, WORDINGS, Wording
from environments.lateral_thinking.reply import Screening, question_of, screen
from environments.lateral_thinking.scoring import Tally
from proctor.environment import Agent, AgentStopped
from proctor.types import FinishReason, Message, Observation

ABORT_STEP = 2
"""What a forbidden phrase costs."""
ABORT_LIMIT = 5


async def play(puzzle: Puzzle, host: HostedGame, agent: Agent, profile: Profile) -> tuple[FinishReason, Tally]:
    """How the game ended, and what happened in it. Raises EnvironmentFault and AgentUnavailable."""
    wording, tally, abort = WORDINGS[puzzle.language], Tally(puzzle, profile), 0
    said = wording.instruction.replace("{story}", puzzle.story)
    while tally.rounds < ROUNDS:
        try:
            action = await agent.act(Observation(messages=(Message(role="user", content=said),)))
        except AgentStopped as stopped:
            return stopped.reason, tally
        question = question_of(action.content, profile)
        if question is None:
            return FinishReason.INVALID_FORMAT, tally
        tally.rounds += 1
        verdict = screen(question, puzzle, profile)
        abort += ABORT_STEP if verdict is Screening.GO_ON else 0
        if abort >= ABORT_LIMIT:
            return FinishReason.INVALID_ACTION, tally
        if verdict is not Screening.ASK:
            tally.hints += 1
            said = _hint(wording, verdict)
            continue
        ruling = await host.rule(question, tally.remaining)
        tally.take(ruling)
        if profile == "strict" and not tally.remaining:
            return FinishReason.COMPLETED, tally
        said = _answer(wording, ruling, profile)
    return FinishReason.TURN_LIMIT, tally


def _hint(wording: Wording, verdict: Screening) -> str:
    return {Screening.GO_ON: wording.go_on, Screening.IN_STORY: wording.in_story, Screening.GUESS: wording.guess}[
        verdict
    ]


def _answer(wording: Wording, ruling: Ruling, profile: Profile) -> str:
    """In `compat` what the host said, as published; in `strict` one of three answers, so that no truth slips out."""
    return ruling.said if profile == "compat" and ruling.said is not None else wording.answers[ruling.answer]
