"""The acceptance list of STSS, one test a line under its number.

Runs that are killed in the town's days are tests/faults/test_environments.py.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

from environments.stss import policies, scoring
from environments.stss.data.repairs import instantiate, repair
from environments.stss.dataset import Data, SocialTask, SubGoal, Target, home_of
from environments.stss.days.transcript import ActivityRecord, EventLog, unpack
from environments.stss.environment import Stss
from environments.stss.language import scenarios
from environments.stss.reply import UTTERANCE_WORDS
from environments.stss.town.schedule import DAY, END, Kind, read_stamp
from proctor.environment import Agent, Policy
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Action, Finish, FinishReason, Message, Observation
from tests.acceptance.stss_people import People
from tests.e2e.proctor import TOKEN, exits
from tests.pace import cost_s
from tests.scripted_model import ScriptedModel
from tests.support import SHARED_DATA, serving
from tests.unit.environments.fixed_policies import garbage
from tests.unit.environments.stss.town_model import Model as TownModel

STSS = SHARED_DATA / "stss"
PolicyOf = Callable[[Stss, str], Policy]


@cache
def data() -> Data:
    return Data(STSS)


@cache
def dev() -> Stss:
    return Stss(data=STSS)


CATEGORIES = ("public", "appointment", "companions", "online", "help")


POLICIES: dict[str, PolicyOf] = {
    "ideal_inviter": lambda environment, sample: environment.reference(sample),
    "vague_inviter": lambda environment, sample: policies.vague_inviter(environment.script(sample)),
    "silent": lambda environment, sample: policies.silent(),
    "liar": lambda environment, sample: policies.liar(environment.script(sample)),
    "late": lambda environment, sample: policies.late(environment.script(sample)),
    "garbage": lambda environment, sample: garbage,
    "naive": lambda environment, sample: environment.naive(sample),
    "random": lambda environment, sample: environment.random(sample),
}


async def play_all(environment: Stss, name: str) -> dict[str, Finish]:
    policy = POLICIES[name]
    return {
        sample: await play_to_finish(environment, sample, PolicyAgent(policy(environment, sample)))
        for sample in environment.samples()
    }


@pytest.fixture(scope="module")
def played() -> dict[str, dict[str, Finish]]:
    """Every policy of section 10 on the tasks of the dev data."""
    return {name: asyncio.run(play_all(dev(), name)) for name in POLICIES}


def mean(finishes: dict[str, Finish], *categories: str) -> float:
    scores = [
        finish.score or 0.0 for finish in finishes.values() if not categories or finish.detail["category"] in categories
    ]
    return sum(scores) / len(scores)


# 1 to 4: the data.


@pytest.mark.shared
def test_01_the_published_map_has_its_walls_places_and_ways() -> None:
    town = data().town
    world = town.world
    assert (len(world.walls), sum(world.walls), len(world.reachable)) == (14_000, 2_064, 4_158)
    assert all(set(world.tiles(home_of(persona))) & world.reachable for persona in town.personas.values())
    assert len(town.personas) == 25
    assert (len(world.sectors), len(world.arenas), len(world.objects)) == (19, 63, 222)
    assert len({address.rpartition(":")[2] for address in world.objects}) == 46
    assert all(set(world.tiles(address)) & world.reachable for address in world.objects)
    start = town.positions["Adam Smith"]
    for address in world.objects:
        way = world.path(start, address)
        assert len(way) == world.distance(start, address)
        assert (way or [start])[-1] in world.tiles(address)


@pytest.mark.shared
def test_02_twenty_tasks_load_and_the_log_lists_what_is_repaired() -> None:
    counts = Counter(task.category for task in data().tasks)
    assert [counts[name] for name in ("public", "appointment", "companions", "online", "help")] == [7, 3, 3, 3, 4]
    for task in data().tasks:
        assert 11 <= len(task.all_chars) <= 13
        assert {task.performer, *task.task.target} <= set(task.all_chars)
    log = {
        (entry.task.removeprefix("base_"), entry.field)
        for task in data().tasks
        for entry in repair(task, data().town).log
    }
    assert log >= {
        ("1124_find_partner_11", "task.goal.0.location"),
        ("1124_ask_for_others_18", "task.goal.0.location"),
        ("1124_public_activity_7", "Description"),
        ("0209_public_activity_0", "Description"),
        ("0209_online_meeting_15", "Description"),
        ("1124_personal_appointment_10", "task.target_num"),
        ("1124_ask_for_others_17", "task.target_num"),
        ("1124_find_partner_13", "Description"),
        ("0209_personal_appointment_9", "task.goal.0.required_character"),
        ("1124_public_activity_6", "task.goal.0.keyword"),
        ("1124_party_0", "goal"),
    }
    changed = {
        entry.task for task in data().tasks for entry in repair(task, data().town).log if entry.field == "Description"
    }
    assert len(changed) == 6
    texts = {task.env_name: repair(task, data().town).task.Description for task in data().tasks}
    assert "6 other people" in texts["base_1124_public_activity_7"]
    assert "exercise" in texts["base_1124_find_partner_13"]
    assert "Hobbs Cafe" in texts["base_1124_ask_for_others_18"]


@pytest.mark.shared
def test_03_twenty_five_personas_load_and_every_home_is_on_the_map() -> None:
    town = data().town
    assert len(town.personas) == 25
    assert sum(bool(persona.daily_plan_req) for persona in town.personas.values()) == 12
    for name, persona in town.personas.items():
        assert home_of(persona) in town.world
        assert town.positions[name] in town.world.reachable


@pytest.mark.shared
def test_04_a_template_gives_the_same_cast_twice_with_the_target_in_it() -> None:
    people = tuple(data().town.personas)
    casts = set()
    for template in data().templates:
        for seed in range(20):
            task = instantiate(template, "t", people, seed)
            assert task == instantiate(template, "t", people, seed)
            assert {task.performer, *template.task.target} <= set(task.all_chars)
            assert 10 <= len(task.others) <= 12
            assert "#" not in task.FPG + task.goal + task.Description
            casts.add(task.all_chars)
            if task.category == "public":
                assert task.task.target_num == -(-len(task.others) // 2) + 1
            if task.category == "companions":
                assert task.task.target_num == -(-len(task.others) // 3) + 1
    assert len(casts) == 100
    environment = Stss(data=STSS, templates=2)
    assert len(environment.samples()) == 10


# 5: the policies.


@pytest.mark.shared
def test_05_the_policies_reach_what_the_table_says(played: dict[str, dict[str, Finish]]) -> None:
    assert_order({name: mean(finishes) for name, finishes in played.items()})
    assert mean(played["vague_inviter"]) > mean(played["silent"])
    assert mean(played["liar"], "companions", "appointment") == 0
    assert any(finish.metrics["compat"] > 0 for finish in played["liar"].values())
    assert mean(played["late"], "public") <= mean(played["silent"], "public")
    for sample, finish in played["garbage"].items():
        assert finish.reason is FinishReason.INVALID_FORMAT
        assert finish.score == played["silent"][sample].score
    assert mean(played["random"]) < mean(played["naive"]) < mean(played["ideal_inviter"])


def assert_order(means: Mapping[str, float]) -> None:
    """Silent 0 <= late, vague and naive < liar < ideal 1; vague and naive below half of ideal."""
    assert (means["silent"], means["ideal_inviter"]) == (0, 1)
    assert max(means[name] for name in ("late", "vague_inviter", "naive")) < means["liar"] < means["ideal_inviter"]
    assert max(means["vague_inviter"], means["naive"]) < means["ideal_inviter"] / 2


PlayDriven = Callable[[str, str], Finish]


@pytest.fixture(scope="module")
def play_driven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayDriven]:
    """Plays a policy on a task among people of a scripted model, who agree in all spellings, now and then in vain."""
    with TownModel() as model, serving(model):
        environment = Stss(data=STSS, driver=model.config, cache=tmp_path_factory.mktemp("cache"))

        async def played(name: str, sample: str) -> Finish:
            people = People(data().town, environment.task(sample))
            model.says = lambda asked: people(asked, json.loads(model.asked[-1])[1]["content"])
            async with environment.lifespan():
                return await play_to_finish(environment, sample, PolicyAgent(POLICIES[name](environment, sample)))

        yield lambda name, sample: asyncio.run(played(name, sample))


@pytest.mark.shared
def test_05_the_reference_does_not_wait_for_the_wording_of_the_rules(play_driven: PlayDriven) -> None:
    finishes = {sample: play_driven("ideal_inviter", sample) for sample in dev().samples()}
    assert {finish.reason for finish in finishes.values()} == {FinishReason.COMPLETED}
    assert mean(finishes) >= 0.9
    assert all(finish.metrics["invitations"] > 0 for finish in finishes.values())


@pytest.mark.shared
def test_05_people_driven_by_a_model_keep_the_order_of_the_policies(play_driven: PlayDriven) -> None:
    """On one task of each category."""
    some = [next(each for each in dev().samples() if dev().category(each) == of) for of in CATEGORIES]
    names = ("silent", "late", "vague_inviter", "naive", "liar", "ideal_inviter")
    assert_order({name: mean({sample: play_driven(name, sample) for sample in some}) for name in names})


@pytest.mark.shared
def test_05_the_floor_stands_beside_every_score(played: dict[str, dict[str, Finish]]) -> None:
    for sample, finish in played["ideal_inviter"].items():
        assert finish.metrics["floor"] == played["silent"][sample].score
    summary = dev().summarize(list(played["ideal_inviter"].values()))
    assert summary.metrics["floor"] < 0.1
    assert summary.metrics["tasks_public"] == 7
    assert summary.metrics["commitments_kept"] + summary.metrics["no_shows"] == summary.metrics["commitments_made"]


# 6: repeatable.


class PlayedApart(NamedTuple):
    """What a process of its own made of a task."""

    trajectory: str
    cost_s: float


def _play_apart(sample: str) -> PlayedApart:
    trajectories = []

    def play() -> None:
        environment = dev()
        finish = asyncio.run(environment.play(sample, PolicyAgent(environment.reference(sample))))
        trajectories.append(str(finish.detail["trajectory"]))

    cost = cost_s(play)
    return PlayedApart(trajectories[0], cost)


@pytest.fixture(scope="module")
def played_apart() -> dict[str, PlayedApart]:
    """Every task of the dev data by the reference, in eight processes.

    They are forked from one that has imported this file, and gives sets another order than the process of the tests.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    samples = dev().samples()
    with ProcessPoolExecutor(8, mp_context=context) as pool:
        return dict(zip(samples, pool.map(_play_apart, samples), strict=True))


