"""Line 14 of the viewer's list: `parse_action` equals what `play` did with the same answer, in all ten worlds."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from environments.alfworld import dataset
from environments.alfworld import reply as alfworld
from environments.alfworld.environment import ALFWorld
from environments.database import reply as database
from environments.knowledge_graph import reply as knowledge_graph
from environments.lateral_thinking import reply as lateral_thinking
from environments.mind2web import reply as mind2web
from environments.operating_system import reply as operating_system
from environments.webshop import reply as webshop
from proctor.environment import POLICY_KINDS, Environment, Policy, policy_of
from proctor.session.play import play_to_finish, read_answer
from proctor.tools import CallReader, ParsedReply, Protocol, TextReader, UnreadableCall
from proctor.types import Action, Message, Observation, ParsedAction
from tests.support import SHARED_DATA
from tests.tool_calls import CallingAgent, Fields, calls, configurations, environment_in, in_turn

IN_STATE = ("card_game", "simulbench", "stss")
"""Worlds whose answers are read by the state of the game or by what was asked, or that are not read at all."""
ODD = (
    "",
    "hm",
    "Act: bash\n```bash\nls | wc -l\n```",
    "**Act:** bash\n```bash\nls\n```",
    "Act: answer(7)",
    "Action: Operation\n```sql\nSELECT 1;\n```",
    "**Action:** Operation\n```sql\nSELECT 1;\n```",
    '**Final Answer:** ["a"]',
    'Action: Answer\nFinal Answer: ["a"]',
    "<think>Act: finish</think>Act: bash\n```bash\nid\n```",
    "<think>ACTION: look</think>action: inventory",
    "ACTION: go to desk 1",
    "Action: search[blue shirt]",
    "**action:** `click[b07]`",
    "Answer: C.\nAction: TYPE\nValue: x",
    "Thought: x\nAction: get_relations(variable #0)",
    "Is he alive?\nWas he?",
)
CALLS: tuple[tuple[str, object], ...] = (
    ("bash_action", {"script": "ls"}),
    ("answer_action", {"answer": "7"}),
    ("execute_sql", {"query": "SELECT 1"}),
    ("commit_final_answer", {"answers": ["a"]}),
    ("take_action", {"action": "Look"}),
    ("search_action", {"keywords": "Blue"}),
    ("choose", {"answer": "C", "action": "CLICK"}),
    ("get_relations", {"variable": "#0"}),
    ("ask", {"question": "Is he alive?"}),
    ("no_such_function", {}),
    ("execute_sql", '{"query": '),
)


def odd(protocol: Protocol) -> list[Action]:
    texts = [Action(content=text) for text in ODD]
    if protocol == "text":
        return texts
    return [*texts, *(calls(each) for each in CALLS), calls(CALLS[2], CALLS[10], CALLS[0])]


class Spy:
    """What each reply was read as, while the real readers read it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.read: list[ParsedReply[Any]] = []
        for reader in (TextReader, CallReader):
            patch.setattr(reader, "read", self._noting(reader.read))

    def _noting(self, read: Callable[..., ParsedReply[Any]]) -> Callable[..., ParsedReply[Any]]:
        def noted(*given: Any) -> ParsedReply[Any]:
            parsed = read(*given)
            self.read.append(parsed)
            return parsed

        return noted


class Keeping(CallingAgent):
    """Keeps its answers."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.given: list[Action] = []

    def reply(self, observation: Observation, history: Sequence[Message]) -> Action:
        self.given.append(super().reply(observation, history))
        return self.given[-1]


def shower(name: str, fields: Fields, protocol: Protocol) -> Callable[[Any], ParsedAction]:
    """How an action of a world is shown."""
    of_worlds: dict[str, Callable[[Any], ParsedAction]] = {
        "alfworld": alfworld.shown,
        "db": database.shown,
        "kg": partial(knowledge_graph.shown, protocol=protocol, profile=fields["profile"]),
        "ltp": lateral_thinking.shown,
        "mind2web": mind2web.shown,
        "os": operating_system.shown,
        "webshop": webshop.shown,
    }
    return of_worlds[name]


def is_as_read(shown: ParsedAction | None, parsed: ParsedReply[Any], shower: Callable[[Any], ParsedAction]) -> bool:
    """Whether what is shown has the kinds and texts of what was read, and a problem where that had one."""
    read = [each for each in parsed.actions if not isinstance(each, UnreadableCall)]
    parts = [shower(each) for each in read]
    assert shown is not None
    kinds = dict.fromkeys(part.kind for part in parts if part.kind)
    texts = [part.text for part in parts if part.text]
    problem = len(read) < len(parsed.actions) or any(part.problem for part in parts)
    return (shown.kind, shown.text, shown.problem is not None) == (", ".join(kinds), "\n".join(texts), problem)


async def played(
    environment: Environment, policy: Policy, sample: str, patch: pytest.MonkeyPatch
) -> list[tuple[Action, ParsedReply[Any]]]:
    """(answer, what the session's reader made of it) of each turn."""
    with patch.context() as within:
        spy, agent = Spy(within), Keeping(policy)
        await play_to_finish(environment, sample, agent, seed=1)
        return list(zip(agent.given, spy.read, strict=False))


@pytest.mark.parametrize("protocol", ["text", "tools"])
@pytest.mark.parametrize(
    ("name", "fields"),
    [pytest.param(name, fields, id="-".join([name, *fields.values()])) for name, fields in configurations()],
)
async def test_14_an_answer_is_shown_as_play_read_it(
    name: str, fields: Fields, protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = environment_in(name, protocol, fields)
    sample, found = environment.samples()[0], list[tuple[Action, ParsedReply[Any]]]()
    async with environment.lifespan():
        for kind in POLICY_KINDS:
            policy = policy_of(environment, kind, sample, seed=1)
            assert policy is not None
            found += await played(environment, policy, sample, monkeypatch)
        if name in IN_STATE:
            answers = [*(answer for answer, _ in found), *odd(protocol)]
            assert {read_answer(environment, answer) for answer in answers} == {None}
            return
        for reply in odd(protocol):
            found += (await played(environment, in_turn(reply), sample, monkeypatch))[:1]
    assert len(found) > len(odd(protocol))
    readings = [read_answer(environment, answer) for answer, _ in found]
    shown = shower(name, fields, protocol)
    for (answer, parsed), reading in zip(found, readings, strict=True):
        assert is_as_read(reading, parsed, shown), (answer, reading, parsed)


@pytest.mark.shared
async def test_14_the_golden_traces_commands_are_shown_as_they_were_carried_out() -> None:
    data = SHARED_DATA / "alfworld"
    environment = ALFWorld(data=data / "json_2.1.1")
    traces = [json.loads(path.read_text(encoding="utf-8")) for path in (data / "golden_traces").glob("*.json")]
    walked = {trace["gamefile"].removeprefix("json_2.1.1/"): trace["walkthrough"] for trace in traces}
    compared = 0
    for entry in dataset.load(data / "json_2.1.1", None, None).entries:
        answers = [Action(content=f"THOUGHT: on.\nACTION: {each}") for each in ("Fly ", *walked[entry.path])]
        finish = await play_to_finish(environment, entry.sample, CallingAgent(in_turn(*answers)))
        steps = finish.detail["steps"]
        assert isinstance(steps, list)
        done = [each["action"] for each in steps if isinstance(each, dict)]
        readings = [environment.parse_action(answer) for answer in answers]
        assert readings == [ParsedAction(kind="action", text=str(each)) for each in done]
        compared += len(done)
    assert compared > 100
