"""From finished trials to files of dialogues and pairs."""

import json
from pathlib import Path

import click
import pytest

from environments.simulbench import shipped
from environments.simulbench.dataset import load
from environments.simulbench.exports import DIALOGUES, PAIRS, dialogue_of, pairs_of
from environments.simulbench.records import PUBLISHED_LICENCE, Pair
from proctor.plugins import FinishedTrial, TrialExport
from proctor.types import Finish, FinishReason
from tests.unit.environments.given_run import GivenRun

FAULT = Finish.fault(FinishReason.TASK_ERROR, "judge_unparsed")
MESSAGES = [line.model_dump() for line in shipped.dialogues()[0].messages]
SCRIPT = {"simulbench": "script", "type": "stateful", "place": "firstchan", "licence": "mine"}
OUT = Finish.model_validate({"reason": "context_limit", "score": 0.0, "detail": SCRIPT})
FOREIGN = Finish(reason=FinishReason.COMPLETED, score=1.0, detail={"turn": 1, "place": "kitchen"})


def trial(sample: str, finish: Finish, agent: str = "a", epoch: int = 0, task: str = "t") -> FinishedTrial:
    return FinishedTrial(run="r", agent=agent, task=task, sample=sample, epoch=epoch, finish=finish)


def completed(**detail: object) -> Finish:
    return Finish.model_validate({"reason": "completed", "score": 0.5, "metrics": {"rating": 5.5}, "detail": detail})


def rated(response: str = "x") -> Finish:
    return completed(response=response, **SCRIPT)


def test_what_was_made_of_public_material_says_that_it_was_changed() -> None:
    def made(licence: str) -> str:
        detail = {"act": "A", "type": "stateless", "task_description": "Be it.", "messages": MESSAGES, "strategies": []}
        dialogue = dialogue_of(trial("0#A", completed(**detail, licence=licence)))
        assert dialogue is not None
        return dialogue.licence

    once = made(PUBLISHED_LICENCE)
    assert once == f"{PUBLISHED_LICENCE}; changed by models in Proctor"
    assert made(once) == once
    assert made("mine") == "mine"


def test_dialogues_are_named_after_task_agent_and_epoch() -> None:
    whole = completed(
        act="A",
        type="stateless",
        licence="mine",
        task_description="Be it.",
        messages=MESSAGES,
        strategies=["other"] * 3,
    )
    short = OUT.model_copy(update={"detail": {**whole.detail, "messages": MESSAGES[:3]}})
    trials = [trial("0#A", whole), trial("0#A", whole, epoch=2), trial("0#A", short), trial("0#A", FAULT)]
    made = [dialogue_of(each) for each in trials]
    names = [each and (each.id, each.source_file_name) for each in made]
    assert names == [("0#A/a.json", "a.json"), ("0#A/a-2.json", "a-2.json"), None, None]


def test_pairs_join_by_sample_and_epoch_and_an_agent_out_of_context_said_nothing() -> None:
    one = [trial("000-2", rated("left")), trial("000-2", rated("again"), epoch=1), trial("000-3", rated("fault"))]
    other = [trial("000-2", OUT, "b"), trial("000-2", rated("right"), "b", epoch=1), trial("000-3", FAULT, "b")]
    pairs = pairs_of(one, other, shipped.scripts())
    assert [(pair.id, pair.a, pair.b) for pair in pairs] == [("000-2", "left", ""), ("000-2~1", "again", "right")]
    assert (pairs[0].model_a, pairs[0].model_b, pairs[0].place) == ("a", "b", "firstchan")


TRIALS = [
    trial("000-2", rated("left")),
    trial("000-2", rated("right"), "b"),
    trial("000-2", FOREIGN, task="other"),
    trial("000-3", FOREIGN, "b", task="other"),
]
TWICE = [trial("000-2", rated()), trial("000-2", rated(), task="u"), trial("000-2", rated(), "b")]


RUN, TWO = GivenRun(TRIALS), GivenRun(TWICE, "twice")
NO_CHOICE = {"agent": None, "task": None}
SEVERAL = {**NO_CHOICE, "candidate": None, "candidate_agent": None, "scripts": None}


@pytest.mark.parametrize(
    ("form", "run", "options", "said"),
    [
        (PAIRS, RUN, SEVERAL, "has several agents: a, b; choose one with --agent"),
        (PAIRS, RUN, {**SEVERAL, "agent": "a"}, "choose one with --candidate-agent"),
        (DIALOGUES, RUN, NO_CHOICE, "run 'r' has no finished trial of the mode `live`"),
        (DIALOGUES, RUN, {**NO_CHOICE, "task": "u"}, "run 'r' has no task 'u'; it has: other, t"),
        (DIALOGUES, RUN, {**NO_CHOICE, "agent": "z"}, "run 'r' has no agent 'z'; it has: a, b"),
        (PAIRS, TWO, SEVERAL, "run 'twice' has several tasks: t, u; choose one with --task"),
        (PAIRS, RUN, {**SEVERAL, "scripts": Path("none.jsonl")}, "none.jsonl: can't be read"),
    ],
)
def test_what_cant_be_made_is_told_and_nothing_is_written(
    form: TrialExport, run: GivenRun, options: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(click.UsageError) as refused:
        form.write(run, tmp_path / "p", **options)
    assert said in refused.value.message
    assert list(tmp_path.iterdir()) == []


BOTH = {**SEVERAL, "agent": "a", "candidate_agent": "b"}


def test_a_file_is_written_whole_in_the_format_that_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    assert PAIRS.write(GivenRun(TRIALS, others={"s": RUN}), file, **BOTH | {"candidate": "s"}) == "1 pairs"
    (pair,) = load(file, Pair)
    assert (pair.a, pair.b) == ("left", "right")
    assert json.loads(file.read_text())["licence"] == "Apache-2.0: Proctor"
    assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(click.UsageError, match="can't be written"):
        PAIRS.write(RUN, tmp_path / "no" / "p", **BOTH)


def test_a_file_of_public_material_carries_its_licence(tmp_path: Path) -> None:
    scripts, file = tmp_path / "scripts.jsonl", tmp_path / "pairs.jsonl"
    scripts.write_text(shipped.scripts()[0].model_dump_json(exclude={"licence"}))
    PAIRS.write(RUN, file, **BOTH | {"scripts": scripts})
    assert json.loads(file.read_text())["licence"] == PUBLISHED_LICENCE