@pytest.mark.shared
def test_06_the_trajectory_is_the_same_in_one_process_and_in_eight(
    played: dict[str, dict[str, Finish]], played_apart: dict[str, PlayedApart]
) -> None:
    everything = {sample: str(finish.detail["trajectory"]) for sample, finish in played["ideal_inviter"].items()}
    assert len(set(everything.values())) == len(everything)
    assert {sample: apart.trajectory for sample, apart in played_apart.items()} == everything


@pytest.mark.shared
async def test_06_eight_sessions_at_once_are_as_one_alone(played: dict[str, dict[str, Finish]]) -> None:
    environment = dev()
    samples = environment.samples()[:8]
    agents = [PolicyAgent(environment.reference(sample)) for sample in samples]
    finishes = await asyncio.gather(
        *(environment.play(sample, agent) for sample, agent in zip(samples, agents, strict=True))
    )
    for sample, finish in zip(samples, finishes, strict=True):
        assert finish.detail["trajectory"] == played["ideal_inviter"][sample].detail["trajectory"]


# 7: hand-made trajectories.

KINDS: dict[str, Kind] = {"absent": "walk", "talk": "talk", "sleep": "sleep"}


def task(category: str, *goals: SubGoal, heads: int = 3, target: Sequence[str] = ()) -> SocialTask:
    kinds: dict[str, Literal["Party", "Personal appointment", "Find partner", "Online meeting", "Ask for others"]] = {
        "public": "Party",
        "appointment": "Personal appointment",
        "companions": "Find partner",
        "online": "Online meeting",
        "help": "Ask for others",
    }
    return SocialTask(
        goal="",
        FPG="",
        Description="",
        task_type=kinds[category],
        task=Target(target=tuple(target), target_num=heads, goal=goals),
        performer="Pia",
        env_name="made",
        all_chars=("Pia", "Alf", "Bea", "Cem"),
    )


