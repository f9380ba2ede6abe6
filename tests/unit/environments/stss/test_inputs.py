"""What STSS makes of replies that are odd or wrong, and of parts that fail (section 11 of its specification)."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from environments.stss import policies
from environments.stss.days.transcript import unpack
from environments.stss.environment import MAX_CALLS, Stss
from environments.stss.spellings import values
from environments.stss.town.schedule import END
from proctor.environment import Agent, ContextLimitExceeded, Policy
from proctor.llm.config import ChatConfig
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Action, FinishReason, Observation, ToolCall


class Scripted(Agent):
    """Follows a policy, but for some codes, which it answers with texts of its own; keeps what it was told."""

    def __init__(self, policy: Policy, codes: Sequence[str], *replies: str) -> None:
        self._agent, self._codes, self._replies = PolicyAgent(policy), codes, replies
        self._given = 0
        self.told: list[str] = []

    async def act(self, observation: Observation) -> Action:
        text = observation.messages[-1].content
        self.told.append(text)
        action = await self._agent.act(observation)
        if any(f"Request {code}." in text for code in self._codes) or (
            text.startswith("Your answer can't be used") and self._given
        ):
            self._given += 1
            return Action(content=self._replies[min(self._given, len(self._replies)) - 1])
        return action


def day_reply(**first: str) -> str:
    row = {"start": "08:00", "end": "09:00", "activity": "reading", "place": "Anchor Inn"} | first
    rest = [{"start": f"{h}:00", "end": f"{h}:30", "activity": "reading", "place": "home"} for h in (10, 11, 12)]
    return json.dumps({"wake": "07:00", "bed": "23:00", "schedule": [row, *rest]})


async def planned(reply: str) -> tuple[float, float, int, str]:
    """What comes of a plan of the day: errors of format and of action, how often it is asked for again, and the end."""
    agent = Scripted(policies.silent(), "D", reply)
    finish = await Stss().play(Stss().samples()[0], agent)
    again = sum(text.startswith("Your answer can't be used") for text in agent.told)
    return finish.metrics["format_errors"], finish.metrics["action_errors"], again, finish.reason.value


async def spoken(utterance: str) -> tuple[list[str], float | None]:
    """What is passed on of an utterance, once, and the score; for tables, as `planned`."""
    environment = Stss()
    sample = environment.samples()[0]
    agent = Scripted(environment.naive(sample), "EU", json.dumps({"talk": True, "utterance": utterance}))
    finish = await environment.play(sample, agent)
    talks = unpack(str(finish.detail["evidence"])).event_log.talks
    mine = {talk.lines[0].text for talk in talks if talk.lines[0].speaker == finish.detail["performer"]}
    return sorted(mine), finish.score


def everywhere(text: str) -> str:
    """A reply to any request, with the text wherever a text may stand."""
    hours = [(f"{hour:02}:00", f"{hour:02}:50") for hour in range(8, 20)]
    rows = [{"start": start, "end": end, "activity": text, "place": "Anchor Inn"} for start, end in hours]
    promise = {"activity": text, "place": "Anchor Inn", "start": "2023-02-14 15:00", "end": "2023-02-14 16:00"}
    thoughts = {"plan": [text] * 3, "schedule_reminder": text, "checklist": [text] * 4, "notes": [text] * 3}
    day = {"wake": "07:00", "bed": "23:00", "schedule": rows}
    return json.dumps(thoughts | day | {"talk": True, "utterance": text, "note": text, "commitment": promise})


@pytest.mark.parametrize("text", ["a \ud800 b", "a \0 \x1b[2J \x85 b", "x" * 1_500, "word " * 300])
async def test_no_text_of_a_reply_breaks_or_floods_what_comes_after(text: str) -> None:
    environment = Stss()
    agent = Scripted(policies.silent(), ["T1", "T2", *"DEUNR"], everywhere(text))
    finish = await play_to_finish(environment, environment.samples()[0], agent)
    assert finish.score is not None
    assert json.loads(finish.model_dump_json()) == finish.model_dump(mode="json")
    told = "".join(agent.told)
    assert "Keep in mind" in told
    assert not {*"\ud800\0\x1b\x85"} & {*told}
    assert max(map(len, agent.told)) < 6_000


@pytest.mark.parametrize(
    ("code", "reply", "kind"),
    [
        ("D", day_reply(place="Anchr Inm" * 1_000), "action_errors"),
        ("D", day_reply(start="9" * 1_000), "action_errors"),
        ("D", "{" * 10_000_000, "format_errors"),
        ("D", '{"a": "' + "x" * 10_000_000, "format_errors"),
        ("D", '{"a":' * 9_000 + "1" + "}" * 9_000, "format_errors"),
        ("D", '{"wake":' + "9" * 9_000 + "}", "format_errors"),
        ("R", json.dumps({"notes": ["a"] * 9_000}), "format_errors"),
    ],
    ids=["long place", "long time", "braces", "never closed", "nested", "big number", "many notes"],
)
async def test_what_is_far_too_much_is_refused_in_few_words(code: str, reply: str, kind: str) -> None:
    environment = Stss(calls=4 if code == "D" else MAX_CALLS)  # the first day's plan is asked for twice
    agent = Scripted(policies.silent(), code, reply)
    finish = await play_to_finish(environment, environment.samples()[0], agent)
    assert finish.metrics[kind] >= 2
    assert finish.score is not None
    assert max(len(text) for text in agent.told if text.startswith("Your answer can't be used")) < 500


async def test_a_tool_call_instead_of_text_is_no_object() -> None:
    class Caller(Agent):
        async def act(self, observation: Observation) -> Action:
            return Action(content="", tool_calls=(ToolCall(id="1", name="day", arguments=day_reply()),))

    environment = Stss()
    finish = await play_to_finish(environment, environment.samples()[0], Caller())
    assert (finish.reason, finish.score) == (FinishReason.INVALID_FORMAT, 0)


@pytest.mark.parametrize(
    "promise",
    [
        {"start": "2023-02-13 06:30", "end": "2023-02-13 07:00"},
        {"start": "2023-02-14 02:00", "end": "2023-02-14 03:00"},
        {"start": "2023-02-14 16:00", "end": "2023-02-14 15:00"},
        {"start": "2023-02-14 16:00", "end": "2023-02-14 17:00", "place": "Atlantis"},
    ],
    ids=["past", "at night", "backwards", "nowhere"],
)
async def test_a_commitment_that_cannot_be_is_refused(promise: dict[str, str]) -> None:
    environment = Stss()
    sample = environment.samples()[0]
    note = {"note": "", "commitment": {"activity": "tea", "place": "Anchor Inn"} | promise, "reschedule": None}
    agent = Scripted(environment.reference(sample), "N", json.dumps(note))
    finish = await environment.play(sample, agent)
    agreed = unpack(str(finish.detail["evidence"])).event_log.agreed
    assert [each for each in agreed if each.who == finish.detail["performer"]] == []
    assert finish.reason is FinishReason.INVALID_ACTION


async def test_of_two_commitments_at_the_same_time_the_first_stays() -> None:
    environment = Stss()
    sample = environment.samples()[0]
    times = {"place": "Anchor Inn", "start": "2023-02-14 16:00", "end": "2023-02-14 17:00"}
    notes = [json.dumps({"note": "", "commitment": {"activity": what} | times}) for what in ("tea", "cake")]
    agent = Scripted(environment.reference(sample), "N", *notes)
    finish = await environment.play(sample, agent)
    agreed = unpack(str(finish.detail["evidence"])).event_log.agreed
    mine = [each.commitment.activity for each in agreed if each.who == finish.detail["performer"]]
    assert mine == ["tea"]
    assert any("you are committed then: tea, Anchor Inn, 2023-02-14 16:00-17:00" in text for text in agent.told)
    assert any("- Committed: tea, Anchor Inn, 2023-02-14 16:00-17:00" in text for text in agent.told)


async def test_a_context_that_is_full_is_scored_with_what_was_reached() -> None:
    class Full(Agent):
        def __init__(self, policy: Policy) -> None:
            self._agent = PolicyAgent(policy)
            self._left = 40

        async def act(self, observation: Observation) -> Action:
            self._left -= 1
            if self._left < 0:
                raise ContextLimitExceeded
            return await self._agent.act(observation)

    environment = Stss()
    sample = next(sample for sample in environment.samples() if "birthday" in sample)
    finish = await environment.play(sample, Full(environment.reference(sample)))
    assert finish.reason is FinishReason.CONTEXT_LIMIT
    assert (finish.score or 0) > 0


async def test_a_driver_that_cannot_be_reached_is_a_fault_and_never_rules(tmp_path: Path) -> None:
    driver = ChatConfig(model="town", base_url="http://127.0.0.1:9/v1", max_tries=1)
    environment = Stss(driver=driver, cache=tmp_path)
    async with environment.lifespan():
        finish = await play_to_finish(environment, environment.samples()[0], PolicyAgent(policies.silent()))
    assert finish.reason is FinishReason.TASK_ERROR
    assert "the driver town failed" in str(finish.detail["cause"])


class LateTalker(Agent):
    """Goes to the inn just before the end of each day, and talks there without end."""

    async def act(self, observation: Observation) -> Action:
        text = observation.messages[-1].content
        if "Request D." in text:
            rest = [
                {"start": f"{h}:00", "end": f"{h}:30", "activity": "resting", "place": "home"} for h in (10, 11, 12)
            ]
            inn = {"start": "22:30", "end": "22:59", "activity": "having a drink", "place": "Anchor Inn"}
            return Action(content=json.dumps({"wake": "07:00", "bed": "23:30", "schedule": [*rest, inn]}))
        speaks = "Request E." in text or "Request U." in text
        reply = {"talk": True, "utterance": "la " * 80, "end": False} if speaks else {"note": "", "notes": []}
        return Action(content=json.dumps(reply | {"plan": ["a", "b", "c"], "schedule_reminder": "", "checklist": []}))


async def test_a_talk_in_progress_when_the_days_end_is_closed_and_saved() -> None:
    finish = await Stss().play("fernmouth_birthday", LateTalker())
    talks = unpack(str(finish.detail["evidence"])).event_log.talks
    last = next(talk for talk in reversed(talks) if "Ada Birch" in talk.people)
    assert END - 10 < last.t < END == last.t + last.minutes
    assert len(last.lines) > 2
    assert finish.reason is FinishReason.COMPLETED


def test_escapes_in_loosely_written_json_are_read_as_in_json() -> None:
    strict, loose = r'{"note": "\ud83d\ude42 \u00e9"}', r"""{'note': "\ud83d\ude42 \u00e9"}"""
    assert list(values(loose)) == list(values(strict)) == [{"note": "\U0001f642 é"}]
    assert list(values(r"""{'note': "\ud83d"}""")) == [{"note": "?"}]
