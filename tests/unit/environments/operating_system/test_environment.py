"""The environment as configured, its calls, replies and checks, and its built-in agents, whom the shipped data suit."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.operating_system import policies
from environments.operating_system.dataset import AnswerMatch, SampleRecord, ShellScript, load
from environments.operating_system.environment import SAMPLES, OperatingSystem
from environments.operating_system.functions import toolset
from environments.operating_system.observation import HEAD, body, render
from environments.operating_system.prompt import opening
from environments.operating_system.reply import MAX_ANSWER_BYTES, Bash, Commit, Invalid, parse
from environments.operating_system.scoring import CHECKERS, _holds, variables
from environments.operating_system.tampering import named_by_checks, suspects
from proctor.environment import Agent
from proctor.sandbox.base import ENVIRONMENT, Change
from proctor.sandbox.shell import CommandResult
from proctor.tools import CallReader, UnreadableCall
from proctor.types import Action, Message, Observation
from tests.support import SHARED_DATA
from tests.tool_calls import calls


class Nobody(Agent):
    """An agent that is never asked."""

    async def act(self, observation: Observation) -> Action:
        raise AssertionError("asked")


def own(folder: Path, answer: str = "1") -> OperatingSystem:
    folder.mkdir(exist_ok=True)
    (folder / "dev.json").write_text(json.dumps([{"description": "Why?", "evaluation": {"match": answer}}]))
    return OperatingSystem(data=folder / "dev.json")


def test_the_shipped_samples_have_every_kind_of_script() -> None:
    records = OperatingSystem().dataset.records.values()
    assert len(records) >= 16
    assert {record.kind for record in records} == {"match", "check"}
    assert any(record.start for record in records)
    languages = {script.language for record in records for script in (*record.init, *record.checks) if script}
    assert languages == {"bash", "python"}
    assert any(None not in record.checks for record in records if record.checks)
    assert OperatingSystem().dataset.warnings == ()


def test_namespaces_are_for_trusted_agents_only() -> None:
    assert [OperatingSystem(engine=engine).trusted_agents_only() for engine in ("docker", "namespace")] == [False, True]


def test_an_unknown_sample_is_told_with_what_ids_look_like(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no sample 'x'; ids look like dev-dev-00000"):
        own(tmp_path).reference("x")


async def test_playing_needs_the_lifespan(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="lifespan"):
        await own(tmp_path).play("dev-dev-00000", Nobody())


def test_no_shipped_sample_has_its_work_watched() -> None:
    """What the examples of these samples change is named by them; the rest are programs of the system."""
    records = load(SAMPLES, None, "own").records.values()
    assert {path for record in records for path in named_by_checks(record) if path.startswith("/srv")} == set()


def read(name: str, arguments: str, strict: bool = False) -> object:
    """The action that a call is, None for one that can't be read."""
    reader = CallReader(toolset(thought_answers=not strict), strict=strict)
    action = reader.read(calls((name, arguments))).actions[0]
    return None if isinstance(action, UnreadableCall) else action


@pytest.mark.parametrize(("name", "argument"), [("answer_action", "answer"), ("finish_action", "thought")])
def test_an_answer_that_no_checker_can_get_is_invalid(name: str, argument: str) -> None:
    assert read(name, json.dumps({argument: "a\0b"})) == Invalid("invalid_action")
    longest = "x" * MAX_ANSWER_BYTES
    assert read(name, json.dumps({argument: longest})) == Commit(longest)
    assert not isinstance(read(name, json.dumps({argument: longest + "x"})), Commit)


PAIRS = [("5", "5\n"), (" 5 ", "05"), ("5", "6"), ("five", "5"), ("5.0", "5"), ("a\r\nb", "a\nb "), ("b", "abc")]
PAIRS += [("abc", "b"), ("", ""), ("8.0K", "8.0K"), ("8K", "8192"), ("1MB", "1024KB"), ("1G", "1024M"), ("8k", "8192")]
PAIRS += [("1TB", "1024GB"), ("7B", "7"), ("7Byte", "7")]


@pytest.mark.shared
@pytest.mark.parametrize("name", sorted(CHECKERS))
def test_a_checker_outside_decides_as_the_published_script(name: str) -> None:
    script = SHARED_DATA / "os/scripts/dev/check" / f"{name}.py"
    for answer, expected in PAIRS:
        ran = subprocess.run([sys.executable, str(script), answer, expected], stderr=subprocess.DEVNULL, check=False)
        assert _holds(CHECKERS[name], answer, expected) == (ran.returncode == 0), (answer, expected)


@pytest.mark.parametrize("change", [Change.CHANGED, Change.DELETED])
def test_libraries_in_the_home_of_the_sandbox_s_user_are_watched(change: Change) -> None:
    """The table of what is suspect has all paths but these, which begin with the home."""
    home = Path(ENVIRONMENT["HOME"])
    module = home / ".local/lib/python3.11/site-packages/usercustomize.py"
    for path in (module, *[each for each in module.parents if each.is_relative_to(home)]):
        assert suspects({str(path): change}) == [str(path)]
    assert suspects({str(module): Change.ADDED}) == [str(module)]
    assert suspects({str(home / "json.py"): Change.ADDED}) == []


def test_the_longest_answer_is_still_one() -> None:
    assert parse(f"Act: answer({'x' * MAX_ANSWER_BYTES})") == Commit("x" * MAX_ANSWER_BYTES)