def goal(keyword: str, location: str = "Cafe", start: str = "2023-02-14 19:00", minutes: int = 60) -> SubGoal:
    return SubGoal(keyword=keyword, start_time=start, duration_in_minutes=minutes, location=location)


def event_log(deeds: str) -> EventLog:
    """The log of deeds as `WHO DAY HH:MM ACTIVITY (KIND) @ SECTOR:ARENA`, without a place in the cafe."""
    records = []
    for deed in deeds.split(", "):
        told, _, place = deed.partition(" @ ")
        match = re.fullmatch(r"(\w+) (\d [\d:]{5}) (.+?)(?: \((\w+)\))?", told)
        assert match is not None
        who, start, activity, kind = match.groups()
        sector, _, arena = (place or "Cafe:room").partition(":")
        shown = ("", "") if kind == "absent" else (sector, arena)
        address = f"<persona> {sector}" if kind == "talk" else f"the Ville:{sector}:{arena}:table"
        records.append(
            ActivityRecord(read_stamp(f"2023-02-1{start}"), who, 1, *shown, activity, address, KINDS.get(kind, "act"))
        )
    return EventLog(tuple(sorted(records, key=lambda record: record.t)), (), ())


STEPS = {"x": "Cafe", "y": "Park", "z": "Hall"}
MADE = {
    "party": task("public", goal("party")),
    "online": task("online", goal("quiz", "N/A")),
    "anytime": task("public", goal("party", start="N/A")),
    "room": task("public", goal("party", "Cafe:room")),
    "meet": task("appointment", goal("chess", "N/A", "N/A"), target=["Alf"]),
    "lunch": task("companions", goal("lunch", "Cafe", "N/A")),
    "anywhere": task("companions", goal("lunch", "N/A", "N/A")),
    "errand": task("help", goal("buy pills", "Cafe", "N/A"), goal("deliver pills", "Park", "N/A")),
    "timed": task("help", goal("buy pills", "Cafe"), goal("deliver pills", "Park")),
    "three": task("help", *(goal(f"step {word}", place, "N/A") for word, place in STEPS.items())),
}
TRAJECTORIES = Path(__file__).with_name("stss_trajectories.jsonl").read_text(encoding="utf-8").splitlines()
"""Made by hand: the task, who does what when, and its score by the rules and by those of the published code."""


