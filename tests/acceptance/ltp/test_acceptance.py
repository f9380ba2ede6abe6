"""The acceptance list of the lateral thinking puzzles, one test a line under its number, and its bad inputs.

Line 5 is tests/conformance and tests/faults/test_environments.py; of line 4, strict is golden/ltp.jsonl.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import httpx
import pytest
from openpyxl import Workbook

from environments.lateral_thinking.dataset import Language, Puzzle, load
from environments.lateral_thinking.environment import LateralThinking
from environments.lateral_thinking.game import game_protocol, play
from environments.lateral_thinking.host import Profile
from environments.lateral_thinking.hosts.model import ModelGame, PuzzleJudge
from environments.lateral_thinking.policies import asking
from proctor.environment import ContextLimitExceeded, Policy
from proctor.llm.cached_model import Replies
from proctor.llm.config import ChatConfig
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Action, Finish, FinishReason, Observation
from tests.scripted_agent import Scripted
from tests.scripted_server import Script, reply, scripted_server
from tests.support import SHARED_DATA, via

LTP = SHARED_DATA / "ltp"
FORECAST = "Is it about yesterday's weather forecast on television?"


def dev(language: Language) -> LateralThinking:
    return LateralThinking(data=LTP / language / "dev.xlsx")


def puzzles(language: Language) -> tuple[Puzzle, ...]:
    return load(LTP / language / "dev.xlsx")


async def play_all(environment: LateralThinking, policy: Callable[[str], Policy]) -> list[Finish]:
    async with environment.lifespan():
        return [
            await play_to_finish(environment, sample, PolicyAgent(policy(sample))) for sample in environment.samples()
        ]


async def progress(environment: LateralThinking, policy: Callable[[str], Policy]) -> float:
    return environment.summarize(await play_all(environment, policy)).metrics["game_progress"]


def dropped(puzzle: Puzzle, seed: int) -> list[str]:
    """The key points, each without three in ten of its words."""
    chance = random.Random(f"{puzzle.id} {seed}")
    return [" ".join(word for word in key.split() if chance.random() >= 0.3) or "So?" for key in puzzle.keys]


@pytest.mark.shared
def test_01_twenty_puzzles_load_in_each_language_with_91_clean_key_points_each() -> None:
    for language in ("en", "zh"):
        loaded = puzzles(language)
        assert (len(loaded), sum(len(puzzle.keys) for puzzle in loaded)) == (20, 91)
        assert {puzzle.language for puzzle in loaded} == {language}
        points = [point for puzzle in loaded for point in (*puzzle.keys, *puzzle.story_keys)]
        assert [point for point in points if not point or point != point.strip() or point[0] in "-0123456789."] == []
    assert all(puzzle.key_lines == len(puzzle.keys) for puzzle in (*puzzles("en"), *puzzles("zh")))


@pytest.mark.shared
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_03_gold_keys_find_every_key_point(language: Language) -> None:
    environment = dev(language)
    finishes = await play_all(environment, environment.reference)
    assert {(finish.reason, finish.score) for finish in finishes} == {(FinishReason.COMPLETED, 1.0)}


@pytest.mark.shared
async def test_03_partial_keys_find_about_84_percent() -> None:
    reached = []
    for seed in range(5):
        partial = {puzzle.id: asking(dropped(puzzle, seed)) for puzzle in puzzles("en")}
        reached.append(await progress(dev("en"), partial.__getitem__))
    assert 0.80 <= sum(reached) / len(reached) <= 0.92


@pytest.mark.shared
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_03_the_keys_of_another_puzzle_find_next_to_nothing(language: Language) -> None:
    loaded = puzzles(language)
    others = {puzzle.id: other for puzzle, other in zip(loaded, (*loaded[1:], loaded[0]), strict=True)}
    assert await progress(dev(language), lambda sample: asking(others[sample].keys)) <= 0.05


@pytest.mark.shared
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_03_a_parrot_gets_hints_only(language: Language) -> None:
    stories = {puzzle.id: " ".join(puzzle.story.split()) for puzzle in puzzles(language)}
    for finish in await play_all(dev(language), lambda sample: asking([stories[sample]])):
        assert (finish.reason, finish.score, finish.metrics["hints"]) == (FinishReason.TURN_LIMIT, 0.0, 25.0)


@pytest.mark.shared
@pytest.mark.parametrize(("language", "farewell"), [("en", "Great job, new story please"), ("zh", "谢谢，再见")])
@pytest.mark.parametrize("profile", ["compat", "strict"])
async def test_03_a_quitter_ends_after_three_replies(language: Language, farewell: str, profile: Profile) -> None:
    environment = dev(language).model_copy(update={"profile": profile})
    for finish in await play_all(environment, lambda _: asking([farewell])):
        assert (finish.reason, finish.score, finish.metrics["rounds"]) == (FinishReason.INVALID_ACTION, 0.0, 3.0)


@pytest.mark.shared
async def test_03_a_silent_agent_ends_at_once() -> None:
    for finish in await play_all(dev("en"), lambda _: asking([""])):
        assert (finish.reason, finish.score, finish.metrics["rounds"]) == (FinishReason.INVALID_FORMAT, 0.0, 0.0)


HAND_MADE = (
    "A gardener lies in the yard at noon. What happened?",
    "The gardener was blind. He fell from the roof because somebody had taken the ladder away.",
    "1. Noon.",
    "1. The gardener is completely blind.\n\n2. He fell from the roof.\n- Somebody took the ladder away.",
)
GAME = (
    FORECAST,
    "The gardener is completely blind.",
    "Why did the gardener lie there, for heaven's sake?",
    "He did not fall from the roof.",
    "He fell from the roof.",
    "Somebody took the ladder away.",
    FORECAST,
)
"""Irrelevant, hit, hint (in compat: irrelevant), no, hit, hit; then, where the game goes on, irrelevant."""


def book(path: Path, *rows: Sequence[str]) -> Path:
    workbook = Workbook()
    sheet = workbook.worksheets[0]
    for row in (("story", "answer", "Story keys", "Answer keys"), *rows):
        sheet.append(list(row))
    workbook.save(path)
    return path


@pytest.fixture
def hand_made(tmp_path: Path) -> Path:
    return book(tmp_path / "mine.xlsx", HAND_MADE)


async def finish_of(environment: LateralThinking, *replies: str | Exception) -> tuple[Finish, Scripted]:
    agent = Scripted(*replies)
    async with environment.lifespan():
        return await play_to_finish(environment, environment.samples()[0], agent), agent


async def test_04_the_formulas_of_compat(hand_made: Path) -> None:
    finish, _ = await finish_of(LateralThinking(data=hand_made, profile="compat"), *GAME)
    assert (finish.reason, finish.score, finish.detail["finish_round"]) == (FinishReason.TURN_LIMIT, 0.75, 5)
    assert finish.metrics == pytest.approx(
        {
            "game_progress": 3 / 4,
            "single_game_accuracy": 3 / 25,
            "query_relevance": 4 / 25,
            "round_efficiency": 1 - 5 / 25,
            "rounds": 25,
            "hints": 0,
            "unreadable": 0,
            "finished": 1,
        }
    )


async def test_04_blank_lines_between_the_keys_count_as_lines_left_in_compat(tmp_path: Path) -> None:
    keys = "\n1. The gardener is blind.\n\n\n2. He fell from the roof.\n"
    environment = LateralThinking(data=book(tmp_path / "blank.xlsx", (*HAND_MADE[:3], keys)), profile="compat")
    questions = ("The gardener is blind.", FORECAST, "He fell from the roof.", FORECAST)
    finish, _ = await finish_of(environment, *questions)
    assert (finish.score, finish.detail["finish_round"]) == (2 / 4, 3)


async def test_04_a_game_that_is_not_finished_has_no_round_efficiency(hand_made: Path) -> None:
    for profile in ("compat", "strict"):
        finish, _ = await finish_of(LateralThinking(data=hand_made, profile=profile), GAME[1], FORECAST)
        assert (finish.reason, finish.metrics["round_efficiency"]) == (FinishReason.TURN_LIMIT, 0.0)
        assert finish.score == (1 / 4 if profile == "compat" else 1 / 3)


def says(text: str) -> Script:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return reply(json.dumps({"model": "judge", "choices": [choice]}).encode())


def judged(url: str, data: Path, cache: Path, **fields: object) -> LateralThinking:
    host = ChatConfig(base_url=f"{url}/v1", model="judge", max_tries=1)
    return LateralThinking.model_validate({"data": data, "host": host, "cache": cache, **fields})


QUESTIONS = ("Could he see?", "Did he fall?", "Was the ladder gone?", FORECAST)
ROUND_ONE = ("No.", "He couldn't see.", "Yes", "No", "no")
ROUND_TWO = ("Yes", "He fell.", "No", "No")


async def test_06_a_host_that_fails_on_call_7_is_a_fault_and_a_second_run_buys_only_what_is_missing(
    hand_made: Path, tmp_path: Path
) -> None:
    bought: list[bytes] = []
    broken = reply(b'{"error": {"message": "bad luck"}}', status="400 Bad Request")
    first = (*ROUND_ONE, *ROUND_TWO)[:6]
    rest = ("He fell.", "No", "No", "Yes", "The ladder was gone.", "He fell, the ladder was gone.", "Yes", "yes")
    async with scripted_server(*map(says, first), broken, *map(says, rest), requests=bought) as url:
        finish, _ = await finish_of(judged(url, hand_made, tmp_path / "cache"), *QUESTIONS)
        assert (finish.reason, finish.score, len(bought)) == (FinishReason.TASK_ERROR, None, 7)
        assert "bad luck" in str(finish.detail["cause"])
        seventh = bought.pop()
        assert all(json.loads(body)["temperature"] == 0 for body in bought)
        assert [len(json.loads(body)["messages"]) for body in bought] == [11, 1, 1, 1, 1, 13]

        bought.clear()
        finish, _ = await finish_of(judged(url, hand_made, tmp_path / "cache"), *QUESTIONS)
    assert json.loads(bought[0]) == json.loads(seventh)
    assert (finish.reason, finish.score, len(bought)) == (FinishReason.COMPLETED, 1.0, len(rest))
    assert finish.detail["host"] == "model judge"


class Judging:
    """A host model that answers by the kind of prompt, and counts what it is asked."""

    def __init__(self, answers: Sequence[str], contained: Callable[[str], bool] = lambda prompt: False) -> None:
        self._answers = list(answers)
        self._contained = contained
        self.calls: list[str] = []
        self._made = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        messages = json.loads(request.content)["messages"]
        last = messages[-1]["content"]
        if len(messages) > 1:
            self.calls.append("answer")
            text = self._answers.pop(0)
        elif last.startswith("Compare what two"):
            self.calls.append("contains")
            text = "Yes" if self._contained(last) else "No"
        else:
            self.calls.append("merge" if last.startswith("Make a single, simpler") else "statement")
            self._made += 1
            text = f"Statement {self._made}"
        return httpx.Response(200, json={"choices": [{"message": {"role": "assistant", "content": text}}]})

    def counts(self) -> tuple[int, int, int, int]:
        """Calls since the last count: answers, statements, merges, key tests."""
        kinds = [self.calls.count(kind) for kind in ("answer", "statement", "merge", "contains")]
        self.calls.clear()
        return kinds[0], kinds[1], kinds[2], kinds[3]


@pytest.fixture
async def judge_of(tmp_path: Path) -> AsyncIterator[Callable[[Judging], PuzzleJudge]]:
    """Makes judges over a stub, each with a cache of its own."""
    clients: list[httpx.AsyncClient] = []

    def make(stub: Judging) -> PuzzleJudge:
        clients.append(httpx.AsyncClient(transport=httpx.MockTransport(stub)))
        cache = Replies(tmp_path / str(len(clients)))
        cache.open()
        return PuzzleJudge(ChatConfig(base_url="http://host/v1", model="judge"), via(clients[-1]), cache)

    yield make
    for client in clients:
        await client.aclose()


async def test_07_calls_of_the_host_model_by_round(hand_made: Path, judge_of: Callable[[Judging], PuzzleJudge]) -> None:
    (puzzle,) = load(hand_made)
    stub = Judging(["Yes", "Irrelevant", "No", "Yes"], lambda prompt: "roof" in prompt and "Statement 3" in prompt)
    game = ModelGame(puzzle, "strict", judge_of(stub))
    counted = []
    for question, remaining in (("A", (0, 1, 2)), ("B", (0, 1, 2)), ("C", (0, 1, 2)), ("D", (0, 2))):
        ruling = await game.rule(question, remaining)
        counted.append((ruling.answer, ruling.hits, *stub.counts()))
    assert counted == [
        ("yes", (), 1, 1, 0, 3),
        ("irrelevant", (), 1, 0, 0, 0),
        ("no", (1,), 1, 1, 1, 3),
        ("yes", (), 1, 1, 0, 2),
    ]


async def test_07_calls_in_compat_stop_at_the_first_hit_and_skip_long_keys(
    hand_made: Path, judge_of: Callable[[Judging], PuzzleJudge]
) -> None:
    (puzzle,) = load(hand_made)
    cases: list[tuple[Profile, str, int, tuple[int, ...]]] = [
        ("compat", "Is he blind?", 0, ()),
        ("compat", "Did he fall off the roof there?", 1, (1,)),
        ("strict", "Is he blind?", 3, (1, 2)),
    ]
    for profile, question, tests, hits in cases:
        stub = Judging(["Yes"], lambda prompt: "completely" not in prompt)
        ruling = await ModelGame(puzzle, profile, judge_of(stub)).rule(question, (0, 1, 2))
        assert (ruling.hits, stub.counts()) == (hits, (1, 1, 0, tests))


# Bad inputs and faults.


async def test_a_host_that_explains_shouts_or_quotes_is_read_and_an_unreadable_one_is_counted(
    hand_made: Path, judge_of: Callable[[Judging], PuzzleJudge]
) -> None:
    (puzzle,) = load(hand_made)
    replies = ["YES, he is.", '"Yes"', "**No**, never", "Not relevant.", "Nobody knows", "irrelevant"]
    cases: list[tuple[Profile, list[str], int]] = [
        ("strict", ["Yes.", "Yes.", "No.", "Irrelevant.", "Irrelevant.", "Irrelevant."], 2),
        ("compat", replies, 3),
    ]
    for profile, expected, unreadable in cases:
        agent = Scripted(*(f"Question number {n} of them all?" for n in range(6)), ContextLimitExceeded())
        _, tally = await play(
            puzzle,
            ModelGame(puzzle, profile, judge_of(Judging(replies))),
            agent,
            game_protocol(puzzle, profile, "text"),
            profile,
        )
        assert agent.told[1:] == expected
        assert tally.unreadable == unreadable
        assert sum(tally.answers.values()) == 6


@pytest.mark.parametrize("refusal", ["", "  ", "I'm sorry, I can't help with that.", "抱歉，我无法回答。"])
async def test_a_host_that_refuses_is_asked_three_times_more_then_it_is_a_fault(
    hand_made: Path, tmp_path: Path, refusal: str
) -> None:
    bought: list[bytes] = []
    async with scripted_server(says(refusal), requests=bought) as url:
        finish, _ = await finish_of(judged(url, hand_made, tmp_path / "cache"), "Is he blind?")
    assert (finish.reason, finish.score, len(bought)) == (FinishReason.TASK_ERROR, None, 4)
    async with scripted_server(says(refusal), says("Irrelevant"), requests=bought) as url:
        finish, agent = await finish_of(
            judged(url, hand_made, tmp_path / "cache"), "Is he blind?", ContextLimitExceeded()
        )
    assert (finish.reason, agent.told[1:], len(bought)) == (FinishReason.CONTEXT_LIMIT, ["Irrelevant."], 6)


async def test_an_endpoint_that_is_not_there_is_a_fault(hand_made: Path, tmp_path: Path) -> None:
    finish, _ = await finish_of(judged("http://127.0.0.1:1", hand_made, tmp_path / "cache"), "Is he blind?")
    assert (finish.reason, finish.score) == (FinishReason.TASK_ERROR, None)


async def test_a_game_stopped_in_the_middle_resumes_without_buying_anything_again(
    hand_made: Path, tmp_path: Path
) -> None:
    asked, bought = asyncio.Event(), list[bytes]()

    class Stuck(Scripted):
        async def act(self, observation: Observation) -> Action:
            if len(self.seen) == 2:
                asked.set()
                await asyncio.Event().wait()
            return await super().act(observation)

    everything = (*ROUND_ONE, "Yes", "He fell.", "No", "No")
    async with scripted_server(*map(says, everything), requests=bought) as url:
        environment = judged(url, hand_made, tmp_path / "cache")
        async with environment.lifespan():
            session = asyncio.create_task(environment.play("mine-00000", Stuck(*QUESTIONS)))
            await asked.wait()
            session.cancel()
            await asyncio.wait({session})
        assert len(bought) == len(everything)
        again = judged(url, hand_made, tmp_path / "cache")
        finish, agent = await finish_of(again, *QUESTIONS[:2], ContextLimitExceeded())
    assert (agent.told[1:], finish.score, len(bought)) == (["No.", "Yes."], 1 / 3, len(everything))


async def test_a_question_of_100_000_characters_is_cut_before_it_goes_to_the_host(
    hand_made: Path, tmp_path: Path
) -> None:
    bought: list[bytes] = []
    async with scripted_server(says("Irrelevant"), requests=bought) as url:
        await finish_of(judged(url, hand_made, tmp_path / "cache"), "雪" * 100_000, ContextLimitExceeded())
    (body,) = bought
    assert json.loads(body)["messages"][-1]["content"].count("雪") == 2_000
