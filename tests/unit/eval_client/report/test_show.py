"""One trial's conversation: rebuilt as it was sent, shown on a terminal, as Markdown and as JSON."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import JsonValue

from eval_client.cli.results.show import show
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.journal import Cost, Journal
from eval_client.store.records import Manifest, Trial, Turn
from eval_client.store.store import Store
from eval_client.store.trials.trajectory import (
    ConversationTurn,
    conversation,
    first_difference,
    read_trajectory,
    trial_to_read,
)
from proctor.types import Action, Finish, FinishReason, Message, Observation, Tool, ToolCall, Usage
from task_server.wire.messages import Act, Stop
from tests.pace import cost_s

SYSTEM, ASK = Message(role="system", content="be brief"), Message(role="user", content="how many?")
SAID = "```7```\nAct: answer(7)"
CALL = ToolCall(id="c1", name="count", arguments='{"what": ')
RESULT = Message(role="tool", content="\x1b[31m7\u202e", tool_call_id="c1")
TOOLS = (Tool(name="count"),)
PLAN: dict[str, JsonValue] = {"tasks": [{"name": "os", "environment": "os"}]}
CALLS = Action(content="", tool_calls=(CALL,), reasoning="I count")
FIRST = Observation(messages=(SYSTEM, ASK), tools=TOOLS)
SECOND = Observation(messages=(RESULT,), tools=TOOLS)
ANEW = Observation(messages=(SYSTEM, Message(role="user", content="again")), fresh=True)


def turn(number: int, observation: Observation, reply: Act | Stop, tries: int = 1) -> Turn:
    return Turn(
        turn=number,
        digest=observation.digest(),
        observation=observation.model_dump_json(),
        reply=reply,
        prompt_tokens=1_000,
        completion_tokens=20,
        model_seconds=1.25,
        world_seconds=0.5,
        stop="length" if number == 2 else None,
        tries=tries,
    )


SEVEN = (turn(1, FIRST, Act(action=CALLS)), turn(2, SECOND, Act(action=Action(content=SAID)), tries=2))
EIGHT = (SEVEN[0], turn(2, ANEW, Stop(reason=FinishReason.CONTEXT_LIMIT)))


@pytest.fixture
async def runs(tmp_path: Path) -> Path:
    """A folder with one run: `gpt` is scored in its second attempt, `naive` stopped, `idle` was not played."""
    (tmp_path / "first").mkdir()
    store = Store(connect(sqlite_url(tmp_path / "first")), "first")
    trials = [Trial(id=n, agent=a, task="os", sample="a/b", epoch=0) for n, a in enumerate(("gpt", "naive", "idle"))]
    store.create(Manifest(version="1", plan_path="p", plan=PLAN, identity={}), trials)
    journal = Journal(store, store.take_over())
    await journal.begin(trials[0], 1, 0, "0" * 32)
    await journal.turn(trials[0], 0, SEVEN[0])
    await journal.end(trials[0], 1, "diverged", "other observation", "worker-2")
    for trial, turns, finish in (
        (
            trials[0],
            SEVEN,
            Finish(reason=FinishReason.COMPLETED, score=1.0, metrics={"strict": 0.5}, detail={"said": "7"}),
        ),
        (trials[1], EIGHT, Finish(reason=FinishReason.CONTEXT_LIMIT, score=0.0)),
    ):
        number = 2 if trial.id == 0 else 1
        await journal.begin(trial, number, number - 1, f"{trial.id:032}")
        for each in turns:
            await journal.turn(trial, number - 1, each)
        await journal.finish(trial, number, "worker-1", finish, Cost(2, Usage(2_000, 40), 2.5))
    await journal.close()
    return tmp_path


def call(runs: Path, *args: str, code: int = 0) -> str:
    result = CliRunner().invoke(show, [*args, "-o", str(runs)])
    assert result.exit_code == code, result.output
    return result.output


def test_a_conversation_is_rebuilt_as_it_was_sent() -> None:
    first, second = conversation(SEVEN)
    assert (first.earlier, first.messages, first.tools) == ((), (SYSTEM, ASK), TOOLS)
    assert second.earlier == (SYSTEM, ASK, CALLS.message())
    assert (second.messages, second.action) == ((RESULT,), Action(content=SAID))


def test_of_a_history_that_is_sent_anew_only_what_changed_is_new() -> None:
    _, second = conversation(EIGHT)
    assert (second.fresh, second.earlier, second.messages) == (True, (SYSTEM,), ANEW.messages[1:])
    assert (second.action, second.stop) == (None, FinishReason.CONTEXT_LIMIT)


def test_a_long_conversation_costs_in_proportion_to_its_turns_and_its_page_is_as_before() -> None:
    def turns(count: int) -> list[Turn]:
        return [turn(n, Observation(messages=(ASK,)), Act(action=Action(content=SAID))) for n in range(1, count + 1)]

    def last_page(told: Sequence[Turn]) -> list[ConversationTurn]:
        return list(conversation(told, len(told) - 10))

    short, long = turns(200), turns(2_000)
    assert last_page(short) == list(conversation(short))[-10:]
    assert [len(each.earlier) for each in last_page(long)] == list(range(3_980, 4_000, 2))
    ratio = cost_s(lambda: last_page(long), tries=5) / cost_s(lambda: last_page(short), tries=5)
    assert ratio < 30, "ten times the turns: ten times the cost, and not a hundred times"


def test_two_trials_differ_from_the_first_turn_with_another_observation() -> None:
    left, right = list(conversation(SEVEN)), list(conversation(EIGHT))
    assert first_difference(left, right) == 1
    assert first_difference(left, left[:1]) == 1
    assert first_difference(left, left) is None


async def test_the_newest_journal_is_read_and_an_earlier_one_on_demand(runs: Path) -> None:
    store = Store(connect(sqlite_url(runs / "first")), "first")
    newest, earlier = read_trajectory(store, 0), read_trajectory(store, 0, 0)
    assert (newest.journals, newest.journal, newest.turns) == ((0, 1), 1, SEVEN)
    assert (earlier.journal, earlier.turns) == (0, SEVEN[:1])
    assert trial_to_read(store) == 1, "the lowest score of those that were played"
    assert [(each.outcome, each.cause, each.worker) for each in newest.attempts] == [
        ("diverged", "other observation", "worker-2"),
        ("finished", None, "worker-1"),
    ]


async def test_a_terminal_shows_score_attempts_turns_and_evidence(runs: Path) -> None:
    shown = call(runs, "latest", "0")
    assert "gpt × os × a/b, epoch 0" in shown
    assert "score 1.000, completed" in shown
    assert "score parts: strict 0.5" in shown
    assert "attempt 1: diverged on worker-2" in shown
    assert re.search(r'call count c1 *\n    {"what":', shown)
    assert "  reasoning" in shown
    assert re.search(r"read as *\n    invalid_format", shown)
    assert re.search(r"read as answer *\n    7", shown)
    assert "2 tries" in shown
    assert "model 1.2 s · world 0.5 s" in shown
    assert shown.count("cut this answer at max_tokens") == 1
    assert '"said": "7"' in shown
    assert "\\x1b[31m7\\u202e" in shown
    assert "\x1b" not in shown
    assert "turns of journal 1; others: 0" in shown


async def test_a_file_has_lines_without_padding_as_wide_as_columns_says(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for width in (120, 60):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = call(runs, "latest", "0").splitlines()
        assert not any(line.endswith(" ") for line in lines)
        assert max(map(len, lines)) == width


async def test_a_trial_is_named_by_its_number_or_by_agent_task_and_sample(runs: Path) -> None:
    whole = call(runs, "first", "0")
    assert call(runs, "0") == call(runs, "first", "gpt@os/a/b") == call(runs, "first:gpt@os/a/b") == whole
    assert call(runs, ":gpt@os/a/b") == call(runs, "gpt@os/a/b") == whole


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["first", "9"], "has no trial 9; its trials are 0 to 2"),
        (["first", "you@os/a/b"], "has no agent 'you'; there are: gpt, naive, idle"),
        (["first", "gpt@db/a/b"], "has no task 'db'; there are: os"),
        (["first", "gpt@os/a"], "has no sample 'a'; there are: a/b"),
        (["first", "gpt@os/a/b", "--epoch", "1"], "has no epoch 1; there are: 0"),
        (["first", "gpt"], "'gpt' names no trial: a trial is a number, or AGENT@TASK/SAMPLE"),
        (["first", "gpt@"], "'gpt@' names no trial"),
        (["first", "gpt@os/"], "'gpt@os/' names no trial"),
        (["first", "gpt@/x"], "'gpt@/x' names no trial"),
        (["first"], "names no trial"),
        (["first", "0", "--turn", "3"], "trial 0 has no turn 3; it has 2"),
        (["first", "0", "--journal", "2"], "trial 0 has no journal 2; it has: 0, 1"),
        (["second", "0"], "no run 'second'"),
        (["first", "0", "--against", "1", "--json"], "--against: leave out --json"),
    ],
)
async def test_a_wrong_name_is_told_with_what_there_is(runs: Path, args: list[str], told: str) -> None:
    assert told in call(runs, *args, code=2)


async def test_a_turn_is_shown_with_all_that_was_sent(runs: Path) -> None:
    shown = call(runs, "first", "0", "--turn", "2")
    assert (
        shown.index("be brief") < shown.index("how many?") < shown.index("new in this turn") < shown.index("  answer")
    )


async def test_side_by_side_begins_before_the_first_difference(runs: Path) -> None:
    shown = call(runs, "first", "gpt@os/a/b", "--against", "naive@os/a/b")
    assert "both were shown the same in turns 1 to 1" in shown
    assert shown.count("how many?") == 1
    assert "again" in shown
    assert "The agent stopped" in shown
    assert "both were shown the same in every turn" in call(runs, "first", "0", "--against", "first:gpt@os/a/b")


async def test_json_has_every_message_of_every_turn(runs: Path) -> None:
    value = json.loads(call(runs, "first", "0", "--json"))
    assert (value["agent"], value["finish"]["score"], len(value["turns"])) == ("gpt", 1.0, 2)
    assert [len(each["earlier"]) for each in value["turns"]] == [0, 3]
    assert value["turns"][1]["reading"] == {"kind": "answer", "text": "7", "problem": None}
    assert value["turns"][0]["action"]["tool_calls"][0]["arguments"] == '{"what": '
    only = json.loads(call(runs, "first", "0", "--json", "--turn", "2"))
    assert [each["turn"] for each in only["turns"]] == [2]


async def test_markdown_fences_every_text(runs: Path) -> None:
    document = call(runs, "first", "0", "--markdown")
    assert document.startswith("# gpt × os × a/b, epoch 0\n")
    assert "````text\n```7```\nAct: answer(7)\n````" in document
    assert "## Turn 2" in document


async def test_a_trial_that_was_not_played_says_so(runs: Path) -> None:
    assert "not over yet" in call(runs, "first", "2")
