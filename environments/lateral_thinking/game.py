"""One game: the story, up to 25 questions, and a hint or an answer to each."""

from environments.lateral_thinking.dataset import Puzzle
from environments.lateral_thinking.host import HostedGame, Profile, Ruling
from environments.lateral_thinking.prompt import ROUNDS, SOLVER_TEXTS, SolverTexts
from environments.lateral_thinking.reply import Screening, question_of, screen
from environments.lateral_thinking.scoring import Tally
from proctor.environment import Agent, AgentStopped
from proctor.types import FinishReason, Message, Observation

ABORT_STEP = 2
"""Points for a forbidden phrase."""
ABORT_LIMIT = 5
"""Points at which the game ends."""


async def play(puzzle: Puzzle, host: HostedGame, agent: Agent, profile: Profile) -> tuple[FinishReason, Tally]:
    """Plays a game: why it ended, and its tally. Raises EnvironmentFault and AgentUnavailable."""
    texts, tally, abort = SOLVER_TEXTS[puzzle.language], Tally(puzzle, profile), 0
    message = texts.instruction.replace("{story}", puzzle.story)
    while tally.rounds < ROUNDS:
        try:
            action = await agent.act(Observation(messages=(Message(role="user", content=message),)))
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
            message = _hint(texts, verdict)
            continue
        ruling = await host.rule(question, tally.remaining)
        tally.record(ruling)
        if profile == "strict" and not tally.remaining:
            return FinishReason.COMPLETED, tally
        message = _answer(texts, ruling, profile)
    return FinishReason.TURN_LIMIT, tally


def _hint(texts: SolverTexts, verdict: Screening) -> str:
    return {Screening.GO_ON: texts.go_on, Screening.IN_STORY: texts.in_story, Screening.GUESS: texts.guess}[verdict]


def _answer(texts: SolverTexts, ruling: Ruling, profile: Profile) -> str:
    """In `compat` the host's own reply, as published; in `strict` one of three answers, so that no truth leaks."""
    return ruling.reply if profile == "compat" and ruling.reply is not None else texts.answers[ruling.answer]