@pytest.mark.parametrize("row", [*map(json.loads, TRAJECTORIES)], ids=lambda row: row["why"])
def test_07_a_hand_made_trajectory_scores(row: dict[str, Any]) -> None:
    wanted, made = MADE[row["task"]], event_log(row["deeds"])
    assert scoring.score(made, wanted) == pytest.approx(row["strict"], abs=1e-6)
    assert scoring.published_score(made, wanted) == pytest.approx(row["published"], abs=1e-6)


# 8: limits.


class Chatty(Agent):
    """Talks to everybody without end, in utterances far too long; keeps how much it was sent."""

    def __init__(self, policy: Policy) -> None:
        self._agent = PolicyAgent(policy)
        self.calls = 0
        self.history = self.longest = 0

    async def act(self, observation: Observation) -> Action:
        self.calls += 1
        self.history = 0 if observation.fresh else self.history
        self.history += sum(len(message.content) for message in observation.messages)
        self.longest = max(self.longest, self.history)
        action = await self._agent.act(observation)
        if '"utterance"' in action.content:
            reply = {**json.loads(action.content), "talk": True, "utterance": "word " * 5_000, "end": False}
            action = Action(content=json.dumps(reply))
        self.history += min(len(action.content), 500)
        return action


@pytest.mark.shared
async def test_08_utterances_and_calls_stay_within_their_limits() -> None:
    environment = Stss(data=STSS, sociability=1.0)
    for sample in environment.samples()[::3]:
        agent = Chatty(policies.vague_inviter(environment.script(sample)))
        finish = await environment.play(sample, agent)
        assert agent.calls <= 200
        assert finish.metrics["calls"] == agent.calls
        talks = unpack(str(finish.detail["evidence"])).event_log.talks
        performer = finish.detail["performer"]
        mine = [line for talk in talks for line in talk.lines if line.speaker == performer]
        assert mine
        assert all(len(line.text.split()) <= UTTERANCE_WORDS for line in mine)
        for talk in talks:
            assert max(Counter(line.speaker for line in talk.lines).values()) <= 8
        by_day = Counter(talk.t // DAY for talk in talks if performer in talk.people)
        assert by_day[0] <= 14
        assert by_day[1] <= 10
        pairs = Counter((talk.t // DAY, frozenset(talk.people)) for talk in talks)
        assert max(pairs.values()) == 1
        assert all(talk.t + talk.minutes <= END for talk in talks)


@pytest.mark.shared
async def test_08_a_context_stays_below_three_thousand_tokens() -> None:
    environment = dev()
    for sample in environment.samples()[::5]:
        agent = Chatty(environment.reference(sample))
        await environment.play(sample, agent)
        assert agent.longest < 3_000 * 4, "four characters a token"


async def test_08_a_performer_out_of_calls_is_scored_and_silent_from_there_on() -> None:
    environment = Stss(calls=8)
    sample = environment.samples()[0]
    finish = await environment.play(sample, PolicyAgent(environment.reference(sample)))
    assert (finish.reason, finish.metrics["calls"]) == (FinishReason.TURN_LIMIT, 8)


# 9: the language level.


@pytest.mark.shared
def test_09_scenarios_of_our_own_runs_tell_the_policies_apart(
    played: dict[str, dict[str, Finish]], tmp_path: Path
) -> None:
    days = dev()
    found = [
        scenario
        for name in ("ideal_inviter", "naive", "vague_inviter")
        for sample, finish in played[name].items()
        for scenario in scenarios.meetings(
            sample,
            str(finish.detail["performer"]),
            days.task(sample).task.target,
            unpack(str(finish.detail["evidence"])).event_log,
        )
    ]
    chosen = scenarios.chosen(found)
    assert len(chosen) >= 150
    pairs = Counter((scenario.task, scenario.partner) for scenario in chosen)
    assert max(pairs.values()) <= 2
    assert all(scenario.minute < DAY for scenario in chosen)
    path = tmp_path / "scenarios.json"
    path.write_text(scenarios.ScenarioFile(format="proctor-stss-1", scenarios=tuple(chosen)).model_dump_json())
    assert json.loads(path.read_text())["scenarios"][0]["task"]
    environment = Stss(data=STSS, level="language", scenarios=path)
    assert len(environment.samples()) == 20
    rates = {}
    for name in ("ideal_inviter", "vague_inviter", "silent"):
        finishes = asyncio.run(play_all(environment, name))
        rates[name] = environment.summarize(list(finishes.values())).metrics
    for rate in ("sr_conversation", "micro_sr_conversation"):
        assert rates["ideal_inviter"][rate] == 1
        assert rates["vague_inviter"][rate] < rates["ideal_inviter"][rate] - 0.3
        assert rates["silent"][rate] == 0
    assert rates["ideal_inviter"]["gcsr_summary"] == 1
    appointments = {scenario.partner for scenario in chosen if "appointment" in scenario.task}
    assert appointments == {"Yuriko Yamamoto", "Giorgio Rossi", "Latoya Williams"}


# 10: speed, in CPU time of the machine of benchmarks/RESULTS.md.


@pytest.mark.shared
def test_10_two_days_take_less_than_five_seconds_of_cpu() -> None:
    environment = Stss(data=STSS)
    sample = environment.samples()[0]
    agent = PolicyAgent(environment.reference(sample))
    assert cost_s(lambda: asyncio.run(environment.play(sample, agent))) < 5


@pytest.mark.shared
def test_10_twenty_tasks_take_less_than_a_minute(played_apart: dict[str, PlayedApart]) -> None:
    assert len(played_apart) == 20
    assert sum(apart.cost_s for apart in played_apart.values()) < 60, "on one core"


PLAN = """\
name: town
endpoints: [{{name: mine, base_url: "{url}", concurrency: 1}}]
agents: [{{name: mine, endpoint: mine, model: m}}]
tasks: [{{name: stss, environment: stss}}]
"""


@pytest.mark.thorough
def test_the_days_of_a_run_are_written_and_frozen(tmp_path: Path) -> None:
    naive = Stss().naive("fernmouth_sing_along")

    def answer(body: dict[str, Any]) -> str:
        asked = [Message(role=message["role"], content=message["content"]) for message in body["messages"]]
        return naive("performer", asked).content

    with ScriptedModel(answer) as model, serving(model):
        (tmp_path / "plan.yaml").write_text(PLAN.format(url=model.url))
        exits(0, "run", "plan.yaml", "--name=one", "--limit=1", "-q", cwd=tmp_path, OPENAI_API_KEY=TOKEN)
    for form in (("stss-files",), ("stss-scenarios", "--to", "frozen.json")):
        exits(0, "export", "one", "--as", *form, cwd=tmp_path)
    (trajectory,) = (tmp_path / "runs" / "one" / "stss-days").glob("*/trajectory.jsonl")
    first = json.loads(trajectory.read_text().splitlines()[0])
    assert set(first) == {"t", "who", "tile", "sector", "arena", "activity", "address", "kind", "talk_with"}
    assert scenarios.load(tmp_path / "frozen.json")
