"""Worlds in files of the user's own: named in plans and commands, served elsewhere, edited, broken, planted."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.proctor import environment, exits, proctor, server
from tests.pace import slowly, until

WORLD = '''"""Questions with one word for an answer."""
import json
from pathlib import Path
from typing import Literal
from proctor import Action, Environment, Finish, FinishReason, Message, Observation, ParsedAction, Summary
from proctor import Tool, ToolCall
from near import right

print("printed at import")
WORD = {"type": "object", "properties": {"word": {"type": "string"}}}
TOOL = Tool(name="answer", description="Answers.", parameters=WORD)

class TriviaNight(Environment):
    """Questions."""
    data: Path = Path("rows.jsonl")
    highest: int = 10
    protocol: Literal["text", "tools"] = "text"
    scales = {"points": (0.0, 10.0)}

    def rows(self):
        return {row["id"]: row for row in map(json.loads, self.data.read_text().splitlines())}

    def samples(self):
        return list(self.rows())

    def category(self, sample):
        return f"kind {sample[-1]}"

    def parse_action(self, action):
        return ParsedAction(kind="word", text=self.said(action))

    def said(self, action):
        try:
            return json.loads(action.tool_calls[0].arguments)["word"] if action.tool_calls else action.content
        except (ValueError, KeyError, TypeError, RecursionError):
            return ""

    def reference(self, sample, seed=0):
        word = self.rows()[sample]["answer"]
        call = ToolCall(id="1", name="answer", arguments=json.dumps({"word": word}))
        said = Action(content=word) if self.protocol == "text" else Action(content="", tool_calls=(call,))
        return lambda conversation, transcript: said

    async def play(self, sample, agent, seed=0):
        row = self.rows()[sample]
        tools = (TOOL,) if self.protocol == "tools" else ()
        action = await agent.act(Observation(messages=(Message(role="user", content=row["question"]),), tools=tools))
        print("played", sample)
        return Finish(score=right(self.said(action), row["answer"]), reason=FinishReason.COMPLETED)

    def summarize(self, finishes):
        scores = [10 * finish.score for finish in finishes if finish.score is not None]
        return Summary(primary="points", metrics={"points": sum(scores) / len(scores)} if scores else {})
'''
NEAR = "def right(said, wanted):\n    return float(said == wanted)\n"
ROWS = "".join(json.dumps({"id": f"q{n}", "question": f"{n}+1?", "answer": str(n + 1)}) + "\n" for n in range(4))
PLAN = "agents: [{name: reference, builtin: reference}]\ntasks: [{environment: WORLD}]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "own wörlds")


def write(folder: Path) -> Path:
    folder.mkdir()
    for name, text in {"trivia.py": WORLD, "near.py": NEAR, "rows.jsonl": ROWS}.items():
        (folder / name).write_text(text)
    return folder


def plan(folder: Path, world: str, name: str = "plan.yaml") -> Path:
    (folder / name).write_text(PLAN.replace("WORLD", world))
    return folder / name


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_plan_names_a_file_its_class_or_a_module_in_both_protocols(folder: Path) -> None:
    elsewhere = folder.parent
    plan(folder, "./trivia.py")
    (folder / "random.py").write_text("raise ValueError('a name that hides nothing')")
    exits(0, "run", "own wörlds/plan.yaml", "--name=r", "-q", cwd=elsewhere)
    for spelling in ("./trivia.py:TriviaNight", "trivia:TriviaNight", f"'{folder}/trivia.py'"):
        plan(folder, spelling)
        exits(0, "resume", str(elsewhere / "runs/r"), "--retry=0", "-q", cwd=folder)
    plan(folder, "./trivia.py, parameters: {protocol: tools}")
    told = proctor("resume", "r", "--retry=0", "-q", cwd=elsewhere)
    assert (told.returncode, "protocol" in told.stderr) == (2, True)
    exits(0, "run", "own wörlds/plan.yaml", "--name=t", "-q", cwd=elsewhere)
    for run in ("r", "t"):
        (pair,) = json.loads(exits(0, "report", run, "--json", cwd=elsewhere).stdout)["pairs"]
        assert (pair["task"], pair["environment"], pair["value"]) == ("trivia_night", "trivia.py:TriviaNight", 10.0)
        assert "printed at import\nplayed q" in (elsewhere / "runs" / run / "logs/worker-1.log").read_text()


def test_every_command_takes_a_file(folder: Path) -> None:
    checked = exits(0, "check", "./trivia.py", cwd=folder).stdout
    assert "ok       tools: the reference scores 1" in checked
    assert "ok       tools: the digest has every file beside it" in checked
    (folder / "more.txt").write_text("more")
    change(
        folder / "trivia.py", '"played", sample', '"played", sample, Path(__file__).with_name("more.txt").read_text()'
    )
    assert "it: only `play` opens more.txt, so a run goes on" in exits(0, "check", "./trivia.py", cwd=folder).stdout
    assert exits(0, "play", "trivia:TriviaNight", "q1", "--json", cwd=folder, answers="2\n").stdout.count("\n") == 1
    exits(0, "run", "-m", "reference", "-e", "./trivia.py", "--name=r", "-q", cwd=folder)
    exits(0, "init", "-m", "reference", "-e", "./trivia.py:TriviaNight", "made.yaml", cwd=folder)
    exits(0, "run", "made.yaml", "--name=m", "-q", cwd=folder.parent / folder.name)
    exits(0, "doctor", "made.yaml", cwd=folder)
    with server("worker", "-e", "./trivia.py", cwd=folder) as worker:
        remote = f"{PLAN.replace('WORLD', './trivia.py')}controller: {worker.url}\n"
        (folder / "remote.yaml").write_text(remote)
        exits(0, "run", "remote.yaml", "--name=o", "-q", cwd=folder)
        assert "digest" not in exits(0, "doctor", "remote.yaml", cwd=folder).stdout.replace("samples, digest", "")


def test_a_run_goes_on_at_another_worker_with_the_same_file_and_not_after_an_edit(folder: Path) -> None:
    far = write(folder.parent / "far")
    path = plan(folder, "./trivia.py")
    with server("worker", "-e", "./trivia.py", cwd=far) as worker:
        exits(0, "run", str(path), f"--set=controller={worker.url}", "--name=r", "-q", cwd=folder)
    change(far / "near.py", "def right", "# a comment\ndef  right")
    again = ("resume", "r", "--retry=0", "-q")
    with server("worker", "-e", "./trivia.py", cwd=far) as worker:
        exits(0, *again, f"--set=controller={worker.url}", cwd=folder)
    change(far / "near.py", "float(said == wanted)", "1.0")
    with server("worker", "-e", "./trivia.py", cwd=far) as worker:
        said = exits(2, *again, f"--set=controller={worker.url}", cwd=folder).stderr
    assert (
        "task trivia_night: its data, prompts or settings changed since the run began (near.py, line 3 differs" in said
    )


def test_two_workers_with_other_files_never_play_one_run(folder: Path) -> None:
    far = write(folder.parent / "far")
    change(far / "near.py", "float(said == wanted)", "1.0")
    with server("controller", "--settle=0", cwd=folder) as controller:
        held = ("worker", "-e", "./trivia.py", "--controller", controller.url)
        with server(*held, "--name=a", cwd=folder), server(*held, "--name=b", cwd=far):
            until(lambda: controller.metric('proctor_task_waiting{.*"workers_differ"') == 1)
            path = plan(folder, "./trivia.py")
            given = (f"--set=controller={controller.url}", "--set=limits.patience_s=6", "-q")
            said = exits(2, "run", str(path), "--name=r", *given, cwd=folder).stderr
    assert re.search(r"'trivia_night': its workers differ .*\(\w+: [ab]; \w+: [ab]\)", said)


SCRIPT = """import sys
from proctor import evaluate, open_run
from trivia import TriviaNight
if sys.argv[1] == "begin":
    run = evaluate(agents="reference", tasks=[TriviaNight(highest=9)], name="r")