@given(st.text())
def test_no_reply_breaks_the_parser(reply: str) -> None:
    assert isinstance(parse(f"Act: {reply}"), Bash | Commit | Invalid)
    assert parse(reply + "\nAct: finish") == Commit(None)


KINDER = {
    "line ends of Windows": [14, 21, 73, 123, 206, 260, 354, 398, 410, 443, 487, 495, 510, 567],
    "an indented closing fence": [30, 176, 377, 384, 409, 555],
    "a blank behind the fence": [134, 237, 281, 318, 444, 533, 598],
    "line ends of Windows, and an indented closing fence": [163, 323, 415],
}
"""Lines of the recorded replies in which only we find a block; the published code runs the empty command."""


@pytest.mark.shared
def test_every_recorded_reply_means_what_the_published_code_says_but_for_kinder_fences() -> None:
    lines = (SHARED_DATA / "os/published_replies.jsonl").read_text(encoding="utf-8").splitlines()
    others = []
    for number, line in enumerate(lines, 1):
        recorded = json.loads(line)
        action, published = parse(recorded["reply"]), recorded["published"]
        match published["action"]:
            case "bash":
                if action != Bash(published["content"]):
                    assert published["content"] == ""
                    assert isinstance(action, Bash)
                    others.append(number)
            case "commit":
                assert action == Commit(published["content"]), number
            case _:
                assert isinstance(action, Invalid), number
    assert len(lines) == 600
    assert others == sorted(number for numbers in KINDER.values() for number in numbers)


def shown(output: bytes, *, timed_out: bool = False, restarted: bool = False) -> str:
    return render(CommandResult(output=output, status=0, timed_out=timed_out, restarted=restarted), 30.0)


def test_characters_are_counted_and_not_bytes() -> None:
    assert shown(("ä" * 800).encode()) == HEAD + "ä" * 800


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert shown(b"a\xffb") == HEAD + "a\N{REPLACEMENT CHARACTER}b"


def after(output: str, description: str = "Count /srv/a.b/c, please.") -> tuple[Message, ...]:
    """A transcript in which one command printed the output."""
    ran = Message(role="assistant", content="Act: bash\n```bash\ntrue\n```")
    return (*opening(description), ran, Message(role="user", content=body(output)))


ASKED = SampleRecord(id="x", description="?", checks=(None,), example=ShellScript(code="ls\nwc"))
DONE = SampleRecord(
    id="x", description="?", checks=(ShellScript(code="exit 0"),), example=ShellScript(language="python", code="'a'")
)


def test_gold_gives_the_expected_text_at_once() -> None:
    record = SampleRecord(id="x", description="?", match=AnswerMatch(answer="log"))
    assert parse(policies.gold(record)("main", opening("?")).content) == Commit("log")


def test_gold_runs_the_example_and_answers_with_its_output() -> None:
    assert parse(policies.gold(ASKED)("main", opening("?")).content) == Bash(
        policies.as_checked(ShellScript(code="ls\nwc"))
    )
    assert parse(policies.gold(ASKED)("main", after(" 5 ")).content) == Commit("5")


def test_gold_finishes_where_no_answer_is_asked() -> None:
    action = parse(policies.gold(DONE)("main", opening("?")).content)
    assert isinstance(action, Bash)
    assert action.code.startswith("(cd / && exec /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:")
    assert parse(policies.gold(DONE)("main", after("")).content) == Commit(None)


def test_gold_gives_the_example_the_environment_of_a_check() -> None:
    printed = subprocess.run(
        ["/bin/bash", "-c", policies.as_checked(ShellScript(code="env"))], capture_output=True, text=True, check=True
    ).stdout
    given = dict(line.split("=", 1) for line in printed.splitlines())
    wanted = {**ENVIRONMENT, **variables(given["PYTHONPYCACHEPREFIX"])}
    assert {name: given.get(name) for name in wanted} == wanted
    assert not Path(given["PYTHONPYCACHEPREFIX"]).exists()


@pytest.mark.parametrize(("check", "answer"), [("test $1 = 5", "5"), ("test $HOME = /root", None)])
def test_gold_answers_whenever_a_check_reads_an_argument(check: str, answer: str | None) -> None:
    record = DONE.model_copy(update={"checks": (ShellScript(code="exit 0"), ShellScript(code=check))})
    assert parse(policies.gold(record)("main", after("5")).content) == Commit(answer)


def test_naive_lists_the_path_it_reads_and_answers_with_a_number() -> None:
    assert parse(policies.naive("main", opening("Count /srv/a.b/c, please.")).content) == Bash("ls /srv/a.b/c | wc -l")
    assert parse(policies.naive("main", opening("Count it.")).content) == Bash("ls ~ | wc -l")
    assert parse(policies.naive("main", after("about 12 of 13")).content) == Commit("12")
    assert parse(policies.naive("main", after("")).content) == Commit(None)


def test_random_is_well_formed_and_a_function_of_sample_seed_and_turn() -> None:
    seen = set()
    for seed in range(50):
        action = policies.random("x", seed)("main", opening("?"))
        assert action == policies.random("x", seed)("main", opening("?"))
        assert not isinstance(parse(action.content), Invalid)
        seen.add(action.content)
    assert len(seen) > 5
