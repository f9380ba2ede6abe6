"""The environment as configured: digests, policies, scores, summaries and what may be compared."""

import json
import re
from pathlib import Path

import pytest
from pydantic import JsonValue

from environments.lateral_thinking.dataset import Language
from environments.lateral_thinking.environment import LateralThinking
from environments.lateral_thinking.prompt import SOLVER_TEXTS
from environments.lateral_thinking.reply import question_of, toolset
from proctor.config.task import TaskDefinition
from proctor.environment import ContextLimitExceeded
from proctor.llm.config import ChatConfig
from proctor.session.play import play_to_finish
from proctor.types import Finish, FinishReason
from tests.scripted_agent import Scripted
from tests.support import SHARED_DATA

OWN = LateralThinking()
JUDGE = ChatConfig(model="gpt-3.5-turbo-0613", base_url="http://host/v1")


@pytest.mark.shared
def test_the_published_blank_reply() -> None:
    case = json.loads((SHARED_DATA / "ltp" / "blank_reply.json").read_text(encoding="utf-8"))
    assert question_of(case["reply"], case["profile"]) == ""


async def test_the_agent_is_not_told_the_truth() -> None:
    agent = Scripted("Does the woman work as a painter?", ContextLimitExceeded())
    async with OWN.lifespan():
        finish = await play_to_finish(OWN, "english-00000", agent)
    assert "still life" not in "".join(each.content for seen in agent.seen for each in seen.messages)
    assert "still life" in str(finish.detail["expected"])
    assert finish.detail["answered"] == "1 of 4 key points found: The woman works as a painter."


async def test_a_session_needs_the_lifespan_and_a_known_sample() -> None:
    with pytest.raises(RuntimeError, match="lifespan"):
        await OWN.play("english-00000", Scripted("?"))
    with pytest.raises(ValueError, match="no sample 'english-9'; ids look like chinese-00000"):
        OWN.reference("english-9")


def test_a_task_file_names_the_host_by_its_model_and_paths_are_relative_to_it(tmp_path: Path) -> None:
    parameters: dict[str, JsonValue] = {"host": {"model": "m", "base_url": "http://h/v1"}, "cache": "kept"}
    task = TaskDefinition(name="t", environment="ltp", parameters=parameters)
    environment = LateralThinking.model_validate(task.parameters)
    assert environment.host is not None
    assert environment.host.model == "m"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_instruction_tells_no_number_of_questions_and_no_strategy(language: Language) -> None:
    told = SOLVER_TEXTS[language].instruction
    assert not re.search(r"25|strategy|broad|从大", told)
    assert re.search(r"repeat what the story says|汤面里讲过的事情再说一遍", told)


def finish(score: float, language: str) -> Finish:
    return Finish(
        reason=FinishReason.TURN_LIMIT, score=score, metrics={"game_progress": score}, detail={"language": language}
    )


def test_a_summary_is_means_over_scored_games_by_language_and_names_its_host() -> None:
    fault = Finish.fault(FinishReason.TASK_ERROR, "the host is gone")
    summary = LateralThinking(host=JUDGE).summarize([finish(1.0, "en"), finish(0.5, "zh"), finish(0.0, "en"), fault])
    assert summary.metrics["game_progress"] == 0.5
    assert (summary.metrics["game_progress_en"], summary.metrics["game_progress_zh"]) == (0.5, 0.5)
    assert (summary.metrics["requested"], summary.metrics["scored"]) == (4.0, 3.0)
    assert summary.notes[0] == "Judged by the host: model gpt-3.5-turbo-0613."
    assert OWN.summarize([fault]).metrics == {
        "invalid_action": 0.0,
        "invalid_format": 0.0,
        "requested": 1.0,
        "scored": 0.0,
    }
    assert OWN.summarize([]).notes[0] == "Judged by the host: lexical."


def test_the_function_is_declared_with_its_one_argument() -> None:
    (tool,) = toolset("en", "strict").tools()
    assert tool.name == "ask"
    assert tool.parameters["required"] == ["question"]
    assert tool.parameters["additionalProperties"] is False
    assert list(tool.parameters["properties"]) == ["question"]  # type: ignore[arg-type]  # schemas are JSON
    (chinese,) = toolset("zh", "strict").tools()
    assert chinese.name == "ask"
    assert chinese.description != tool.description
