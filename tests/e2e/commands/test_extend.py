"""A run that grew in steps is the run planned whole; what was played is never changed."""

import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from eval_client.plan.plan import Plan
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.planned_trials import PlannedTrials
from eval_client.store.records import Manifest, Trial
from eval_client.store.store import Store
from eval_client.store.trials.scores import planned_scores
from proctor.config.yaml import parse
from tests.e2e.gates import Gate, gate
from tests.e2e.proctor import Server, begin, exits, lasting, server
from tests.faults.parts.farm import put_away
from tests.pace import until

KEY = {"OPENAI_API_KEY": "token-of-the-tests"}
TASKS = """\
  - {name: db-own, environment: db, parameters: {engine: sqlite}}
  - {name: ltp, environment: ltp}
"""
PLAN = """\
name: grown
endpoints: [{{name: e, base_url: "{agents}", concurrency: 4}}]
agents:
  - {{name: random, builtin: random, endpoint: e}}
  - {{name: naive, builtin: naive, endpoint: e}}
tasks:
{tasks}"""
LOCAL = PLAN.format(agents="http://127.0.0.1:9", tasks=TASKS).replace(", endpoint: e", "")
STEPS = (
    ("--epochs", "2"),
    ("--agent", "random"),
    ("--limit", "5"),
    ("--task", "ltp", "--sample", "ltp/english-*"),
    ("--epochs", "3", "--limit", "8"),
)
KILLED = (1, 3)
IDS = ("id", "trial")
"""Trials of an extended run have others."""
"""The steps whose playing client is killed."""
KEYS = ("agent", "task", "epoch", "sample")


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("agents")
    named = "agents: [{name: random, kind: random}, {name: naive, kind: naive}]\n"
    (folder / "agents.yaml").write_text(f"tasks:\n{TASKS}{named}")
    with server("agents", "--config", "agents.yaml", cwd=folder) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a plan whose agents need no server."""
    (tmp_path / "plan.yaml").write_text(LOCAL)
    return tmp_path


def told(folder: Path, run: str, store: Mapping[str, str] = KEY, *, whole: bool = True) -> dict[str, Any]:
    """All figures of a run, its trials and turns, without what differs between equal runs."""
    found: dict[str, Any] = {}
    for what in ("report", "compare")[: 2 if whole else 0]:
        found[what] = lasting(json.loads(exits(0, what, run, "--json", cwd=folder, **store).stdout), *IDS)
    for what in ("trials", "turns"):
        exits(0, "export", run, "--what", what, "--to", "rows.jsonl", cwd=folder, **store)
        rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
        rows.sort(key=lambda row: [*(row[key] for key in KEYS), row.get("turn", 0)])
        found[what] = lasting(rows, *IDS)
    return found


def stopped_in_mid_extension(way: Gate, *step: str, cwd: Path, **store: str) -> "subprocess.Popen[str]":
    """A client that extends the run, three of whose calls have passed."""
    calls = way.calls
    way.shut(spared=3)
    playing = begin("extend", "r", *step, "-q", cwd=cwd, **store)
    until(lambda: way.calls > calls + 3 or playing.poll() is not None)
    return playing


def test_a_run_extended_in_five_steps_is_the_run_planned_whole(
    tmp_path: Path, agents: Server, store: dict[str, str]
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN.format(agents=agents.url, tasks=TASKS))
    both = ("--epochs", "3", "--limit", "8", "--sample", "db-own/*", "--sample", "ltp/english-*")
    with gate(plan, agents.url) as way:
        exits(0, "run", "plan.yaml", "--name", "whole", *both, "-q", cwd=tmp_path, **KEY)
        begun = ("--agent", "naive", "--task", "db-own", "--sample", "db-own/*", "--limit", "2")
        exits(0, "run", "plan.yaml", "--name", "r", *begun, "-q", cwd=tmp_path, **store)
        before = told(tmp_path, "r", store, whole=False)["turns"]
        for number, step in enumerate(STEPS):
            if number not in KILLED:
                exits(0, "extend", "r", *step, "-q", cwd=tmp_path, **store)
                continue
            playing = stopped_in_mid_extension(way, *step, cwd=tmp_path, **store)
            refused = exits(2, "extend", "r", "--epochs", "9", cwd=tmp_path, **store)
            assert "is being played by another client; wait for that client to end, or stop it" in refused.stderr
            playing.send_signal(signal.SIGKILL)
            put_away(playing)
            way.open()
            exits(0, "resume", "r", "-q", cwd=tmp_path, **store)
    whole, grown = told(tmp_path, "whole"), told(tmp_path, "r", store)
    assert len(whole["trials"]) == 2 * 3 * (8 + 6)
    assert all(turn in grown["turns"] for turn in before), "what was played stays"
    assert list(whole) == list(grown)
    for what, value in whole.items():
        assert grown[what] == value, what


def test_parts_extended_by_themselves_in_other_steps_are_the_whole_run(folder: Path) -> None:
    exits(0, "run", "plan.yaml", "--name", "whole", "--epochs", "2", "--limit", "9", "-q", cwd=folder)
    for number in (1, 2):
        asked = ("--name", "r", "--part", f"{number}/2", "--limit", "4", "--agent", "naive", "-q")
        exits(0, "run", "plan.yaml", *asked, cwd=folder)
    steps = ("--epochs", "2"), ("--limit", "9"), ("--agent", "random")
    for step in steps:
        exits(0, "extend", "r.1of2", *step, "-q", cwd=folder)
    unlike = exits(2, "report", "r", cwd=folder)
    assert "extend each part alike: proctor extend PART" in unlike.stderr
    exits(0, "extend", "r.2of2", *(option for step in reversed(steps) for option in step), "-q", cwd=folder)
    assert told(folder, "r") == told(folder, "whole")


def test_only_additions_are_taken_and_what_adds_nothing_says_so(folder: Path) -> None:
    begun = ("--name", "r", "--task", "db-own", "--agent", "naive", "--limit", "3", "--epochs", "2", "-q")
    exits(0, "run", "plan.yaml", *begun, cwd=folder)
    before = told(folder, "r", whole=False), json.loads(exits(0, "report", "r", "--json", cwd=folder).stdout)
    for options, says in (
        (("--epochs", "1"), "epochs: 2 -> 1\nan extension adds, and changes nothing that the run has"),
        (("--limit", "2"), "task db-own: this leaves out 1 sample that the run has ("),
        (("--epochs", "3", "--set", "seed=1"), "seed: 0 -> 1"),
        (("--epochs", "3", "--set", "tasks.db-own.parameters.profile=compat"), "profile"),
        (("--sample", "db-own/none"), "--sample db-own/none: matches nothing; there are db-own/"),
        (("--agent", "gpt"), "--agent gpt: matches nothing; there are random, naive; or add it to the plan's file"),
        (("--task", "shell"), "--task shell: matches nothing; there are db-own, ltp; or add it to the plan's file"),
    ):
        refused = exits(2, "extend", "r", *options, cwd=folder)
        assert says in refused.stderr, refused.stderr
    resumed = exits(2, "resume", "r", "--set", "epochs=3", cwd=folder)
    assert "epochs: 2 -> 3\nundo that, or add that to the run: proctor extend RUN" in resumed.stderr
    nothing = exits(0, "extend", "r", "--limit", "3", cwd=folder)
    assert "has all of this already: nothing is added, and nothing is left to play" in nothing.stderr
    assert (told(folder, "r", whole=False), json.loads(exits(0, "report", "r", "--json", cwd=folder).stdout)) == before


def test_the_plan_file_may_add_and_so_may_agents_and_tasks_that_it_lacks(folder: Path) -> None:
    assigned = "assignments: [{agents: [naive], tasks: [db-own]}]\n"
    (folder / "plan.yaml").write_text(f"{LOCAL}{assigned}")
    (folder / "mine.py").write_text("def answer(messages, tools):\n    return 'Action: Answer\\nFinal Answer: []'\n")
    exits(0, "run", "plan.yaml", "--name", "r", "--limit", "2", "-q", cwd=folder)
    (folder / "plan.yaml").write_text(f"{LOCAL}{assigned}epochs: 2\n")
    exits(0, "extend", "r", "-q", cwd=folder)
    own = ("extend", "r", "--agent", "./mine.py:answer", "--task", "webshop", "-q")
    assert "is extended by 12 trials: agent answer; task webshop" in exits(0, *own, cwd=folder).stderr
    assert "nothing is added" in exits(0, *own, cwd=folder).stderr
    before = told(folder, "r", whole=False)["trials"]
    counts = [sum((row["agent"], row["task"]) == pair for row in before) for pair in [("answer", "webshop")]]
    assert (len(before), counts) == (16, [4])
    exits(0, "resume", "r", "-q", cwd=folder)
    assert told(folder, "r", whole=False)["trials"] == before
    added = Store(connect(sqlite_url(folder / "runs" / "r")), "r").manifest().additions
    assert [(each.what, each.trials) for each in added] == [
        (("epochs: 1 -> 2",), 2),
        (("agent answer", "task webshop"), 12),
    ]
    assert {each.version for each in added} == {version("proctor")}


def test_an_extension_that_ends_midway_leaves_the_run_as_it_was_and_samples_keep_their_order(folder: Path) -> None:
    names = [f"s{n:03}" for n in range(150)]
    plan = parse(f"{LOCAL}assignments: [{{agents: [naive, random], tasks: [ltp]}}]", "plan", Plan)
    store = Store(connect(sqlite_url(folder)), "r")
    begun = Manifest(version="1", plan_path="p", plan={}, identity={})
    store.create(begun, PlannedTrials(plan, {"ltp": dict.fromkeys(names[::2], "c")}))
    there, first = store.planned()
    new = list(PlannedTrials(plan, {"ltp": dict.fromkeys(names, "c")}).beyond(there, first))
    wider = begun.model_copy(update={"order": {"ltp": tuple(names)}})

    def broken() -> Iterator[Trial]:
        yield from new
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.update_manifest(wider, broken())
    assert (store.manifest(), store.planned()) == (begun, (there, first))
    store.update_manifest(wider, new)
    assert [trial.id for trial in store.trials()] == list(range(300))
    assert [list(scores) for scores in planned_scores(store, ["naive", "random"]).values()] == [names, names]