else:
    run = open_run("r").resume(tasks=[TriviaNight(highest=9)])
print([row["value"] for row in run.scores()])
"""


def test_a_run_from_python_is_resumed_by_a_plan_and_the_reverse(folder: Path) -> None:
    (folder / "script.py").write_text(SCRIPT)
    plan(folder, "./trivia.py, parameters: {highest: 9}")

    def script(what: str) -> str:
        command = [sys.executable, "script.py", what]
        ended = subprocess.run(
            command, cwd=folder, env=environment(), capture_output=True, text=True, check=False, timeout=slowly(60)
        )
        return f"{ended.stderr.strip()[-300:]} {ended.stdout.splitlines()[-1:]}".strip()

    assert script("begin").endswith("['[10.0]']")
    exits(0, "resume", "r", "--plan=plan.yaml", "--retry=0", "-q", cwd=folder)
    assert script("resume").endswith("['[10.0]']")
    change(folder / "near.py", "float(said == wanted)", "1.0")
    assert "near.py, line 2 differs" in script("resume")
    assert "near.py, line 2 differs" in exits(2, "resume", "r", "--plan=plan.yaml", cwd=folder).stderr


MARK = "from pathlib import Path\nPath(__file__).with_name('mark').write_text('it ran')\n"


def test_a_strangers_store_has_no_file_imported_and_holds_what_readers_need(folder: Path) -> None:
    plan(folder, "./trivia.py")
    exits(0, "run", "plan.yaml", "--name=r", "-q", cwd=folder)
    exits(0, "run", "plan.yaml", "--name=s", "-q", cwd=folder)
    (folder / "trivia.py").write_text(MARK + WORLD)
    (folder / "near.py").write_text(MARK + NEAR)
    shown = exits(0, "show", "r", "0", cwd=folder).stdout
    assert "read as word" in shown
    assert '"reading":{"kind":"word"' in exits(0, "show", "r", "0", "--json", cwd=folder).stdout.replace(" ", "")
    (pair,) = json.loads(exits(0, "report", "r", "--json", cwd=folder).stdout)["pairs"]
    assert (pair["primary"], pair["value"], pair["interval"][1]) == ("points", 10.0, 10.0)
    for command in (
        ("report", "r", "--html=r.html"),
        ("compare", "r", "s"),
        ("export", "r", "--as=csv"),
        ("report", "r", "--html=t.html", "--trials=0"),
        ("status", "r"),
        ("ls",),
    ):
        assert "Traceback" not in proctor(*command, cwd=folder).stderr, command
    stranger = {"XDG_STATE_HOME": str(folder / "another user's")}
    for command in (("resume", "r"), ("rescore", "r")):
        told = proctor(*command, cwd=folder, **stranger)
        assert told.returncode == 2, told.stderr
        assert "tasks.trivia_night.environment" in told.stderr
    assert not (folder / "mark").exists()
    exits(2, "resume", "r", "--plan=plan.yaml", cwd=folder, **stranger)
    assert (folder / "mark").read_text() == "it ran"


MISTAKES = {
    "./none.py": "none.py: there is no such file",
    "./syntax.py": "syntax.py:1: '(' was never closed",
    "./raises.py": "raises.py:2: ZeroDivisionError: division by zero",
    "./samples.py": "samples.py:6: KeyError: 'rows'",
    "./twice.py": "samples: 'a' is listed 2 times",
    "./no_texts.py": "samples: 1 is no text; every id must be a str",
    "./missing.py": "No such file or directory: '{folder}/gone.jsonl'",
    "./script.py": "script.py:9: eval_client.python.results.PlanError: this file is being imported; evaluate under `if",
    "trivia:Nothing": "trivia.py: there is no Nothing; it defines: TriviaNight",
}
SAMPLES = """from pathlib import Path
from proctor import Environment
class W(Environment):
    data: Path = Path("gone.jsonl")
    def samples(self):
        return {}
    async def play(self, sample, agent, seed=0): ...
