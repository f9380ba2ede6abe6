"""The built-in agents, and that the shipped data suit them."""

import subprocess
from pathlib import Path

import pytest

from environments.operating_system import policies
from environments.operating_system.dataset import AnswerMatch, SampleRecord, ShellScript
from environments.operating_system.observation import body
from environments.operating_system.prompt import opening
from environments.operating_system.reply import Bash, Commit, Invalid, parse
from environments.operating_system.scoring import variables
from proctor.sandbox.base import ENVIRONMENT
from proctor.types import Message


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
