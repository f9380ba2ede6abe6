"""Models on the environment's side: as the people of the town, and as the judge of their conversations."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import ValidationError

from environments.stss import policies
from environments.stss.dataset import SHIPPED, shipped
from environments.stss.days.transcript import unpack
from environments.stss.environment import Stss
from environments.stss.invitation import SpokenLine
from environments.stss.language.level import FormJudge, read_verdicts
from environments.stss.language.scenarios import load
from proctor.llm.config import ChatConfig
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import JUDGEMENTS, Action, Finish, FinishReason, Judgements
from tests.scripted_model import Reply, ScriptedModel
from tests.support import serving
from tests.unit.environments.stss.town_model import Model, model

__all__ = ["model"]
TOWN = shipped().town
SAMPLE = "fernmouth_birthday"


def town(model: Model, cache: Path, **fields: object) -> Stss:
    return Stss.model_validate({"driver": model.config, "cache": cache} | fields)


async def lived(environment: Stss, sample: str = SAMPLE) -> Finish:
    async with environment.lifespan():
        agent = PolicyAgent(policies.liar(environment.script(sample)))
        return await play_to_finish(environment, sample, agent)


async def test_a_model_drives_the_town_and_no_reply_is_bought_twice(model: Model, tmp_path: Path) -> None:
    first = await lived(town(model, tmp_path))
    assert (first.reason, first.score) == (FinishReason.COMPLETED, 1.0)
    assert first.detail["driver"] == "model town"
    assert len(model.asked) == len(set(model.asked))
    day_transcript = unpack(str(first.detail["evidence"]))
    assert {each.commitment.activity for each in day_transcript.event_log.agreed} == {"the birthday party"}
    bought = len(model.asked)
    assert 40 < bought < 200
    again = await lived(town(model, tmp_path))
    assert len(model.asked) == bought
    assert again == first


async def test_a_driven_town_costs_what_the_page_says(model: Model, tmp_path: Path) -> None:
    environment = town(model, tmp_path)
    async with environment.lifespan():
        await play_to_finish(environment, SAMPLE, PolicyAgent(environment.reference(SAMPLE)))
    assert 60 < len(model.asked) < 80
    assert 16_000 < sum(map(len, model.asked)) // 4 < 20_000


async def test_an_answer_that_cannot_be_used_is_asked_for_again_and_then_a_fault(model: Model, tmp_path: Path) -> None:
    turns: list[str] = []

    def stubborn(asked: str) -> str:
        turns.append(asked)
        return '{"wake": "late"}'

    model.says = stubborn
    finish = await lived(town(model, tmp_path))
    assert finish.reason is FinishReason.TASK_ERROR
    assert "no answer of the driver could be read" in str(finish.detail["cause"])
    assert [text.startswith("Your answer can't be used") for text in turns] == [False, True, True]


# The language level.


async def talked(environment: Stss) -> Finish:
    async with environment.lifespan():
        return await play_to_finish(environment, SAMPLE, PolicyAgent(environment.reference(SAMPLE)))


async def test_a_model_judges_line_by_line(model: Model, tmp_path: Path) -> None:
    model.says = lambda asked: (
        "1: yes\n2: Yes\n3. no" if "Ada Birch: Would you like" in asked else "1: yes\n2: yes\n3: yes"
    )
    finish = await talked(town(model, tmp_path, driver=None, judge=model.config, level="language"))
    assert finish.detail["judge"] == "model town"
    assert (finish.score, finish.metrics["sr_summary"]) == (0.0, 1.0)
    assert finish.metrics["gcsr_conversation"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("profile", ["strict", "compat"])
async def test_what_the_judge_thinks_is_no_verdict_in_either_profile(
    model: Model, tmp_path: Path, profile: str
) -> None:
    """Its form is ours, in `compat` too: there is no published reading of it to keep to."""
    model.says = lambda asked: "<think>\n1: no\n2: no\n3: no\n4: no</think>\n1: yes\n2: yes\n3: yes"
    finish = await talked(town(model, tmp_path, driver=None, judge=model.config, level="language", profile=profile))
    assert (finish.score, finish.metrics["sr_summary"]) == (1.0, 1.0)


async def test_a_verdict_that_cannot_be_read_is_unscored_and_counted(model: Model, tmp_path: Path) -> None:
    partners = [scenario.partner for scenario in load(SHIPPED / "scenarios.json") if scenario.task == SAMPLE]
    partner = partners[0]

    def moody(asked: str) -> str:
        return "perhaps" if f"{partner}: " in asked or "can't be used" in asked else "1: yes\n2: yes\n3: yes"

    model.says = moody
    environment = town(model, tmp_path, driver=None, judge=model.config, level="language")
    finish = await talked(environment)
    assert finish.score == 1.0
    unread = partners.count(partner)
    assert finish.metrics["unscored_conversation"] == unread
    assert finish.metrics["judged_conversation"] == len(partners) - unread > 0
    summary = environment.summarize([finish])
    assert (summary.metrics["unscored_conversation"], summary.metrics["micro_sr_conversation"]) == (unread, 1)


async def test_rates_of_summaries_none_of_which_is_judged_are_absent(model: Model, tmp_path: Path) -> None:
    """The material of a summary is one line of the partner's; a conversation begins with the performer's."""
    model.says = lambda asked: "1: yes\n2: yes\n3: yes" if "Material\nAda Birch: " in asked else "perhaps"
    environment = town(model, tmp_path, driver=None, judge=model.config, level="language")
    finish = await talked(environment)
    assert finish.metrics["judged_summary"] == 0 < finish.metrics["unscored_summary"]
    metrics = environment.summarize([finish]).metrics
    assert {name for name in metrics if "sr_" in name} == {
        *("sr_conversation", "gcsr_conversation", "micro_sr_conversation", "micro_gcsr_conversation")
    }
    fault = Finish.fault(FinishReason.TASK_ERROR, "down")
    assert not {"score", "calls", "floor"} & environment.summarize([fault]).metrics.keys()


async def test_where_no_verdict_can_be_read_the_task_is_a_fault(model: Model, tmp_path: Path) -> None:
    model.says = lambda asked: "perhaps"
    finish = await talked(town(model, tmp_path, driver=None, judge=model.config, level="language"))
    assert finish.reason is FinishReason.TASK_ERROR


@pytest.mark.parametrize(
    "reply",
    ["\n" * 200_000, "1:\n" * 60_000, "-" * 200_000, "1" * 9_000 + ": yes", "1" + "-" * 90_000, "1 x:" * 40_000],
)
def test_an_endless_reply_is_no_verdict_and_holds_nobody_up(reply: str) -> None:
    with pytest.raises(ValueError, match="3 lines"):
        read_verdicts(reply, 3)


def test_who_drives_and_who_judges_are_told_apart_by_the_digest() -> None:
    config = ChatConfig(model="town")
    other = ChatConfig(model="town", sampling={"top_p": 0.5})
    made = [{"driver": config}, {"judge": config}, {"driver": config, "judge": config}, {"driver": other}, {}]
    assert len({Stss.model_validate({"level": "language"} | fields).digest() for fields in made}) == len(made)


YES, NO = "1: yes\n2: yes\n3: yes", "1: yes\n2: no\n3: yes"


async def by_several(cache: Path, said: dict[str, Reply]) -> tuple[Stss, Finish]:
    """A task of the language level by the reference, judged by models that always say the same."""
    with ScriptedModel(lambda request: said[request["model"]]) as server, serving(server):
        judges = [{"model": name, "base_url": server.url, "max_tries": 1} for name in said]
        environment = Stss.model_validate({"level": "language", "judges": judges, "cache": cache})
        return environment, await talked(environment)


@pytest.mark.parametrize(
    ("said", "success", "met"),
    [
        ({"a": YES, "b": YES, "c": NO}, 1.0, 1.0),
        ({"a": NO, "b": YES, "c": NO}, 0.0, 2 / 3),
        ({"a": YES, "b": NO}, 0.5, 2.5 / 3),
        ({"a": YES, "b": NO, "c": NO, "d": YES}, 0.5, 2.5 / 3),
        ({"a": NO, "b": "1: no\n2: no\n3: yes"}, 0.0, 1.5 / 3),  # 1 is split, and 2 unmet
    ],
)
async def test_of_several_judges_most_decide_and_an_even_split_is_one_half(
    tmp_path: Path, said: dict[str, Reply], success: float, met: float
) -> None:
    environment, finish = await by_several(tmp_path, said)
    assert (finish.score, finish.metrics["sr_summary"]) == (success, success)
    assert finish.metrics["gcsr_conversation"] == pytest.approx(met)
    assert finish.detail["judge"] == f"models {', '.join(said)}, by majority"
    judgements = Judgements.model_validate(finish.detail[JUDGEMENTS])
    assert (judgements.scale, judgements.judges) == ("yes_no", tuple(said))
    talks = int(finish.metrics["judged_conversation"] + finish.metrics["judged_summary"])
    assert len(judgements.rows) == 3 * talks
    assert judgements.rows[1] == tuple(float("2: yes" in str(text)) for text in said.values())
    assert environment.summarize([finish]).metrics["sr_conversation"] == success


async def test_a_talk_that_one_judge_gives_no_verdict_on_is_unscored_and_the_others_are_kept(tmp_path: Path) -> None:
    _, finish = await by_several(tmp_path, {"a": YES, "b": "perhaps"})
    assert finish.reason is FinishReason.TASK_ERROR, "no talk has a verdict"
    assert str(finish.detail["cause"]).endswith(
        "; model b writes no line of yes or no for each condition: name another judge"
    )
    _, finish = await by_several(tmp_path, {"a": YES, "b": NO, "c": 500})
    assert (finish.reason, finish.score) == (FinishReason.TASK_ERROR, None)
    assert "judge c" in str(finish.detail["cause"])


def test_several_judges_are_in_the_digest_and_one_has_the_digest_it_had() -> None:
    judges = [{"model": "a"}, {"model": "b"}]
    made: list[dict[str, object]] = [
        {},
        {"judge": judges[0]},
        {"judges": judges},
        {"judges": [*judges, {"model": "c"}]},
    ]
    digests = [Stss.model_validate({"level": "language"} | fields).digest() for fields in made]
    assert len(set(digests)) == len(made)
    assert Stss.model_validate({"level": "language", "judge": judges[0], "judges": []}).digest() == digests[1]
    with pytest.raises(ValidationError, match="judges: two are one model"):
        Stss.model_validate({"judges": [judges[0], judges[0]]})


async def judged(sample: str, said: Sequence[str]) -> tuple[bool, ...] | None:
    """What the judge of the form finds of a talk of the performer with Finn, for tables."""
    task = Stss().task(sample)
    lines = [SpokenLine((task.performer, "Finn Larsen")[index % 2], text) for index, text in enumerate(said)]
    return await FormJudge(TOWN.places).verdicts(task, lines)


async def test_a_talk_in_free_words_is_unscored_without_a_judge_model() -> None:
    environment = Stss(level="language")
    agent = PolicyAgent(lambda conversation, transcript: Action(content=_words(transcript[-1].content)))
    finish = await play_to_finish(environment, SAMPLE, agent)
    assert finish.reason is FinishReason.TASK_ERROR
    assert "name one" in str(finish.detail["cause"])


def _words(request: str) -> str:
    forms = {"T1": {"plan": ["a", "b", "c"]}, "T2": {"schedule_reminder": "", "checklist": []}}
    forms |= {"E": {"talk": True, "utterance": "Come to my party!"}, "U": {"utterance": "At the inn, at seven."}}
    return json.dumps(next(form for code, form in forms.items() if f"Request {code}." in request))


def reads(asked: str) -> str:
    """A judge that looks for what each condition names, and for words that agree."""
    material, _, numbered = asked.partition("\n\nConditions\n")
    material = material.partition("Material\n")[2].lower()
    verdicts = []
    for line in numbered.splitlines():
        number, _, condition = line.partition(": ")
        named = condition.rpartition(": ")[2].rpartition(", ")[2].lower()
        agreed = condition.endswith("agreed") and ("gladly" in material or "i agreed" in material)
        verdicts.append(f"{number}: {'yes' if agreed or named in material.replace(' from ', ' ') else 'no'}")
    return "\n".join(verdicts)


async def test_the_reference_meets_every_condition_by_both_judges(model: Model, tmp_path: Path) -> None:
    model.says = reads
    for judge in ({}, {"judge": model.config, "cache": tmp_path}):
        environment = Stss.model_validate({"level": "language"} | judge)
        async with environment.lifespan():
            finishes = [
                await play_to_finish(environment, sample, PolicyAgent(environment.reference(sample)))
                for sample in environment.samples()
            ]
            silent = await play_to_finish(environment, SAMPLE, PolicyAgent(policies.silent()))
        metrics = environment.summarize(finishes).metrics
        assert (metrics["sr_conversation"], metrics["sr_summary"], metrics["unscored_conversation"]) == (1, 1, 0)
        assert silent.score == 0
