"""One game: the story, up to 25 questions, and a hint or an answer to each."""

from functools import partial
from typing import NamedTuple

from environments.lateral_thinking.dataset import Language, Puzzle
from environments.lateral_thinking.host import HostedGame, Profile, Ruling
from environments.lateral_thinking.prompt import CALL_TEXTS, ROUNDS, SOLVER_TEXTS, SolverTexts
from environments.lateral_thinking.reply import Question, Screening, question_of, screen, toolset
from environments.lateral_thinking.scoring import Tally
from proctor.environment import Agent, AgentStopped
from proctor.tools import CallReader, Protocol, ReplyReader, TextReader, UnreadableCall
from proctor.types import FinishReason, Message, Observation

ABORT_STEP = 2
"""Points for a forbidden phrase."""
ABORT_LIMIT = 5
"""Points at which the game ends."""
Ending = tuple[FinishReason, Tally]


class GameProtocol(NamedTuple):
    """What differs between the protocols of a game."""

    opening: tuple[Message, ...]
    reader: ReplyReader[Question]


def game_protocol(puzzle: Puzzle, profile: Profile, protocol: Protocol) -> GameProtocol:
    """A game's first messages, and a reader of its replies."""
    reader = question_reader(puzzle.language, profile, protocol)
    if protocol == "text":
        instruction = _with_story(SOLVER_TEXTS[puzzle.language].instruction, puzzle)
        return GameProtocol((Message(role="user", content=instruction),), reader)
    texts = CALL_TEXTS[puzzle.language]
    rules = Message(role="system", content=texts.system)
    story = Message(role="user", content=_with_story(texts.story, puzzle))
    return GameProtocol((rules, story), reader)


def question_reader(language: Language, profile: Profile, protocol: Protocol) -> ReplyReader[Question]:
    """How the replies of one game are read; the language shapes only how the function is described."""
    if protocol == "tools":
        return CallReader(toolset(language, profile), strict=profile != "compat")
    return TextReader(partial(question_of, profile=profile))


def _with_story(text: str, puzzle: Puzzle) -> str:
    return text.replace("{story}", puzzle.story)


async def play(puzzle: Puzzle, host: HostedGame, agent: Agent, spoken: GameProtocol, profile: Profile) -> Ending:
    """Plays a game: why it ended, and its tally. Raises EnvironmentFault and AgentUnavailable."""
    texts, tally, abort = SOLVER_TEXTS[puzzle.language], Tally(puzzle, profile), 0
    messages, reader = spoken.opening, spoken.reader
    while tally.rounds < ROUNDS:
        try:
            reply = reader.read(await agent.act(Observation(messages=messages, tools=reader.tools)))
        except AgentStopped as stopped:
            return stopped.reason, tally
        question = reply.actions[0]
        if question is None:
            return FinishReason.INVALID_FORMAT, tally
        tally.rounds += 1
        if isinstance(question, UnreadableCall):
            messages = reply.answered([question.why])
            continue
        verdict = screen(question, puzzle, profile)
        abort += ABORT_STEP if verdict is Screening.GO_ON else 0
        if abort >= ABORT_LIMIT:
            return FinishReason.INVALID_ACTION, tally
        if verdict is not Screening.ASK:
            tally.hints += 1
            messages = reply.answered([_hint(texts, verdict)])
            continue
        ruling = await host.rule(question, tally.remaining)
        tally.record(ruling)
        if profile == "strict" and not tally.remaining:
            return FinishReason.COMPLETED, tally
        messages = reply.answered([_answer(texts, ruling, profile)])
    return reader.limit_reason(), tally


def _hint(texts: SolverTexts, verdict: Screening) -> str:
    return {Screening.GO_ON: texts.go_on, Screening.IN_STORY: texts.in_story, Screening.GUESS: texts.guess}[verdict]


def _answer(texts: SolverTexts, ruling: Ruling, profile: Profile) -> str:
    """In `compat` the host's own reply, as published; in `strict` one of three answers, so that no truth leaks."""
    return ruling.reply if profile == "compat" and ruling.reply is not None else texts.answers[ruling.answer]