"""


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_file_is_said_in_a_line_by_every_command(name: str, folder: Path) -> None:
    (folder / "syntax.py").write_text("x = (")
    script = SAMPLES.replace("{}", "['a']") + "from proctor import evaluate\nevaluate(tasks=[W()], agents='naive')\n"
    (folder / "script.py").write_text(script)
    (folder / "raises.py").write_text("def f(): return 1\ny = f() / 0\n")
    for file, listed in {
        "samples": "{}['rows']",
        "twice": "['a', 'a']",
        "no_texts": "[1]",
        "missing": "[self.data.read_text()]",
    }.items():
        (folder / f"{file}.py").write_text(SAMPLES.replace("{}", listed))
    plan(folder, name)
    made = ("-m", "reference", "-e", name, "-q")
    others = (("check", name), ("play", name), ("run", *made), ("plan", "check", "plan.yaml"))
    for command in (("run", "plan.yaml"), *(others if name == "./raises.py" else ())):
        told = exits(2, *command, cwd=folder, answers="").stderr.replace("printed at import\n", "")
        assert MISTAKES[name].format(folder=folder) in told
        assert told.count("\n") == 1, told


def test_a_world_that_init_writes_and_those_of_the_examples_are_checked_and_played(tmp_path: Path) -> None:
    exits(0, "init", "--world", "two_words", cwd=tmp_path)
    examples = Path(__file__).parents[3] / "examples/own_files"
    for world in ("./two_words.py", str(examples / "vending_machine.py"), str(examples / "guest_book.py")):
        assert "FAIL" not in exits(0, "check", world, cwd=tmp_path).stdout
    exits(0, "run", "-m", "naive", "-m", "reference", "-e", "./two_words.py", "--name=r", "-q", cwd=tmp_path)
    pairs = json.loads(exits(0, "report", "r", "--json", cwd=tmp_path).stdout)["pairs"]
    assert {(pair["agent"], pair["task"], pair["value"], pair["scored"]) for pair in pairs} == {
        ("naive", "two_words", 0.0, 5),
        ("reference", "two_words", 1.0, 5),
    }
    for name, said in (("two_words", "File exists"), ("random", "no module's name"), ("Big", "small letters")):
        assert said in exits(2, "init", "--world", name, cwd=tmp_path).stderr


def test_an_agent_that_init_writes_plays_worlds_as_it_is_written(tmp_path: Path) -> None:
    exits(0, "init", "--world", "hints", "--agent", "repeats", cwd=tmp_path)
    with (tmp_path / "hints.jsonl").open("a") as rows:
        rows.write(json.dumps({"id": "hint", "question": 'Answer "blue".', "answer": "blue"}) + "\n")
    agents = ("-m", "naive", "-m", "./repeats.py:answer")
    exits(
        0,
        "run",
        *agents,
        "-e",
        "./hints.py",
        "-e",
        "alfworld",
        "--set=limits.trial.turns=2",
        "--limit=6",
        "--name=r",
        "-q",
        cwd=tmp_path,
    )
    pairs = json.loads(exits(0, "report", "r", "--json", cwd=tmp_path).stdout)["pairs"]
    found = {(pair["agent"], pair["task"]): (pair["value"], pair["scored"]) for pair in pairs}
    assert (found["answer", "hints"], found["naive", "hints"]) == ((pytest.approx(1 / 6), 6), (0.0, 6))
    assert found["answer", "alfworld"] == (0.0, 6)
    for name, said in (("repeats", "File exists"), ("random", "no module's name"), ("Big", "small letters")):
        assert said in exits(2, "init", "--agent", name, cwd=tmp_path).stderr


def test_the_lines_of_the_tutorial_lead_to_a_score(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[3] / "docs/tutorial/your-own-environment.md").read_text()
    first = guide.partition("## 1. ")[0]
    (agent,) = re.findall(r"^```python\n(.*?)^```$", first, flags=re.MULTILINE | re.DOTALL)
    (written,) = re.findall(r"^```yaml\n(.*?)^```$", first, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "plan.yaml").write_text(written)
    for line in re.findall(r"^\$ proctor (.*)$", first, flags=re.MULTILINE):
        exits(0, *line.split(), cwd=tmp_path)
        (tmp_path / "agent.py").write_text(agent)
    exits(0, "run", "plan.yaml", "--name=second", "-q", cwd=tmp_path)
    for run, values in (("first", [0.2, 0.0]), ("second", [0.2])):
        pairs = json.loads(exits(0, "report", run, "--json", cwd=tmp_path).stdout)["pairs"]
        assert [pair["value"] for pair in pairs] == values
