"""What a model thinks aloud is dropped by `strict`, kept by `compat`, counted by both (specs/interop.md 1.4)."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from environments.lateral_thinking.environment import LateralThinking
from environments.simulbench.environment import SimulBench
from environments.stss.environment import Stss
from proctor import registry
from proctor.environment import Agent, Environment, Policy
from proctor.session.play import PolicyAgent, play_to_finish, read_answer
from proctor.session.thoughts import without_thought
from proctor.summary import summarize
from proctor.types import Action, Finish, Observation
from tests.scripted_model import ScriptedModel
from tests.support import SHARED_DATA, serving
from tests.tool_calls import tools_environment
from tests.unit.environments.stss.town_model import agreeable

DRAFT = """
Shall I say Act: finish, or Action: Operation?
```sql
SELECT 1;
```
THOUGHT: no. ACTION: look
Final Answer: [[1]] {"pick_fish": 1} {"talk": true, "commitments": []} #0
No, Rating: [[3]]
1: no
"""
HARMONY = ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>")
Spoken = Sequence[tuple[str, str]]
TAGS: Mapping[str, tuple[str, str]] = {
    **{name: (f"<{name}>", f"</{name}>") for name in ("think", "thinking", "thought", "seed:think")},
    "[THINK]": ("[THINK]", "[/THINK]"),
    "harmony": HARMONY,
}
SHAPES: Mapping[str, Callable[[str, str, str], str]] = {
    "closed": lambda begin, end, answer: f"{begin}{DRAFT}{end}{answer}",
    "after blanks": lambda begin, end, answer: f"\n {begin}{DRAFT}{end}\n\n{answer}",
    "empty": lambda begin, end, answer: f"{begin}{end}{answer}",
    "unopened": lambda begin, end, answer: f"{DRAFT}{end}\n{answer}",
    "in the middle": lambda begin, end, answer: f"{DRAFT}{begin}{DRAFT}{end}{answer}",
    "twice": lambda begin, end, answer: f"{begin}{DRAFT}{end}{DRAFT}{begin}{DRAFT}{end}{answer}",
    "nested": lambda begin, end, answer: f"{begin}{DRAFT}{begin}{DRAFT}{end}{DRAFT}{end}{answer}",
    "never closed": lambda begin, end, answer: f"{answer}\n{begin}{DRAFT}",
    "closed and never closed": lambda begin, end, answer: f"{begin}{DRAFT}{end}{answer}\n{begin}{DRAFT}",
}
SPOKEN = [
    pytest.param([*zip(cycle(TAGS), SHAPES, strict=False)], id="each"),
    pytest.param([*product(TAGS, SHAPES)], id="all", marks=pytest.mark.thorough),
]
"""(tag, shape) of thoughts: each tag and each shape once at least, and all of all tags."""
ENGINES: Mapping[str, dict[str, str]] = {"db": {"engine": "sqlite"}, "os": {"engine": "namespace"}}
DOCKER = pytest.mark.docker


def only(thought: str, _answer: str) -> str:
    return thought


class Aloud(Agent):
    """Plays a policy, and thinks aloud in each answer."""

    def __init__(self, policy: Policy, say: Callable[[str], str]) -> None:
        self._silent, self._say = PolicyAgent(policy), say
        self.replies = list[str]()

    async def act(self, observation: Observation) -> Action:
        action = await self._silent.act(observation)
        self.replies.append(self._say(action.content))
        return action.model_copy(update={"content": self.replies[-1]})


def fields(name: str, profile: str) -> dict[str, str]:
    engine = {"engine": "docker"} if (name, profile) == ("os", "strict") else ENGINES.get(name, {})
    return {"profile": profile, **engine}


def environment(name: str, profile: str) -> Environment:
    return registry.load(name).model_validate(fields(name, profile))


def reference(world: Environment) -> tuple[str, Policy]:
    sample = world.samples()[0]
    policy = world.reference(sample, 1)
    assert policy is not None
    return sample, policy


def judged(finish: Finish) -> tuple[object, ...]:
    return finish.reason, finish.score, finish.metrics


def assert_same_play(aloud: Finish, silent: Finish, replies: int, case: object) -> None:
    assert judged(aloud) == judged(silent), case
    assert aloud.detail["thoughts"] == replies > 0, case
    assert "thoughts" not in silent.detail


@pytest.mark.parametrize("spoken", SPOKEN)
@pytest.mark.parametrize("protocol", ["text", "tools"])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=DOCKER if name == "os" else ()) for name in registry.names()]
)
async def test_strict_scores_what_is_no_thought(name: str, protocol: str, spoken: Spoken) -> None:
    given = fields(name, "strict")
    world = environment(name, "strict") if protocol == "text" else tools_environment(name, given)
    if world is None:
        assert name == "simulbench"
        return
    sample, policy = reference(world)
    async with world.lifespan():
        silent = await play_to_finish(world, sample, PolicyAgent(policy), 1)
        for tag, shape in spoken:
            aloud = Aloud(policy, partial(SHAPES[shape], *TAGS[tag]))
            finish = await play_to_finish(world, sample, aloud, 1)
            assert_same_play(finish, silent, len(aloud.replies), (tag, shape))


@pytest.mark.parametrize("tag", TAGS)
def test_strict_of_os_reads_what_is_no_thought(tag: str) -> None:
    """What the docker test above plays, read as the report reads it."""
    world, (begin, end) = environment("os", "strict"), TAGS[tag]
    for answer in ("Act: bash\n\n```bash\nls\n```", "Act: answer(7)", "Act: finish"):
        read = read_answer(world, Action(content=answer))
        assert read is not None
        assert not read.problem
        for shape, write in SHAPES.items():
            assert read_answer(world, Action(content=write(begin, end, answer))) == read, shape


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=DOCKER if name == "os" else ()) for name in registry.names()]
)
async def test_a_thought_without_an_answer_is_an_empty_answer_in_strict(name: str, tag: str) -> None:
    world = environment(name, "strict")
    sample, policy = reference(world)
    begin, end = TAGS[tag]
    async with world.lifespan():
        silent = await play_to_finish(world, sample, Aloud(policy, lambda _: ""), 1)
        for thought in (begin + DRAFT, begin + DRAFT + end, DRAFT + end):
            aloud = Aloud(policy, partial(only, thought))
            finish = await play_to_finish(world, sample, aloud, 1)
            assert_same_play(finish, silent, len(aloud.replies), thought)


class Overheard(Agent):
    """Keeps what the world is given."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.replies: list[str] = []

    async def act(self, observation: Observation) -> Action:
        action = await self._agent.act(observation)
        self.replies.append(action.content)
        return action


