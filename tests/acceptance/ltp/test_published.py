"""`compat` against the published task: 100 games it played with a stub for the judge model, and what it counted."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import pytest
from pydantic import BaseModel

from environments.lateral_thinking.dataset import Puzzle, load
from environments.lateral_thinking.game import game_protocol, play
from environments.lateral_thinking.host import Profile
from environments.lateral_thinking.hosts import model_prompt
from environments.lateral_thinking.hosts.model import ModelGame, PuzzleJudge
from environments.lateral_thinking.prompt import SOLVER_TEXTS
from proctor.environment import Agent
from proctor.llm.cached_model import Replies
from proctor.llm.config import ChatConfig
from proctor.types import Action, Message, Observation
from tests.support import SHARED_DATA, via

LTP = SHARED_DATA / "ltp"
FIGURES = {
    "GP": "game_progress",
    "SGA": "single_game_accuracy",
    "QR": "query_relevance",
    "RE": "round_efficiency",
}


class JudgeReplies(BaseModel):
    """What the published game's stub for the judge model replied."""

    answers: Mapping[str, str]
    restated: Mapping[str, str]
    negated: Mapping[str, str]
    merged: Sequence[str]
    contains: Sequence[tuple[str, str, str]]


class PublishedGame(BaseModel):
    """A game as the published task played it."""

    puzzle: int
    kind: str
    asked: Sequence[str]
    told: Sequence[str]
    judge: JudgeReplies
    judge_calls: int
    published: Mapping[str, float]


class RecordedJudge(PuzzleJudge):
    """Gives a published game's replies, and counts the calls. A prompt that the published game never made is an error.

    A merge's reply is its pieces, joined by blanks: so its prompt is found by its reply.
    """

    def __init__(self, puzzle: Puzzle, recorded: JudgeReplies, client: httpx.AsyncClient, cache: Path) -> None:
        super().__init__(ChatConfig(base_url="http://judge/v1", model="judge"), via(client), Replies(cache))
        self._opening = model_prompt.answer_prompt(puzzle, (), "", "compat")[:-1]
        self._answers = {
            model_prompt.answer_prompt(puzzle, (), question, "compat")[-1]: reply
            for question, reply in recorded.answers.items()
        }
        self._replies_by_prompt = {
            **{model_prompt.statement_prompt("en", q, holds=True): said for q, said in recorded.restated.items()},
            **{model_prompt.statement_prompt("en", q, holds=False): said for q, said in recorded.negated.items()},
            **{model_prompt.merge_prompt("en", [merged]): merged for merged in recorded.merged},
            **{model_prompt.contains_prompt("en", said, key): reply for key, said, reply in recorded.contains},
        }
        self.calls = 0

    async def ask(self, messages: Sequence[Message], profile: Profile) -> str:
        self.calls += 1
        prompt = tuple(messages)
        if prompt[: len(self._opening)] == self._opening:
            return self._answers[prompt[-1]]
        return self._replies_by_prompt[prompt]


class Asking(Agent):
    """Asks what the published game's agent asked, and keeps what it is told."""

    def __init__(self, questions: Sequence[str]) -> None:
        self._questions = iter(questions)
        self.told: list[str] = []

    async def act(self, observation: Observation) -> Action:
        self.told.append(observation.messages[-1].content)
        return Action(content=next(self._questions))


def published_games() -> list[PublishedGame]:
    lines = (LTP / "published_games.jsonl").read_text(encoding="utf-8").splitlines()
    return [PublishedGame.model_validate(json.loads(line)) for line in lines]


def as_published(told: str) -> str:
    hints = {SOLVER_TEXTS["en"].in_story: "hint: in the story", SOLVER_TEXTS["en"].go_on: "hint: invalid"}
    return hints.get(told, told)


@pytest.mark.shared
async def test_compat_counts_as_the_published_task_did_in_all_100_games(tmp_path: Path) -> None:
    puzzles, games = load(LTP / "en" / "dev.xlsx"), published_games()
    async with httpx.AsyncClient() as client:
        for game in games:
            puzzle = puzzles[game.puzzle]
            judge = RecordedJudge(puzzle, game.judge, client, tmp_path)
            agent = Asking(game.asked)
            _, tally = await play(
                puzzle, ModelGame(puzzle, "compat", judge), agent, game_protocol(puzzle, "compat", "text"), "compat"
            )
            place = (game.puzzle, game.kind)
            assert [as_published(told) for told in agent.told[1:]] == game.told, place
            metrics = tally.metrics()
            figures = {name: metrics[ours] for name, ours in FIGURES.items()}
            assert figures == pytest.approx(game.published), place
            assert judge.calls == game.judge_calls, place
    assert Counter(game.kind for game in games).total() == 100


@pytest.mark.shared
def test_the_published_games_have_hints_hits_and_finished_games() -> None:
    """What the test above compares is not all zero."""
    games = published_games()
    told = Counter(told for game in games for told in game.told)
    assert min(told[each] for each in ("Yes", "No", "Irrelevant", "hint: in the story", "hint: invalid")) > 20
    assert sum(game.published["RE"] > 0 for game in games) > 20