@pytest.mark.parametrize("spoken", SPOKEN)
@pytest.mark.parametrize("name", registry.names())
async def test_compat_counts_thoughts_and_is_given_them(
    name: str, spoken: Spoken, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = environment(name, "compat")
    play, between = type(world).play, list[Overheard]()
    sample, policy = reference(world)

    async def overheard(world: Environment, sample: str, agent: Agent, seed: int = 0) -> Finish:
        between.append(Overheard(agent))
        return await play(world, sample, between[-1], seed)

    monkeypatch.setattr(type(world), "play", overheard)
    async with world.lifespan():
        for tag, shape in spoken:
            aloud = Aloud(policy, partial(SHAPES[shape], *TAGS[tag]))
            finish = await play_to_finish(world, sample, aloud, 1)
            assert finish.detail["thoughts"] == len(aloud.replies) > 0
            assert between[-1].replies == aloud.replies
            counts = summarize(world, [finish]).metrics
            assert counts.get("thoughts") == (len(aloud.replies) if finish.score is not None else None)


@pytest.mark.shared
@pytest.mark.parametrize("profile", ["strict", "errata", "compat"])
async def test_a_reply_that_begins_inside_a_thought(profile: str) -> None:
    (line,) = (SHARED_DATA / "endpoints" / "thoughts.jsonl").read_text().splitlines()
    case: dict[str, Any] = json.loads(line)
    given = {**case["parameters"], "profile": profile}
    world = registry.load(case["environment"]).model_validate(given)
    async with world.lifespan():
        aloud = Aloud(lambda conversation, transcript: Action(content=case["reply"]), lambda text: text)
        finish = await play_to_finish(world, case["sample"], aloud, 1)
    assert finish.score == case["came" if profile == "compat" else "expect"]
    assert finish.detail["thoughts"] == len(aloud.replies)


# The world's own models.


class Helper(ScriptedModel):
    """A judge, host or driver that may think aloud."""

    def __init__(self, answer: Callable[[str], str]) -> None:
        self._silent = answer
        self.say: Callable[[str], str] = str
        super().__init__(lambda body: self.say(self._silent(body["messages"][-1]["content"])))

    def fields(self) -> dict[str, object]:
        return {"model": "helper", "base_url": self.url, "max_tries": 1}


def rates(asked: str) -> str:
    return "Rating: [[7]]"


def hosts(asked: str) -> str:
    return "Yes" if asked.isascii() else "是"


def judges(asked: str) -> str:
    return "1: yes\n2: yes\n3: yes"


HELPERS: Mapping[str, tuple[type[Environment], str, Callable[[str], str], dict[str, object]]] = {
    "judge of simulbench": (SimulBench, "judge", rates, {}),
    "host of ltp": (LateralThinking, "host", hosts, {}),
    "driver of stss": (Stss, "driver", agreeable, {}),
    "driver of stss, compat": (Stss, "driver", agreeable, {"profile": "compat"}),
    "judge of stss": (Stss, "judge", judges, {"level": "language"}),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", HELPERS)
async def test_what_a_helper_thinks_is_not_its_answer(name: str, tmp_path: Path) -> None:
    world, field, answer, fields = HELPERS[name]

    async def play(helper: Helper, cache: Path) -> Finish:
        environment = world.model_validate({field: helper.fields(), "cache": cache, **fields})
        sample, policy = reference(environment)
        async with environment.lifespan():
            return await play_to_finish(environment, sample, PolicyAgent(policy), 1)

    with Helper(answer) as helper, serving(helper):
        silent = await play(helper, tmp_path / "silent")
        assert silent.score
        assert "helper_thoughts" not in silent.detail
        cases = [(begin, end, write) for begin, end in TAGS.values() for write in SHAPES.values()]
        left = cases.copy()

        def aloud(text: str) -> str:
            begin, end, write = left.pop() if left else cases[0]
            return write(begin, end, text)

        helper.say = aloud
        while left:
            before = len(left)
            finish = await play(helper, tmp_path / str(before))
            assert judged(finish) == judged(silent), cases[len(left) : before]
            assert isinstance(finish.detail["helper_thoughts"], int)
            assert finish.detail["helper_thoughts"] >= before - len(left) > 0


async def test_a_host_that_only_thinks_is_asked_again_in_strict(tmp_path: Path) -> None:
    finishes = []
    for number, unfinished in enumerate(("", "<think>I am not sure. Yes")):
        with Helper(hosts) as helper, serving(helper):
            texts = iter([unfinished] if unfinished else [])
            helper.say = partial(next, texts)
            world = LateralThinking.model_validate({"host": helper.fields(), "cache": tmp_path / str(number)})
            sample, policy = reference(world)
            async with world.lifespan():
                finishes.append(judged(await play_to_finish(world, sample, PolicyAgent(policy), 1)))
            assert next(texts, None) is None
    assert finishes[0] == finishes[1]


# The rule.


@given(some.lists(some.sampled_from([*(mark for pair in TAGS.values() for mark in pair), "<|end|>", "a", "\n"])))
def test_no_thought_is_left_in_what_remains(parts: list[str]) -> None:
    rest = without_thought("".join(parts))
    assert without_thought(rest) == rest
    assert rest in "".join(parts)


@pytest.mark.parametrize("mark", ["<|channel|>analysis", "<|channel|>", "<think", "<think>", "<|start|>assistant", "<"])
def test_a_million_marks_are_read_at_once(mark: str) -> None:
    text = mark * (2**20 // len(mark))
    assert len(without_thought(text)) in (0, len(text))
